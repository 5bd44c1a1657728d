"""The backward conversation where all parties must step in the same order: one H over all blocks needs it."""

from __future__ import annotations

from colonnade.arrays import Floats
from colonnade.conversations.linear.algorithm.backward import BackwardConversation
from colonnade.conversations.pacing.schedule import Round
from colonnade.conversations.pacing.thetas import Theta


class InOrderBackward(BackwardConversation):
    """One party's side, stepping on round after round."""

    async def step_on_own(self, own: Theta) -> Floats | None:
        """Step on the theta of an own round when its turn comes."""
        await self.step(*own)
        return None

    async def step(self, batch: Round, theta: Floats) -> None:
        """Step on the theta of one round once all before it are finished."""
        await self.pace.reaches(batch.number)
        self.party.check_reply(batch, theta)
        await self.party.step([(batch, theta)])
