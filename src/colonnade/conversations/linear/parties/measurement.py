"""Measures the model of clear parties, and says in the end how the run went."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from colonnade.conversations.checkpoint import WindowGates
from colonnade.conversations.context import Outcome
from colonnade.conversations.evaluate import Evaluation, Mark, Marks, measure_at_marks
from colonnade.conversations.linear.block import scored_by
from colonnade.conversations.linear.parties.clear import ClearParty
from colonnade.conversations.linear.timetable import Timetable
from colonnade.conversations.pacing.delays import Lateness
from colonnade.messages import Announce, Topic, tag_of
from colonnade.models.linear import rows_of
from colonnade.net.expect import floats


@dataclass
class Measurement:
    """One party's part in measuring the common model."""

    party: ClearParty
    timetable: Timetable
    evaluation: Evaluation

    @property
    def marks(self) -> Marks:
        """When the model is measured."""
        return Marks.of(self.party.context.plan.pace.evaluate_every, self.party.schedule)

    @property
    def checkpoints(self) -> WindowGates:
        """Where the state is stored on the way."""
        party = self.party
        return WindowGates(party.context.gates, party.pace, party.schedule, self.evaluation, self.marks)

    async def at_marks(self) -> None:
        """Measure the model at its marks and at the end."""
        party = self.party
        await measure_at_marks(
            party.context.net, self.evaluation, self.marks, party.schedule, party.pace, self.after
        )

    async def after(self, rounds: int, final: bool) -> float | None:
        """Measure the model after this many rounds."""
        mark = Mark(self.timetable.passes(rounds), self.sums(rounds), final)
        joint, w = self.party.joint, self.party.block.w
        if joint is None or not rounds:
            return await self.now(mark)
        if final and joint.state.caution.marks:
            word = await self._last_word(await self.now(replace(mark, final=False)))
            joint.state.caution.heed(word, w, final=True)
            return await self.now(mark)
        joint.state.caution.mark(rounds, w)
        loss = await self.now(mark)
        if loss is not None:
            joint.watch.measured(rounds, loss)
        return loss

    async def after_stint(self, stint: int, sums: int) -> bool:
        """Measure the model after a stint, if it is due; returns whether the run is over."""
        context, epochs = self.party.context, self.timetable.epochs
        last = stint + 1 == epochs
        every = int(context.plan.pace.evaluate_every) or epochs
        if (stint + 1) % every and not last:
            return False
        mark = Mark(self.timetable.passes((stint + 1) * self.timetable.per_epoch), sums, last)
        loss = await self.now(mark)
        over = self.evaluation.over(loss, stint + 1)
        if last or not context.may_end_early:
            return last
        tag = tag_of(Topic.PAUSE, epochs + stint)
        if loss is not None:
            await context.net.broadcast(Announce(tag, np.array([float(over)])))
        else:
            due = floats(1, low=0, high=1)
            over = bool((await context.net.recv(Announce, context.evaluator, tag, values=due)).values[0])
        if over:  # the same moment once more, with the test rows
            await self.now(replace(mark, final=True))
        return over

    async def _last_word(self, loss: float | None) -> float:
        """Return what the evaluator, who alone has a loss, says of the weights at the end (see `caution`)."""
        context, tag = self.party.context, tag_of(Topic.PAUSE, 0)
        if loss is None or self.party.joint is None:
            told = await context.net.recv(Announce, context.evaluator, tag, values=floats(1))
            return float(told.values[0])
        word = self.party.joint.watch.last_word(loss)
        await context.net.broadcast(Announce(tag, np.array([word])))
        return word

    async def now(self, mark: Mark) -> float | None:
        """Measure the model; the loss at the evaluator, None elsewhere."""
        block, test = self.party.block, self.party.context.test
        scored = [scored_by(block.all_rows, self.party.schedule.rows, block.w)]
        if mark.final and test is not None:
            scored.append(scored_by(rows_of(test.X), test.rows, block.w))
        return await self.evaluation.measure(scored, block.penalty.value(block.w), mark)

    def sums(self, rounds: int, pullers: int = 1) -> int:
        """Return the secure sums so far: rounds, snapshots as the rounds they replace, those of pauses."""
        others = sum(count for gate, count in self.party.tally.exchanged.items() if gate < rounds)
        return self.timetable.rounds(rounds) * pullers + others

    def outcome(self, sums: int, lateness: Lateness, *, ended_early: bool) -> Outcome:
        """Return what this party returns."""
        party = self.party
        plain = party.curvature is None and party.joint is None
        return Outcome(
            weights={"w": party.block.w},
            step=party.steps.rate() if plain else party.steps.gamma(),
            rounds=sums,
            updates=party.tally.updates,
            evaluation=self.evaluation,
            delays=party.steps.delays.counts,
            launched=party.tally.launched,
            lateness=lateness,
            converged=ended_early if party.context.plan.pace.open else None,
        )
