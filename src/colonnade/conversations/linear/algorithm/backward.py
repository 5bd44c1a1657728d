"""The backward conversation (VFB2, Algorithms 1-3): label holders compute theta, everybody updates.

A round: every party sends its share of the scores of the round's rows into the secure sum, whose root is
the round's dominator (Algorithm 1); the dominator computes theta = dL/dz and sends it to all (Algorithm 2);
every party steps on its own block (Algorithm 3). All parties know every dominator's rounds, so shares are
pushed ahead and nobody waits to be asked.

What a round's share, reply and step are is the party's (`parties.clear`). When a round may begin is the
pace's (`pacing`): every dominator launches rounds at its own pace or, with `ahead` = 1, they take turns,
and the same loops are the synchronous algorithm. Here every theta is an update of its own; `joined` makes
one of several, and `in_order` is for parties that must step in the same order.

What each side learns: a dominator learns the total score of its rows; every party learns theta of every
row, and with it, for the logistic loss, the label and the total score (docs/threat-model.md).
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field

from colonnade.arrays import Floats
from colonnade.conversations.context import Context
from colonnade.conversations.linear.parties.clear import ClearParty
from colonnade.conversations.linear.settings import LinearSettings
from colonnade.conversations.pacing.priority_lock import PriorityLock, Urgency
from colonnade.conversations.pacing.schedule import Round
from colonnade.conversations.pacing.thetas import Theta, Thetas
from colonnade.conversations.pacing.upcoming import Upcoming
from colonnade.messages import Backward, Topic, tag_of


@dataclass
class BackwardConversation:
    """One party's side: it sends shares, steps on thetas and, if it holds the label, dominates rounds."""

    context: Context[LinearSettings]
    party: ClearParty
    upcoming: Upcoming = field(init=False)  # rounds of others to give shares to
    thetas: Thetas = field(init=False)  # of others, that nobody has stepped on yet
    # work is chosen when there is time for it: by then more rounds are open and more thetas have come
    processor: PriorityLock = field(init=False)

    def __post_init__(self) -> None:
        party, together = self.party, self.context.plan.network.join
        self.processor = PriorityLock(self.context.plan.network.processors)
        self.pace, self.schedule = party.pace, party.schedule
        self.upcoming = Upcoming(self.schedule, self.pace, self.context.me, party.beyond, together=together)
        self.thetas = Thetas(self.schedule.dominators, self.pace, party.reply_shape)

    async def run(self, measuring: Coroutine[None, None, None], *pauses: Coroutine[None, None, None]) -> None:
        """Run all rounds to the end; pause, and measure the model, on the way."""
        context, dominators = self.context, self.schedule.dominators
        work = [self.push(), measuring, *pauses]
        if context.me in dominators:
            work.append(self.dominate())
        if set(dominators) - {context.me}:
            work.append(self.collaborate())
        early = context.may_end_early
        work.append(self.pace.agree_on_ends(context.net, context.evaluator, may_end_early=early))
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(step) for step in work]
            await self.pace.ends()
            # the last measurement may take long, and nobody must wait for a theta meanwhile
            pushing, _measuring, *others = tasks
            for task in (pushing, *others):
                task.cancel()
        for number in self.pace.left_over():
            await context.sum.drop(tag_of(Topic.TRAIN, number))

    # --- Algorithm 1: shares for other dominators' rounds --------------------------------------------

    async def push(self) -> None:
        """Send shares of other dominators' rounds as early as these may begin."""
        for batch, share in await self.party.shares_under_way():
            await self.send(batch, share)
        self.upcoming.begin()
        while (first := self.upcoming.first) is not None:
            await self.give()
            await self.upcoming.wait(first)

    async def give(self) -> None:
        """Send shares of all rounds that may begin now."""
        while self.upcoming.may_give():
            async with self.processor.busy(Urgency.SHARES):
                shares = await self.party.shares(self.upcoming.begun())
            for batch, share in shares:
                await self.send(batch, share)

    def send(self, batch: Round, share: Floats) -> Coroutine[None, None, None]:
        """Send the share of one round; its theta may come from now on."""
        dominator = self.thetas.expect(batch)
        return self.context.sum.give(share, root=dominator, tag=tag_of(Topic.TRAIN, batch.number))

    # --- Algorithm 2: the own rounds, at a label holder ----------------------------------------------

    async def dominate(self) -> None:
        """Sum the scores of the own rounds, send theta to all, step."""
        share: Floats | None = None
        for number in self.schedule.led(self.context.me):
            if self.pace.over(number):  # before the run went on
                continue
            tag, batch = tag_of(Topic.TRAIN, number), self.schedule.round(number)
            share = self.party.given.get(number) if share is None else share
            if share is None:
                if not await self.pace.opens(number, self.party.beyond()):
                    return
                async with self.processor.busy(Urgency.OWN_ROUND):
                    ((_, share),) = await self.party.shares([batch])
            z = await self.context.sum.collect(share, tag=tag)
            theta, seen = self.party.reply(batch, z), self.pace.seen
            await self.context.net.spread(Backward(tag, theta, seen))
            self.pace.heard(number, seen)
            if self.pace.holds_back:
                await self.pace.due(number)
            share = await self.step_on_own((batch, theta))

    async def step_on_own(self, own: Theta) -> Floats | None:
        """Step on the theta of an own round; returns the share of the next one, if that may begin now."""
        async with self.processor.busy(Urgency.THETAS):
            await self.party.step([own])
            if self.pace.lets_give:
                await asyncio.sleep(0)
            return await self.party.next_share(own[0])

    # --- Algorithm 3: others' thetas, at every party ---------------------------------------------------

    async def collaborate(self) -> None:
        """Step on others' thetas, each when there is time, while later ones keep arriving."""
        self.context.net.listen(Backward, self.thetas.hear)
        async with asyncio.TaskGroup() as updates:
            while True:
                if not self.thetas.waiting:
                    await self.context.net.arrival(Backward)
                for batch, theta in self.thetas.take():
                    await self.pace.due(batch.number)
                    updates.create_task(self.step(batch, theta))

    async def step(self, batch: Round, theta: Floats) -> None:
        """Step on the theta of one round."""
        async with self.processor.busy(Urgency.THETAS):
            await self.party.step([(batch, theta)])
            if self.pace.lets_give:
                await asyncio.sleep(0)
