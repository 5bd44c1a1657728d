"""The backward conversation (VFB2, Algorithms 1-3): label holders compute theta, everybody updates.

A round: every party sends its share of the scores of the round's rows into the secure sum, whose root is
the round's dominator; the dominator computes theta = dL/dz and sends it to all; every party steps on its
own block. Rounds overlap: all parties know the schedule, so shares are pushed up to `ahead` rounds before
their turn and nobody waits to be asked. With `ahead` = 1 the same code is the synchronous algorithm.

What each side learns: a dominator learns the total score of its rows; every party learns theta of every
row, and with it, for the logistic loss, the label and the total score (docs/threat-model.md).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from colonnade.conversations.block import Block, Delays
from colonnade.conversations.context import Context, Outcome
from colonnade.conversations.evaluate import Evaluation, Mark
from colonnade.conversations.schedule import Round, Schedule
from colonnade.conversations.tune import rate_of
from colonnade.conversations.window import Window
from colonnade.errors import Diverged
from colonnade.messages import Backward, Stop, Topic, tag_of
from colonnade.models.linear import rows_of
from colonnade.optim.sgd import Sgd
from colonnade.presets import batches_in_flight

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class WorkCost:
    """Virtual seconds that the simulated world charges for touching `values` stored numbers."""

    ns_per_value: float
    us_per_call: float

    def seconds(self, values: int) -> float:
        return self.us_per_call * 1e-6 + values * self.ns_per_value * 1e-9


async def converse(context: Context) -> Outcome:
    """Train the party's block through the backward conversation."""
    train = context.job.train
    schedule = Schedule(context.train.rows, train.batch, train.epochs, context.job.seed, context.active)
    with _workers(train.threads, virtual=context.net.clock.virtual) as pool:
        conversation = BackwardConversation(
            context=context,
            schedule=schedule,
            window=Window(batches_in_flight(context.job, len(context.active)), schedule.rounds),
            block=Block(context.train.X, schedule, Sgd(), context.regularizer, train.l2),
            rate=await rate_of(context, sample=schedule.order(0)),
            evaluation=context.evaluation(),
            cost=WorkCost(context.job.network.ns_per_value, context.job.network.us_per_call),
            pool=pool,
        )
        await conversation.run()
    return Outcome(
        weights={"w": conversation.block.w},
        step=conversation.rate(conversation.delays.recent()),
        rounds=conversation.window.base,
        updates=conversation.updates,
        evaluation=conversation.evaluation,
        delays=conversation.delays.counts,
    )


@dataclass
class BackwardConversation:
    context: Context
    schedule: Schedule
    window: Window
    block: Block
    rate: Callable[[int], float]  # the step for gradients that are this many updates old
    evaluation: Evaluation
    cost: WorkCost
    pool: Executor | None
    updates: int = 0
    delays: Delays = field(init=False)

    def __post_init__(self) -> None:
        self.net = self.context.net
        self.sum = self.context.sum
        self.threads = self.context.job.train.threads
        self.delays = Delays(self.window.delay_bound)

    async def run(self) -> None:
        me, dominators = self.net.me, self.schedule.dominators
        work = [self.push(), self.measure()]
        if me in dominators:
            work.append(self.dominate())
        if set(dominators) - {me}:
            work.append(self.collaborate())
        if self.context.target_loss is not None and me != self.context.evaluator:
            work.append(self.heed())
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(step) for step in work]
            await self.window.ends()
            await tasks[1]
            for task in tasks:
                task.cancel()

    async def push(self) -> None:
        """Send shares of other dominators' rounds as early as the window allows (Algorithm 1)."""
        for number in range(self.schedule.rounds):
            root = self.schedule.dominator(number)
            if root == self.net.me:
                continue
            if not await self.window.opens(number):
                return
            await self.sum.sum(await self.scores(number), root=root, tag=tag_of(Topic.TRAIN, number))

    async def dominate(self) -> None:
        """Algorithm 2, on an active party."""
        y, loss = self.context.y, self.context.loss
        assert y is not None  # noqa: S101  only label holders dominate
        for number in range(self.schedule.rounds):
            if self.schedule.dominator(number) != self.net.me or not await self.window.opens(number):
                continue
            tag = tag_of(Topic.TRAIN, number)
            z = await self.sum.sum(await self.scores(number), root=self.net.me, tag=tag)
            assert z is not None  # noqa: S101  this party is the root
            batch = self.schedule.round(number)
            order, _ = self.block.rows(batch.epoch)
            theta = loss.dz(z, y[order[batch.start : batch.end]])
            if not np.isfinite(theta).all():
                raise Diverged(f"theta of round {number} is not finite; use a smaller step or step = 'auto'")
            await self.net.broadcast(Backward(tag, theta))
            await self.update([(batch, theta)])

    async def collaborate(self) -> None:
        """Algorithm 3, on every party: whatever thetas wait become one update, on any idle thread."""
        idle = asyncio.Semaphore(self.threads)
        async with asyncio.TaskGroup() as updates:
            async for waiting in self.net.stream(Backward):
                thetas = [(self.schedule.round(message.tag), message.theta) for _, message in waiting]
                if self.threads == 1:
                    await self.update(thetas)
                    continue
                await idle.acquire()
                updates.create_task(self.update(thetas)).add_done_callback(lambda _: idle.release())

    async def measure(self) -> None:
        """Evaluate at the end of every `evaluate_every`-th epoch, and at the end of the run."""
        every = self.context.job.train.evaluate_every or self.schedule.epochs
        target = self.context.target_loss
        epoch, final = 0, False
        while not final:
            epoch = min(epoch + every, self.schedule.epochs)
            reached = await self.window.reaches(epoch * self.schedule.per_epoch)
            final = not reached or epoch == self.schedule.epochs
            rounds = epoch * self.schedule.per_epoch if reached else self.window.base
            epoch = epoch if reached else rounds // self.schedule.per_epoch
            loss = await self.evaluation.measure(
                partial(self.all_scores, final=final), self.block.penalty(), Mark(epoch, rounds, final)
            )
            if loss is not None and target is not None and loss <= target and not final:
                # no theta of a round that we have not begun can exist, so nobody is past this one
                stop = min(self.window.begun + self.window.ahead, self.schedule.rounds)
                self.window.stop_at(stop)
                await self.net.broadcast(Stop(stop))

    def all_scores(self, *, final: bool) -> list[Floats]:
        """This block's share of the scores of all training rows and, in the end, of the test rows."""
        tables = (
            [self.context.train, self.context.test] if final and self.context.test else [self.context.train]
        )
        return [rows_of(table.X).scores(0, table.rows, self.block.w) for table in tables if table]

    async def heed(self) -> None:
        for _, message in await self.net.drain(Stop, patient=True):
            self.window.stop_at(message.at)

    async def scores(self, number: int) -> Floats:
        batch = self.schedule.round(number)
        await self.charge([batch])
        self.delays.read(number, self.window.finished)
        scores: Floats = await self.compute(self.block.scores, batch)
        return scores

    async def update(self, thetas: Sequence[tuple[Round, Floats]]) -> None:
        batches = [batch for batch, _ in thetas]
        await self.charge(batches)
        await self.compute(self.block.step, thetas, self.rate(self.delays.recent()))
        finished = self.window.finished
        for batch in batches:
            self.delays.apply(batch.number, finished)
        self.updates += len(batches)
        epoch = self.schedule.round(self.window.base).epoch
        self.window.finish(batch.number for batch in batches)
        if (now := self.schedule.round(self.window.base).epoch) > epoch:
            self.delays.turn()
            self.block.forget_before(now)
            # a party that never has to wait for another must still let `measure` see these weights
            await asyncio.sleep(0)

    async def charge(self, batches: Sequence[Round]) -> None:
        """In the simulated world, let the time pass that the kernels would take."""
        if self.net.clock.virtual:
            await self.net.clock.work(self.cost.seconds(self.block.values(batches)))

    async def compute(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """Run a kernel here, or on a worker thread that shares the weights without locks."""
        if self.pool is None:
            return work(*arguments)
        return await asyncio.get_running_loop().run_in_executor(self.pool, work, *arguments)


@contextmanager
def _workers(threads: int, *, virtual: bool) -> Iterator[ThreadPoolExecutor | None]:
    """Real threads, except in the simulated world, where the clock has as many lanes instead."""
    if threads == 1 or virtual:
        yield None
        return
    with ThreadPoolExecutor(threads, thread_name_prefix="block") as pool:
        yield pool
