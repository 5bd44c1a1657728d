"""The pull conversation (AsySQN, AFSGD/AFSVRG/AFSAGA-VP, FD-SVRG): a party pulls scores for itself.

Every party that holds the label runs rounds of its own: the others send their shares of the scores of
its rows, the sum reaches it alone, it computes theta and steps on its own block only. Nothing goes back,
so the blocks of parties without the label are never trained. Parties do not wait for each other: each
asks for its next batches as it finishes old ones, `ahead` at a time, and serves the others in between; a
fast party makes more steps than a slow one. Where all make the same round together it is `pull_in_step`.
After each stint (`pacing.stints`) the model is measured, and what needs all parties at one point (tuning,
SVRG's snapshot) is done.

What each side learns: a label holder learns the total score of every row; the others learn nothing but
which batches were asked for.
"""

from __future__ import annotations

from colonnade.arrays import Floats
from colonnade.conversations.context import Context
from colonnade.conversations.linear.parties.from_plan import ClearTraining
from colonnade.conversations.linear.settings import LinearSettings
from colonnade.conversations.pacing.background import Background
from colonnade.conversations.pacing.delays import Lateness
from colonnade.conversations.pacing.schedule import Round
from colonnade.conversations.pacing.stints import Stints, pulled_bound
from colonnade.messages import Ask


class PullConversation:
    """One party's side: it pulls scores for itself, if it holds the label, and serves the others."""

    def __init__(self, context: Context[LinearSettings], training: ClearTraining) -> None:
        plan, self.training = context.plan, training
        self.context, self.party, self.pullers = context, training.party, plan.label_holders
        schedule = training.party.schedule
        self.stints = Stints(context.net, context.evaluator, schedule, plan.pace.ahead, plan.settings.lead)

    async def run(self) -> None:
        """Train stint by stint, measure after each, and serve the others all the while."""
        gates, measurement = self.context.gates, self.training.measurement
        gates.keep(self.stints, name="PullConversation")
        gates.begin(1)
        per_epoch, state = self.party.schedule.per_epoch, self.stints.state
        async with Background(self.serve(), self.stints.heed()) as background:
            await background.guard(gates.realign())
            for stint in range(gates.position, self.party.schedule.epochs):
                state.stint = stint
                self.party.steps.delays.turn()
                await background.guard(self.training.pauses.make(stint * per_epoch, self.pullers))
                await background.guard(self.stint())
                over = await background.guard(measurement.after_stint(stint, self.sums))
                state.ended_early = over and stint + 1 < self.party.schedule.epochs
                if over:
                    break
                if gates.due(stint + 1):
                    await background.guard(gates.reached(stint + 1))

    # --- label holders, each at its own pace ------------------------------------------------------------

    async def stint(self) -> None:
        """Pull, step and serve until the evaluator ends the stint."""
        stints, state = self.stints, self.stints.state
        if self.context.me in self.pullers:
            while state.begun < state.done + stints.ahead:
                await self.ask()
            while await stints.may_go_on():
                z = await self.scores(state.done)
                state.fetched.pop(state.done, None)
                await self.step(stints.batch(self.context.me, state.done), z)
                if not stints.stopping.is_set():
                    await self.ask()
                await stints.end_if_full()
            # all take part in the sum of all that was asked for, so it is fetched even if nobody needs it
            for number in range(state.done, state.begun):
                state.fetched[number] = await self.scores(number)
        # a party without the label only serves, however long the stint takes
        await stints.all_served()

    async def ask(self) -> None:
        """Ask all parties for their shares of the next own round."""
        number = self.stints.state.begun
        await self.context.net.broadcast(Ask(self.stints.tag(self.context.me, number)))
        self.party.steps.delays.read(number, self.stints.updates)
        self.stints.state.begun += 1

    async def scores(self, number: int) -> Floats:
        """Return the total scores of an own round, summed over all parties or kept from the stint before."""
        if (known := self.stints.state.fetched.get(number)) is not None:
            return known
        me = self.context.me
        share = await self.party.share(self.stints.batch(me, number))
        return await self.context.sum.collect(share, tag=self.stints.tag(me, number))

    async def step(self, batch: Round, z: Floats) -> None:
        """Compute theta from the total scores of a batch, and step on the own block."""
        party, state = self.party, self.stints.state
        theta = party.reply(batch, z)
        await party.apply([(batch, theta)])
        party.steps.delays.apply([batch.number], self.stints.updates)
        party.tally.updates += 1
        state.done += 1
        state.known[self.context.me] = state.done
        party.block.keep(self.stints.epochs())

    async def serve(self) -> None:
        """Send the own shares of the batches that others ask for, until cancelled."""
        async for waiting in self.context.net.stream(Ask, patient=True):
            for sender, message in waiting:
                number = self.stints.asked_for(sender, message)
                share = await self.party.share(self.stints.batch(sender, number))
                await self.context.sum.give(share, root=sender, tag=message.tag)
            self.stints.moved.set()
            await self.stints.end_if_full()

    # --- the end -----------------------------------------------------------------------------------------

    @property
    def sums(self) -> int:
        """Secure sums for all label holders together, up to the end of this stint."""
        return self.training.measurement.sums(self.stints.rounds, len(self.pullers))

    @property
    def lateness(self) -> Lateness:
        """The bound of delays, and the longest: theta is used where it is computed, so tau_2 is nothing."""
        latest = max(self.party.steps.delays.counts, default=0)
        return Lateness(pulled_bound(self.stints.ahead, len(self.pullers), self.stints.lead), latest, 0)
