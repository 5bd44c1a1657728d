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
from dataclasses import dataclass

from colonnade.arrays import Floats
from colonnade.conversations.context import Context, Outcome
from colonnade.conversations.evaluate import Marks, heed_stop, measure_at_marks
from colonnade.conversations.linear.settings import LinearSettings
from colonnade.conversations.linear.trainer import Trainer, training
from colonnade.conversations.schedule import Round
from colonnade.messages import Backward, Topic, tag_of


async def converse(context: Context[LinearSettings]) -> Outcome:
    """Train the party's block through the backward conversation."""
    with training(context, context.plan.label_holders) as trainer:
        await trainer.tune()
        await BackwardConversation(context, trainer).run()
    return trainer.outcome()


@dataclass
class BackwardConversation:
    """One party's side: it sends shares, steps on thetas and, if it holds the label, dominates rounds."""

    context: Context[LinearSettings]
    trainer: Trainer

    def __post_init__(self) -> None:
        plan = self.context.plan
        self.net, self.sum = self.context.net, self.context.sum
        self.schedule, self.window = self.trainer.schedule, self.trainer.window
        # a thread is given work only when it is free: by then more rounds are open and more thetas have come
        self.idle_threads = asyncio.Semaphore(plan.pace.threads)
        self.joined = plan.network.join

    async def run(self) -> None:
        """Run all rounds to the end, and measure the model on the way."""
        me, dominators = self.net.me, self.schedule.dominators
        work = [self.push(), self.measure(), self.trainer.pauses()]
        if me in dominators:
            work.append(self.dominate())
        if set(dominators) - {me}:
            work.append(self.collaborate())
        if self.context.may_end_early and me != self.context.evaluator:
            work.append(heed_stop(self.net, self.window))
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(step) for step in work]
            await self.window.ends()
            # the last measurement may take long, and nobody must wait for a theta meanwhile
            pushing, _measuring, *others = tasks
            for task in (pushing, *others):
                task.cancel()

    async def push(self) -> None:
        """Send shares of other dominators' rounds as early as the window allows (Algorithm 1)."""
        number = 0
        while number < self.schedule.rounds:
            if self.schedule.dominator(number) == self.net.me:
                number += 1
                continue
            if not await self.window.opens(number, self.trainer.staleness):
                return
            async with self.idle_threads:
                batches = [self.schedule.round(number)]
                number += 1
                # every round that may begin now: one product serves them all
                while self.joined and self.window.open_to(number, self.trainer.staleness):
                    batch = self.schedule.round(number)
                    if batch.epoch != batches[0].epoch or self.schedule.dominator(number) == self.net.me:
                        break
                    batches.append(batch)
                    number += 1
                shares = await self.trainer.scores(batches)
            for batch, share in zip(batches, shares, strict=True):
                root = self.schedule.dominator(batch.number)
                await self.sum.give(share, root=root, tag=tag_of(Topic.TRAIN, batch.number))

    async def dominate(self) -> None:
        """Sum the scores of the own rounds, send theta to all, step (Algorithm 2, on a label holder)."""
        for number in range(self.schedule.rounds):
            if self.schedule.dominator(number) != self.net.me or not await self.window.opens(number):
                continue
            tag, batch = tag_of(Topic.TRAIN, number), self.schedule.round(number)
            async with self.idle_threads:
                (share,) = await self.trainer.scores([batch])
            z = await self.sum.collect(share, tag=tag)
            theta = self.trainer.reply(batch, z)
            await self.net.spread(Backward(tag, theta))
            await self.update([(batch, theta)])

    async def collaborate(self) -> None:
        """Step on others' thetas (Algorithm 3, on every party); thetas that wait together are one update."""
        async with asyncio.TaskGroup() as updates:
            async for waiting in self.net.stream(Backward):
                if self.in_order or not self.joined:
                    # each waits for its turn, while later ones keep arriving
                    for theta in self._thetas(waiting):
                        updates.create_task(self.update([theta]))
                    continue
                await self.idle_threads.acquire()
                if self.net.waits(Backward):
                    waiting += await self.net.drain(Backward)
                if self.context.plan.pace.threads == 1:
                    await self.trainer.update(self._thetas(waiting))
                    self.idle_threads.release()
                else:
                    update = updates.create_task(self.trainer.update(self._thetas(waiting)))
                    update.add_done_callback(lambda _: self.idle_threads.release())

    def _thetas(self, waiting: list[tuple[str, Backward]]) -> list[tuple[Round, Floats]]:
        return [(self.schedule.round(message.tag), message.theta) for _, message in waiting]

    async def update(self, thetas: list[tuple[Round, Floats]]) -> None:
        """Step on thetas when a thread is free or, with one H over all blocks, when their round is due."""
        if self.in_order:
            await self.window.reaches(thetas[0][0].number)
            await self.trainer.update(thetas)
        else:
            async with self.idle_threads:
                await self.trainer.update(thetas)

    @property
    def in_order(self) -> bool:
        """Whether all parties must step in the same order: one H over all blocks needs that."""
        return self.trainer.joint is not None

    async def measure(self) -> None:
        """Measure the model at its marks and at the end."""
        schedule, context = self.schedule, self.context
        every = context.plan.pace.evaluate_every
        marks = Marks.of(every, schedule)
        await measure_at_marks(
            self.net, self.trainer.evaluation, marks, schedule, self.window, self.trainer.measure_at
        )
