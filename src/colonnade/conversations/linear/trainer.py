"""One party's training of its block: scores out, thetas in, and what happens at a pause.

Everything here is local or happens at a pause, when all parties have finished the same rounds. Who sends
theta to whom is the conversation's business.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from colonnade.arrays import Floats, Rows
from colonnade.conversations.context import Context, Outcome
from colonnade.conversations.evaluate import Evaluation, Mark
from colonnade.conversations.linear.block import Block, Delays, Thetas
from colonnade.conversations.linear.lbfgs_joint import Joint
from colonnade.conversations.linear.lbfgs_local import Curvature
from colonnade.conversations.linear.passes import Plan
from colonnade.conversations.linear.piggyback import Errands
from colonnade.conversations.linear.steps import StepSizes
from colonnade.conversations.linear.tune import Tuner
from colonnade.conversations.schedule import Round, Schedule
from colonnade.conversations.window import Window
from colonnade.errors import Diverged
from colonnade.job.rules import batch_of, choices_of, pairs_of
from colonnade.messages import Announce, Topic, tag_of
from colonnade.models.linear import rows_of
from colonnade.optim.estimators import ESTIMATORS, Svrg


@dataclass
class Trainer:
    context: Context
    schedule: Schedule
    plan: Plan
    window: Window
    block: Block
    curvature: Curvature | None
    evaluation: Evaluation
    pool: ThreadPoolExecutor | None
    delays: Delays
    tuner: Tuner | None
    steps: StepSizes
    joint: Joint | None = None  # one H over all blocks
    updates: int = 0
    exchanged: Counter[int] = field(default_factory=Counter)  # secure sums besides rounds, before a round
    _snapshots: int = 0
    _behind: bool = False

    # -- rounds -------------------------------------------------------------------------------------

    async def scores(self, batches: Sequence[Round]) -> list[Floats]:
        """Shares of neighbouring rounds that will come back as theta: note how old their weights will be."""
        first, last = batches[0], batches[-1]
        joined = await self.share(Round(first.number, first.epoch, first.start, last.end))
        for batch in batches:
            self.delays.read(batch.number, self.window.finished)
        shares = [joined[batch.start - first.start : batch.end - first.start] for batch in batches]
        if self.joint is None:
            return shares
        return [self.joint.load(batch, share) for batch, share in zip(batches, shares, strict=True)]

    async def share(self, batch: Round) -> Floats:
        """This block's share of the scores of some rows, with the weights of now."""
        if self.context.job.network.charge_forward:
            await self.charge([batch])
        scores: Floats = await self.compute(self.block.scores, batch)
        return scores

    @property
    def staleness(self) -> int:
        """Rounds beyond the window that a party may score while it is behind, so that none waits for it."""
        return (self.context.job.train.stale or 0) if self._behind else 0

    async def update(self, thetas: Thetas) -> None:
        """Take in thetas, as many as there are, and mark their rounds as finished."""
        await self.apply(thetas)
        self._behind = len(thetas) > 1  # others finish rounds faster than this party takes them in
        await self._finished([batch.number for batch, _ in thetas])

    async def apply(self, thetas: Thetas) -> None:
        """Thetas as one step of the own block."""
        await self.charge([batch for batch, _ in thetas])
        if self.joint is not None:
            for batch, reply in thetas:  # one H needs the same v at every party, so rounds are not joined
                self.joint.take(batch, reply)
        elif self.curvature is None:
            await self.compute(self.block.step, thetas, self.steps.faded_rate())
        else:
            v = self.block.estimate(thetas)
            if self.curvature.ready:
                self.block.w -= self.steps.faded_gamma() * self.curvature.local(v)
            else:
                self.block.w -= self.steps.faded_rate() * v
            self.curvature.first_order_step = self.steps.rate()
            self.curvature.watch(v, thetas[-1], self.steps.gamma())

    async def _finished(self, numbers: Sequence[int]) -> None:
        finished = self.window.finished
        for number in numbers:
            self.delays.apply(number, finished)
        self.updates += len(numbers)
        epoch = self.schedule.round(self.window.base).epoch
        self.window.finish(numbers)
        if (now := self.schedule.round(self.window.base).epoch) > epoch:
            self.delays.turn()
            self.block.forget_before(now)
            # a party that never has to wait for another must still let `measure` see these weights
            await asyncio.sleep(0)

    def reply(self, batch: Round, z: Floats) -> Floats:
        """What a dominator sends back: theta, and the answers to what rode with the scores."""
        order, _ = self.block.rows(batch.epoch)

        def theta_of(z: Floats) -> Floats:
            return self.theta(z, order[batch.start : batch.end], batch.number)

        return theta_of(z) if self.joint is None else self.joint.reply(batch, z, theta_of)

    def theta(self, z: Floats, rows: Rows, number: int) -> Floats:
        """dL/dz of these rows, at a party that holds the label."""
        y, loss = self.context.y, self.context.loss
        assert y is not None  # noqa: S101  only label holders are asked
        theta = loss.dz(z, y[rows])
        if not np.isfinite(theta).all():
            raise Diverged(f"theta of round {number} is not finite; use a smaller step or step = 'auto'")
        return theta

    # -- pauses -------------------------------------------------------------------------------------

    async def pauses(self) -> None:
        """Whatever the plan has at the gates: tuning, snapshots, curvature pairs."""
        async for gate in self.window.gates():
            await self.pause(gate)

    async def tune(self, gate: int = 0) -> None:
        """How steep the objective is at the weights of now, before a round."""
        if self.tuner is not None:
            before = self.tuner.exchanges
            self.steps.smoothness = await self.tuner.measure(self.block.w if gate else None)
            self.exchanged[gate] += self.tuner.exchanges - before
        if self.joint is not None:
            before = self.joint.exchanges
            await self.joint.pin()
            self.exchanged[gate] += self.joint.exchanges - before

    async def pause(self, gate: int, pullers: tuple[str, ...] = ()) -> None:
        per_epoch = self.plan.per_epoch
        if gate in {epoch * per_epoch for epoch in self.plan.tunings}:
            await self.tune(gate)
        if gate in {epoch * per_epoch for epoch in self.plan.snapshots}:
            await (self.pulled_snapshot(pullers) if pullers else self.snapshot())
        if self.curvature is not None and self.plan.pairs and (gate in self.plan.pairs or pullers):
            self.curvature.first_order_step = self.steps.rate()
            self.exchanged[gate] += await self.curvature.pair(gate, self.steps.gamma())

    async def pulled_snapshot(self, pullers: tuple[str, ...]) -> None:
        """SVRG's full pass where nothing is sent back: every label holder pulls all scores for itself."""
        n = self.schedule.rows
        scores = self.block.all_rows.scores(0, n, self.block.w)
        tags = {puller: tag_of(Topic.SNAPSHOT, self._snapshots + j) for j, puller in enumerate(pullers)}
        self._snapshots += len(pullers)
        for puller, tag in tags.items():
            if puller != self.context.me:
                await self.context.sum.sum(scores, root=puller, tag=tag)
        await self.charge_values(self.block.all_rows.values(0, n))
        if self.context.me in tags:
            z = await self.context.sum.sum(scores, root=self.context.me, tag=tags[self.context.me])
            assert z is not None  # noqa: S101  this party is the root
            await self.remember(self.theta(z, np.arange(n), 0))

    async def remember(self, theta: Floats) -> None:
        """SVRG's memory: theta of every row, and the mean gradient of the own block."""
        assert isinstance(self.block.estimator, Svrg)  # noqa: S101  the plan has snapshots for SVRG only
        n = self.schedule.rows
        await self.charge_values(self.block.all_rows.values(0, n))
        self.block.estimator.snapshot(theta, self.block.all_rows.gradient(0, n, theta) / n)

    async def snapshot(self) -> None:
        """SVRG's full pass: theta of every row at the weights of now, shared among the dominators."""
        context, n = self.context, self.schedule.rows
        roots = self.schedule.dominators
        scores = self.block.all_rows.scores(0, n, self.block.w)
        cuts = np.linspace(0, n, len(roots) + 1).astype(int)
        parts: dict[int, Floats] = {}
        tags = [tag_of(Topic.SNAPSHOT, self._snapshots + j) for j in range(len(roots))]
        self._snapshots += len(roots)
        for j, root in enumerate(roots):
            if root != context.me:
                await context.sum.sum(scores[cuts[j] : cuts[j + 1]], root=root, tag=tags[j])
        for j, root in enumerate(roots):
            rows = slice(cuts[j], cuts[j + 1])
            if root == context.me:
                z = await context.sum.sum(scores[rows], root=root, tag=tags[j])
                assert z is not None  # noqa: S101  this party is the root
                parts[j] = self.theta(z, np.arange(n)[rows], self.window.base)
                await context.net.broadcast(Announce(tags[j], parts[j]))
        for j, root in enumerate(roots):
            if root != context.me:
                parts[j] = (await context.net.recv(Announce, root, tags[j])).values
        theta = np.concatenate([parts[j] for j in range(len(roots))])
        await self.charge_values(self.block.all_rows.values(0, n))
        await self.remember(theta)

    # -- measuring ----------------------------------------------------------------------------------

    async def measure_at(self, rounds: int, *, final: bool) -> float | None:
        return await self.measure_now(Mark(self.plan.passes(rounds), self.rounds(rounds), final))

    def rounds(self, rounds: int, pullers: int = 1) -> int:
        """Secure sums one after another: rounds, snapshots as the rounds they replace, and all others."""
        others = sum(count for gate, count in self.exchanged.items() if gate < rounds)
        return self.plan.rounds(rounds) * pullers + others

    async def measure_now(self, mark: Mark) -> float | None:
        return await self.evaluation.measure(
            lambda: self.all_scores(final=mark.final), self.block.penalty(), mark
        )

    def all_scores(self, *, final: bool) -> list[Floats]:
        """This block's share of the scores of all training rows and, in the end, of the test rows."""
        scores = [self.block.all_rows.scores(0, self.schedule.rows, self.block.w)]
        if final and (test := self.context.test) is not None:
            scores.append(rows_of(test.X).scores(0, test.rows, self.block.w))
        return scores

    def outcome(self, rounds: int | None = None) -> Outcome:
        return Outcome(
            weights={"w": self.block.w},
            step=self.steps.rate() if self.curvature is None and self.joint is None else self.steps.gamma(),
            rounds=self.rounds(self.window.base) if rounds is None else rounds,
            updates=self.updates,
            evaluation=self.evaluation,
            delays=self.delays.counts,
        )

    # -- computing ----------------------------------------------------------------------------------

    async def charge(self, batches: Sequence[Round]) -> None:
        """In the simulated world, let the time pass that the kernels would take."""
        virtual = self.context.net.clock.virtual
        await self.charge_values(self.block.values(batches) if virtual else 0)

    async def charge_values(self, values: int) -> None:
        net = self.context.job.network
        await self.context.net.clock.work(net.us_per_call * 1e-6 + values * net.ns_per_value * 1e-9)

    async def compute(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """Run a kernel here, or on a worker thread that shares the weights without locks."""
        if self.pool is None:
            return work(*arguments)
        return await asyncio.get_running_loop().run_in_executor(self.pool, work, *arguments)


@contextmanager
def training(context: Context, dominators: tuple[str, ...], ahead: int) -> Iterator[Trainer]:
    """Everything a party needs to train its block as the job says."""
    job, train = context.job, context.job.train
    chosen = choices_of(job)
    rows = context.train.rows
    batch = batch_of(job, rows)
    per_epoch = -(-rows // batch)
    pair_every = job.direction.every or max(10, 5120 // batch)
    pairs = pairs_of(job) if chosen.direction == "lbfgs" else None
    plan = Plan.of(
        train.epochs,
        per_epoch,
        svrg=chosen.estimator == "svrg",
        tune=train.step == "auto" or pairs == "joint",
        pair_every=pair_every if pairs == "batch" else None,
    )
    schedule = Schedule(rows, batch, plan.epochs, job.seed, dominators, train.reshuffle)
    window = Window(ahead, schedule.rounds, plan.gates)
    classes = (train.classes,) if train.classes else ()
    estimator = ESTIMATORS[chosen.estimator](rows, (context.train.width, *classes))
    block = Block(context.train.X, schedule, estimator, context.regularizer, train.l2, classes)
    sample = schedule.order(0)
    delays = Delays(ahead - 1)  # k rounds under way are, on average, no later than that
    steps = StepSizes(
        job=job,
        schedule=schedule,
        window=window,
        delays=delays,
        estimator=chosen.estimator,
        shared=pairs == "joint",
        progress=lambda: min(1.0, window.finished / schedule.rounds),
    )
    with _workers(train.threads, virtual=context.net.clock.virtual) as pool:
        trainer = Trainer(
            context=context,
            schedule=schedule,
            plan=plan,
            window=window,
            block=block,
            curvature=Curvature(context, block, sample, pair_every) if pairs not in (None, "joint") else None,
            evaluation=context.evaluation(),
            pool=pool,
            delays=delays,
            tuner=Tuner(context, sample) if train.step == "auto" and pairs != "joint" else None,
            steps=steps,
        )
        if pairs == "joint":
            trainer.joint = Joint(context, block, sample, pair_every, Errands(ahead), steps.faded_gamma)
        yield trainer


@contextmanager
def _workers(threads: int, *, virtual: bool) -> Iterator[ThreadPoolExecutor | None]:
    """Real threads, except in the simulated world, where the clock has as many lanes instead."""
    if threads == 1 or virtual:
        yield None
        return
    with ThreadPoolExecutor(threads, thread_name_prefix="block") as pool:
        yield pool
