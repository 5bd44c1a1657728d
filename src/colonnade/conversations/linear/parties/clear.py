"""One party's training of its block: it scores rows, steps on thetas, and does what a pause is for.

Everything here is local or happens at a pause, when all parties have finished the same rounds. Who sends
theta to whom is the conversation's business.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from colonnade.arrays import Floats
from colonnade.conversations.checkpoint import WindowGates
from colonnade.conversations.context import Context, Lateness, Outcome
from colonnade.conversations.cost import charge
from colonnade.conversations.evaluate import Evaluation, Mark, Marks
from colonnade.conversations.linear.block import Block, Thetas, scored_by
from colonnade.conversations.linear.quasi_newton.lbfgs_joint import Joint
from colonnade.conversations.linear.quasi_newton.lbfgs_local import Curvature
from colonnade.conversations.linear.settings import LinearSettings
from colonnade.conversations.linear.snapshot import announced, pulled
from colonnade.conversations.linear.step_sizes import StepSizes
from colonnade.conversations.linear.timetable import Timetable
from colonnade.conversations.linear.tune import SAMPLE, Tuner
from colonnade.conversations.pacing.own_pace import OwnPace
from colonnade.conversations.pacing.pacing import Pacing
from colonnade.conversations.pacing.schedule import Round, Schedule
from colonnade.conversations.pacing.shares_ahead import joining_pays
from colonnade.messages import Announce, Topic, tag_of
from colonnade.models.linear import rows_of
from colonnade.net.expect import floats
from colonnade.state import Declared


@dataclass
class Tally:
    """Counts of what a party has done so far."""

    updates: int = 0
    launched: int = 0  # own rounds, at a label holder
    snapshots: int = 0  # tags of snapshots that are used
    exchanged: Counter[int] = field(default_factory=Counter)  # secure sums of the pause before a round
    behind: bool = False  # whether others finish rounds faster than this party takes them in


@dataclass
class Trainer:
    """A party's block, when its rounds are due, and how large its steps are.

    Of `curvature` (every block its own H) and `joint` (one H over all blocks) at most one is there.
    """

    STATE = Declared(
        kept=("tally", "given"), parts=("block", "window", "steps", "tuner", "curvature", "joint")
    )

    context: Context[LinearSettings]
    timetable: Timetable
    schedule: Schedule
    window: Pacing
    block: Block
    steps: StepSizes
    evaluation: Evaluation
    tuner: Tuner | None
    curvature: Curvature | None
    joint: Joint | None
    tally: Tally = field(default_factory=Tally)
    given: dict[int, Floats] = field(default_factory=dict)  # shares of rounds that are under way

    def __post_init__(self) -> None:
        """Let all that rounds change be part of checkpoints."""
        self.context.gates.keep(self)

    # -- rounds -------------------------------------------------------------------------------------

    async def scores(self, batches: Sequence[Round]) -> list[Floats]:
        """Return the block's shares of the scores of some rounds, computed at once.

        The update count of the weights is noted, so that the delay is known when theta comes.
        """
        if self.charges and self.context.plan.network.charge_forward:
            await self.charge(batches)
        shares = self.block.joined_scores(batches)
        window, read_at = self.window, self.steps.delays.read_at
        numbers = [batch.number for batch in batches]
        read_at.update(dict.fromkeys(numbers, window.finished))
        window.read(numbers)
        if self.joint is None:
            return shares
        return [self.joint.load(batch, share) for batch, share in zip(batches, shares, strict=True)]

    async def share(self, batch: Round) -> Floats:
        """Return this block's share of the scores of a batch, at the present weights."""
        if self.context.plan.network.charge_forward:
            await self.charge([batch])
        return self.block.scores(batch)

    @property
    def staleness(self) -> int:
        """Rounds beyond the window that this party may score at the most.

        Where dominators take turns that is none, or some while it is behind the others. Whoever makes an
        update of every theta cannot catch up, and must not get further behind.
        """
        return self.reach if isinstance(self.window, OwnPace) or self.tally.behind else 0

    @cached_property
    def reach(self) -> int:
        """What `staleness` may be."""
        plan = self.context.plan
        stale, asked = plan.settings.stale, not plan.settings.stale_where_it_pays
        alone = isinstance(self.window, OwnPace) and not (plan.network.join and (asked or self.joining_pays))
        return 0 if alone else stale

    @property
    def joining_pays(self) -> bool:
        """Whether shares ahead pay: by the mean of all blocks or, where the step is by hand, the own one."""
        n, batches = self.schedule.rows, len(self.schedule.dominators)
        own = self.block.all_rows.values(0, n) / n
        values = own if self.tuner is None else self.tuner.values_a_row
        return joining_pays(self.context.plan.network, values * batches * self.context.plan.pace.batch)

    async def update(self, thetas: Thetas) -> None:
        """Make one step from these thetas, and mark their rounds as finished."""
        await self.apply(thetas)
        if isinstance(self.window, OwnPace):
            await self.context.net.catch_up()  # or it would seem that nobody had used the shares it was given
        self.tally.behind = len(thetas) > 1
        if self._finished([batch.number for batch, _ in thetas]):
            # a party that never has to wait for another must still let `measure` see these weights
            await asyncio.sleep(0)

    async def apply(self, thetas: Thetas) -> None:
        """Make one step of the own block from some thetas."""
        if self.charges:
            await self.charge([batch for batch, _ in thetas], self._direction_values(thetas))
        if self.joint is not None:
            for batch, reply in thetas:  # one H needs the same v at every party, so rounds are not joined
                self.joint.take(batch, reply)
        elif self.curvature is None:
            self.block.step(thetas, self.steps.faded_rate())
        else:
            self.curvature.step(thetas, self.steps)

    def _finished(self, numbers: Sequence[int]) -> bool:
        """Count the updates and their delays, and move the window; whether another epoch begins."""
        delays, window = self.steps.delays, self.window
        finished, base = window.finished, window.base
        for number in numbers:
            delays.apply(number, finished)
            if self.given:
                self.given.pop(number, None)
        self.tally.updates += len(numbers)
        window.finish(numbers)
        per_epoch = self.schedule.per_epoch
        if window.base // per_epoch == base // per_epoch:
            return False
        delays.turn()
        self.block.keep(self.schedule.epochs_of(window.numbers()))
        return True

    def reply(self, batch: Round, z: Floats) -> Floats:
        """Return what a dominator sends back: theta, and the answers to what rode with the scores."""
        holder, rows = self.context.label_holder, self.block.places(batch)
        if self.joint is None:
            return holder.theta(z, rows, batch.number)
        return self.joint.reply(batch, z, lambda z: holder.theta(z, rows, batch.number))

    # -- pauses -------------------------------------------------------------------------------------

    async def pauses(self) -> None:
        """Make every pause of the timetable when its gate is reached: tuning, snapshots, curvature pairs."""
        async for gate in self.window.gates():
            await self.checkpoints.at(gate)
            await self.pause(gate)

    @property
    def checkpoints(self) -> WindowGates:
        """Where the state is stored on the way."""
        return WindowGates(self.context.gates, self.window, self.schedule, self.evaluation, self.marks)

    @property
    def marks(self) -> Marks:
        """When the model is measured."""
        return Marks.of(self.context.plan.pace.evaluate_every, self.schedule)

    async def tune(self, gate: int = 0) -> None:
        """Measure how steep the objective is at the present weights; the round `gate` waits for it."""
        exchanged = self.tally.exchanged
        if self.tuner is not None:
            before = self.tuner.exchanges
            self.steps.smoothness = await self.tuner.measure(self.block.w, first=not gate)
            exchanged[gate] += self.tuner.exchanges - before
            await self._charge_sample(2 * (self.tuner.exchanges - before))
        if self.joint is not None:
            before = self.joint.state.exchanges
            await self.joint.pin()
            if self.context.plan.pace.step == "auto":
                self.steps.smoothness = self.joint.state.smoothness
            exchanged[gate] += self.joint.state.exchanges - before
            await self._charge_sample(2 * (self.joint.state.exchanges - before))

    async def pause(self, gate: int, pullers: tuple[str, ...] = ()) -> None:
        """Do what is due before a round; with `pullers`, every one of them pulls its snapshot for itself."""
        timetable = self.timetable
        if gate in {epoch * timetable.per_epoch for epoch in timetable.tunings}:
            await self.tune(gate)
        if gate in {epoch * timetable.per_epoch for epoch in timetable.snapshots}:
            await (self.pulled_snapshot(pullers) if pullers else self.snapshot())
        if self.curvature is not None and timetable.pairs and (gate in timetable.pairs or pullers):
            self.curvature.first_order_step = self.steps.rate()
            self.tally.exchanged[gate] += await self.curvature.pair(gate, self.steps.gamma())

    async def pulled_snapshot(self, pullers: tuple[str, ...]) -> None:
        """Take SVRG's snapshot where nothing is sent back: every label holder pulls all scores for itself."""
        theta = await pulled(self.context, self.block, pullers, self._snapshot_tags)
        if theta is not None:
            await self.remember(theta)

    async def remember(self, theta: Floats) -> None:
        """Hand SVRG its snapshot: theta of every row, and the mean gradient of the own block."""
        n = self.schedule.rows
        await self.charge_all()
        self.block.estimator.snapshot(theta, self.block.all_rows.gradient(0, n, theta) / n)

    async def snapshot(self) -> None:
        """Take SVRG's snapshot: theta of every row at the present weights, a part at every dominator."""
        roots, base = self.schedule.dominators, self.window.base
        theta = await announced(self.context, self.block, roots, self._snapshot_tags, base)
        await self.charge_all()
        await self.remember(theta)

    def _snapshot_tags(self, count: int) -> list[int]:
        first = self.tally.snapshots
        self.tally.snapshots += count
        return [tag_of(Topic.SNAPSHOT, first + j) for j in range(count)]

    # -- measuring ----------------------------------------------------------------------------------

    async def measure_at(self, rounds: int, final: bool) -> float | None:
        """Measure the model after so many rounds."""
        mark = Mark(self.timetable.passes(rounds), self.rounds(rounds), final)
        joint = self.joint
        if joint is None or not rounds:
            return await self.measure_now(mark)
        if final and joint.state.caution.marks:
            word = await self._last_word(await self.measure_now(replace(mark, final=False)))
            joint.state.caution.heed(word, self.block.w, final=True)
            return await self.measure_now(mark)
        joint.state.caution.mark(rounds, self.block.w)
        loss = await self.measure_now(mark)
        if loss is not None:
            joint.watch.measured(rounds, loss)
        return loss

    async def _last_word(self, loss: float | None) -> float:
        """Return what the evaluator, who alone has a loss, says of the weights at the end (see `caution`)."""
        net, tag = self.context.net, tag_of(Topic.PAUSE, 0)
        if loss is None or self.joint is None:
            told = await net.recv(Announce, self.context.evaluator, tag, values=floats(1))
            return float(told.values[0])
        word = self.joint.watch.last_word(loss)
        await net.broadcast(Announce(tag, np.array([word])))
        return word

    def rounds(self, rounds: int, pullers: int = 1) -> int:
        """Secure sums so far: rounds, snapshots counted as the rounds they replace, and those of pauses."""
        others = sum(count for gate, count in self.tally.exchanged.items() if gate < rounds)
        return self.timetable.rounds(rounds) * pullers + others

    async def measure_now(self, mark: Mark) -> float | None:
        """Measure the model; the loss at the evaluator, None elsewhere."""
        w, penalty = self.block.w, self.block.penalty
        scored = [scored_by(self.block.all_rows, self.schedule.rows, w)]
        if mark.final and (test := self.context.test) is not None:
            scored.append(scored_by(rows_of(test.X), test.rows, w))
        return await self.evaluation.measure(scored, penalty.value(w), mark)

    def outcome(
        self,
        rounds: int | None = None,
        *,
        ended_early: bool | None = None,
        lateness: Lateness | None = None,
    ) -> Outcome:
        """Return what this party returns.

        `rounds` are all secure sums, `ended_early` is whether the run did so, and `lateness` what bounds its
        delays, where the window does not know.
        """
        if ended_early is None:
            ended_early = self.window.stop < self.schedule.rounds
        plain = self.curvature is None and self.joint is None
        return Outcome(
            weights={"w": self.block.w},
            step=self.steps.rate() if plain else self.steps.gamma(),
            rounds=self.rounds(self.window.base) if rounds is None else rounds,
            updates=self.tally.updates,
            evaluation=self.evaluation,
            delays=self.steps.delays.counts,
            launched=self.tally.launched,
            lateness=lateness or self.lateness(),
            converged=ended_early if self.context.plan.pace.open else None,
        )

    def lateness(self) -> Lateness:
        """Return the bound of delays that was kept, and the two parts of a delay where they are known."""
        match self.window:
            case OwnPace(state=state, delay_bound=bound):
                return Lateness(bound, state.tau_1, state.tau_2)
            case _:
                return Lateness(self.window.delay_bound)

    # -- computing ----------------------------------------------------------------------------------

    @cached_property
    def charges(self) -> bool:
        """Whether computing takes other time than it takes."""
        return self.context.net.clock.virtual or bool(self.context.plan.network.work_ms)

    async def charge(self, batches: Sequence[Round], others: int = 0) -> None:
        """Let the time pass that computing on some batches takes, and touching some other stored numbers."""
        clock, network = self.context.net.clock, self.context.plan.network
        if self.charges:
            await charge(clock, network, self.block.values(batches) + others if clock.virtual else 0)

    def _direction_values(self, thetas: Thetas) -> int:
        """Return how many stored numbers a quasi-Newton direction touches for these thetas; none for first
        order."""
        direction = self.joint or self.curvature
        return 0 if direction is None else sum(direction.values(batch) for batch, _ in thetas)

    async def _charge_sample(self, products: int) -> None:
        """Let the time pass that some products with a sample of rows take."""
        values = self.block.all_rows.values(0, min(SAMPLE, self.schedule.rows))
        await charge(self.context.net.clock, self.context.plan.network, products * values)

    async def charge_all(self) -> None:
        """Let the time pass that one kernel takes for all rows."""
        values = self.block.all_rows.values(0, self.schedule.rows)
        await charge(self.context.net.clock, self.context.plan.network, values)
