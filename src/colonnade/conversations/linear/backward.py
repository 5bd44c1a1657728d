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
from colonnade.conversations.linear.trainer import Trainer, training
from colonnade.conversations.marks import heed_stop, measure_at_marks
from colonnade.conversations.schedule import Round
from colonnade.job.rules import batches_in_flight
from colonnade.messages import Backward, Topic, tag_of


async def converse(context: Context) -> Outcome:
    """Train the party's block through the backward conversation."""
    ahead = batches_in_flight(context.job, len(context.active))
    with training(context, context.active, ahead) as trainer:
        await trainer.tune()
        await BackwardConversation(context, trainer).run()
    return trainer.outcome()


@dataclass
class BackwardConversation:
    context: Context
    trainer: Trainer

    def __post_init__(self) -> None:
        self.net, self.sum = self.context.net, self.context.sum
        self.schedule, self.window = self.trainer.schedule, self.trainer.window
        # what a thread does next is decided when it is free: then most rounds are open, most thetas there
        self.hands = asyncio.Semaphore(self.context.job.train.threads)
        self.joined = self.context.job.network.join

    async def run(self) -> None:
        me, dominators = self.net.me, self.schedule.dominators
        work = [self.push(), self.measure(), self.trainer.pauses()]
        if me in dominators:
            work.append(self.dominate())
        if set(dominators) - {me}:
            work.append(self.collaborate())
        if self.context.target_loss is not None and me != self.context.evaluator:
            work.append(heed_stop(self.context, self.window))
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(step) for step in work]
            await self.window.ends()
            # the last measurement may take long, and nobody must wait for a theta meanwhile
            for task in tasks:
                if task is not tasks[1]:
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
            async with self.hands:
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
                await self.sum.sum(share, root=root, tag=tag_of(Topic.TRAIN, batch.number))

    async def dominate(self) -> None:
        """Algorithm 2, on an active party."""
        for number in range(self.schedule.rounds):
            if self.schedule.dominator(number) != self.net.me or not await self.window.opens(number):
                continue
            tag, batch = tag_of(Topic.TRAIN, number), self.schedule.round(number)
            async with self.hands:
                (share,) = await self.trainer.scores([batch])
            z = await self.sum.sum(share, root=self.net.me, tag=tag)
            assert z is not None  # noqa: S101  this party is the root
            theta = self.trainer.reply(batch, z)
            await self.net.broadcast(Backward(tag, theta))
            await self.update([(batch, theta)])

    async def collaborate(self) -> None:
        """Algorithm 3, on every party: whatever thetas wait become one update, on any idle thread."""
        async with asyncio.TaskGroup() as updates:
            async for waiting in self.net.stream(Backward):
                if self.in_order or not self.joined:
                    # each waits for its turn, while later ones keep arriving
                    for theta in self._thetas(waiting):
                        updates.create_task(self.update([theta]))
                    continue
                await self.hands.acquire()
                if self.net.waits(Backward):
                    waiting += await self.net.drain(Backward)
                if self.context.job.train.threads == 1:
                    await self.trainer.update(self._thetas(waiting))
                    self.hands.release()
                else:
                    update = updates.create_task(self.trainer.update(self._thetas(waiting)))
                    update.add_done_callback(lambda _: self.hands.release())

    def _thetas(self, waiting: list[tuple[str, Backward]]) -> list[tuple[Round, Floats]]:
        return [(self.schedule.round(message.tag), message.theta) for _, message in waiting]

    async def update(self, thetas: list[tuple[Round, Floats]]) -> None:
        if self.in_order:
            await self.window.reaches(thetas[0][0].number)
            await self.trainer.update(thetas)
        else:
            async with self.hands:
                await self.trainer.update(thetas)

    @property
    def in_order(self) -> bool:
        """One H over all blocks: every party must step on the same gradients in the same order."""
        return self.trainer.joint is not None

    async def measure(self) -> None:
        async def now(rounds: int, final: bool) -> float | None:
            return await self.trainer.measure_at(rounds, final=final)

        await measure_at_marks(self.context, self.schedule, self.window, now)
