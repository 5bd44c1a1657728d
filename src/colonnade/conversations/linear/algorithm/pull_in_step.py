"""The pull conversation in the synchronous schedule (SynSQN, FD-SVRG): all pull the same rows."""

from __future__ import annotations

from colonnade.conversations.linear.algorithm.pull import PullConversation
from colonnade.conversations.pacing.delays import Lateness


class PullInStep(PullConversation):
    """One party's side: every sum waits for all."""

    async def stint(self) -> None:
        """Make a stint's rounds in step."""
        me, stints, secure = self.context.me, self.stints, self.context.sum
        for number in range(stints.rounds - self.party.schedule.per_epoch, stints.rounds):
            batch = self.party.schedule.round(number)
            share = await self.party.share(batch)
            for puller in self.pullers:
                if puller != me:
                    await secure.give(share, root=puller, tag=stints.tag(puller, number))
            if me in self.pullers:
                self.party.steps.delays.read(number, stints.updates)
                await self.step(batch, await secure.collect(share, tag=stints.tag(me, number)))
        stints.state.known = dict.fromkeys(self.pullers, stints.rounds)

    @property
    def lateness(self) -> Lateness:
        """Nothing is late but by the label holders that step before: theta is used where it is computed."""
        return Lateness(0, max(self.party.steps.delays.counts, default=0), 0)
