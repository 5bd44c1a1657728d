"""The backward conversation where work on several rounds is done at once.

A call costs more than the numbers that a batch touches. So the scores of rounds that may begin together are
one product, and thetas that wait together are one update. Who has stepped gives the shares that this opens
in the same go: then nobody waits for them while this party computes something else.
"""

from __future__ import annotations

import asyncio

from colonnade.arrays import Floats
from colonnade.conversations.linear.algorithm.backward import BackwardConversation
from colonnade.conversations.pacing.priority_lock import Urgency
from colonnade.conversations.pacing.thetas import Theta
from colonnade.messages import Backward


class JoinedBackward(BackwardConversation):
    """One party's side, with one update from all thetas that wait."""

    async def step_on_own(self, own: Theta) -> Floats | None:
        """Step on the theta of an own round and all that wait, or let it wait for the next update."""
        if self.pace.own_waits:
            self.thetas.waiting.append(own)
            self.context.net.nudge(Backward)
            return None
        async with self.processor.busy(Urgency.OWN_ROUND):
            await self.party.step([own, *self.thetas.take_due()])
            if self.pace.lets_give:
                await asyncio.sleep(0)
            return await self.party.next_share(own[0])

    async def collaborate(self) -> None:
        """Step on all thetas that wait, whenever there is nothing more urgent to do."""
        self.context.net.listen(Backward, self.thetas.hear)
        while True:
            if not self.thetas.waiting:
                await self.context.net.arrival(Backward)
                if not self.party.beyond():
                    await asyncio.sleep(0)  # what others send at the same moment is joined with it
            await self.step_on_all()

    async def step_on_all(self) -> None:
        """Step on the thetas that wait and are due, and give the shares that this opens."""
        async with self.processor.busy(Urgency.THETAS):
            self.upcoming.taken = True
            if thetas := self.thetas.take_due():
                await self.party.step(thetas)
            shares = await self.party.shares(self.upcoming.begun())
        for batch, share in shares:
            await self.send(batch, share)
        await self.give()  # what has become possible while these were sent
        self.upcoming.taken = False
        if self.thetas.waiting:
            await asyncio.sleep(0)  # `dominate` asks for the processor before this does so again
        if self.thetas.waiting and self.pace.holds_back:
            await self.pace.due(self.thetas.waiting[0][0].number)
