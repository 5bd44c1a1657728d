"""The pull conversation (AsySQN, AFSGD/AFSVRG/AFSAGA-VP, FD-SVRG): a party pulls scores for itself.

Every party that holds the label runs rounds of its own: the others send their shares of the scores of
its rows, the sum reaches it alone, it computes theta and steps on its own block only. Nothing goes back,
so the blocks of parties without the label are never trained. Parties do not wait for each other: each
asks for its next batches as it finishes old ones, `ahead` at a time, and serves the others in between; a
fast party makes more steps than a slow one. In the synchronous schedule all do the same round together.

Work comes in stints: as many updates as all label holders make in one pass over the rows. At the end of
a stint everybody finishes the update it is at, the model is measured, and whatever needs all parties at
one point (tuning, SVRG's snapshot) is done. Scores that were asked for and not used yet are used in the
next stint: nobody waits until a slow party has worked them off.

What each side learns: a label holder learns the total score of every row; the others learn nothing but
which batches were asked for.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from colonnade.arrays import Floats
from colonnade.conversations.context import Context, Outcome
from colonnade.conversations.evaluate import Mark
from colonnade.conversations.linear.trainer import Trainer, training
from colonnade.conversations.schedule import Round
from colonnade.errors import SumError
from colonnade.job.rules import batches_in_flight
from colonnade.messages import Announce, Ask, Stop, Topic, tag_of

NOTHING = np.zeros(0)


async def converse(context: Context) -> Outcome:
    """Train the own block, if the label is here, and serve the others in any case."""
    pullers = context.active
    ahead = batches_in_flight(context.job, 1)
    with training(context, pullers, ahead) as trainer:
        trainer.steps.updates_per_round = len(pullers)
        await trainer.tune()
        conversation = PullConversation(context, trainer, pullers)
        trainer.steps.progress = conversation.progress
        await conversation.run()
    return trainer.outcome(conversation.rounds)


@dataclass
class PullConversation:
    context: Context
    trainer: Trainer
    pullers: tuple[str, ...]
    stint: int = 0
    begun: int = 0  # own rounds asked for
    done: int = 0  # own rounds finished
    known: dict[str, int] = field(init=False)  # rounds that every puller is known to have finished
    fetched: dict[int, Floats] = field(default_factory=dict)  # scores of own rounds that are not finished

    def __post_init__(self) -> None:
        self.net, self.sum = self.context.net, self.context.sum
        self.schedule, self.plan = self.trainer.schedule, self.trainer.plan
        self.ahead = self.trainer.window.ahead
        self.known = dict.fromkeys(self.pullers, 0)
        # by stint: the word to stop may come before a slow party has even begun that stint
        self.stops: defaultdict[int, asyncio.Event] = defaultdict(asyncio.Event)

    @property
    def stopping(self) -> asyncio.Event:
        return self.stops[self.stint]

    @property
    def rounds(self) -> int:
        """Secure sums for all label holders together, up to the end of this stint."""
        return self.trainer.rounds((self.stint + 1) * self.plan.per_epoch, len(self.pullers))

    def progress(self) -> float:
        return min(1.0, sum(self.known.values()) / (self.schedule.rounds * len(self.pullers)))

    async def run(self) -> None:
        serving = asyncio.ensure_future(self.serve())
        heeding = asyncio.ensure_future(self.heed())
        try:
            for stint in range(self.plan.epochs):
                self.stint = stint
                await self._guard(self.together(), serving, heeding)
                if await self._guard(self.measure(), serving, heeding):
                    break
        finally:
            for task in (serving, heeding):
                task.cancel()
            await asyncio.gather(serving, heeding, return_exceptions=True)

    async def _guard(self, work: object, *background: asyncio.Task[None]) -> bool:
        """Wait for the work, or for the first failure behind it."""
        task = asyncio.ensure_future(work)  # type: ignore[call-overload]
        try:
            finished, _ = await asyncio.wait({task, *background}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            task.cancel()  # and look at what it raised, also where this party is being ended at the same time
            await asyncio.gather(task, return_exceptions=True)
        # several may have failed together; every exception must be looked at, the first is raised
        failures = [error for each in finished if (error := each.exception()) is not None]
        if failures:
            raise failures[0]
        return bool(task.result())

    async def together(self) -> None:
        """One stint of training and the pause before it."""
        self.trainer.delays.turn()
        await self.trainer.pause(self.stint * self.plan.per_epoch, self.pullers)
        if self.context.preset.schedule == "sync":
            await self.in_step()
        else:
            await self.at_own_pace()

    # -- asynchronous -------------------------------------------------------------------------------

    async def at_own_pace(self) -> None:
        if self.net.me in self.pullers:
            while self.begun < self.done + self.ahead:
                await self.ask()
            while not self.stopping.is_set():
                await self.pull(self.done)
                if not self.stopping.is_set():
                    await self.ask()
                await self.count()
            # all take part in the sum of whatever was asked for, so it is fetched even if nobody needs it
            for number in range(self.done, self.begun):
                self.fetched[number] = await self.scores(number)
        # a party without the label only serves, however long the stint takes
        await self.stopping.wait()
        # everybody serves until everybody has got what it asked for
        tag = tag_of(Topic.PAUSE, self.stint)
        await self.net.broadcast(Announce(tag, NOTHING))
        await self.net.gather(Announce, tag)

    async def ask(self) -> None:
        await self.net.broadcast(Ask(self.tag(self.net.me, self.begun)))
        self.trainer.delays.read(self.begun, sum(self.known.values()))
        self.begun += 1

    async def pull(self, number: int) -> None:
        """One own round: the scores of its rows, theta, a step on the own block."""
        z = await self.scores(number)
        self.fetched.pop(number, None)
        await self.step(self.batch(self.net.me, number), z)

    async def scores(self, number: int) -> Floats:
        """The scores of an own round, all parties' shares together."""
        if (known := self.fetched.get(number)) is not None:
            return known
        me = self.net.me
        share = await self.trainer.share(self.batch(me, number))
        z = await self.sum.sum(share, root=me, tag=self.tag(me, number))
        assert z is not None  # noqa: S101  this party is the root
        return z

    async def step(self, batch: Round, z: Floats) -> None:
        order, _ = self.trainer.block.rows(batch.epoch)
        theta = self.trainer.theta(z, order[batch.start : batch.end], batch.number)
        await self.trainer.apply([(batch, theta)])
        self.trainer.delays.apply(batch.number, sum(self.known.values()))
        self.trainer.updates += 1
        self.done += 1
        self.known[self.net.me] = self.done
        self.trainer.block.forget_before(min(self.known.values()) // self.plan.per_epoch - 1)

    async def serve(self) -> None:
        """Send the own share of whatever batches the others ask for."""
        async for waiting in self.net.stream(Ask, patient=True):
            for sender, message in waiting:
                number, index = divmod(message.tag, len(self.pullers))
                if self.pullers[index] != sender:
                    raise SumError(f"{sender} asked for scores of a batch of {self.pullers[index]}")
                self.known[sender] = max(0, number - self.ahead + 1)
                share = await self.trainer.share(self.batch(sender, number))
                await self.sum.sum(share, root=sender, tag=message.tag)
            await self.count()

    async def count(self) -> None:
        """The evaluator ends a stint when all together have made their updates."""
        quota = (self.stint + 1) * self.plan.per_epoch * len(self.pullers)
        if self.net.me != self.context.evaluator or self.stopping.is_set():
            return
        if sum(self.known.values()) >= quota:
            self.stopping.set()
            await self.net.broadcast(Stop(self.stint))

    async def heed(self) -> None:
        async for waiting in self.net.stream(Stop, patient=True):
            for _, message in waiting:
                self.stops[message.at].set()

    # -- synchronous --------------------------------------------------------------------------------

    async def in_step(self) -> None:
        """All label holders pull the same rows, step, and go on: every sum waits for every party."""
        me = self.net.me
        for number in range(self.stint * self.plan.per_epoch, (self.stint + 1) * self.plan.per_epoch):
            batch = self.schedule.round(number)
            share = await self.trainer.share(batch)
            for puller in self.pullers:
                if puller != me:
                    await self.sum.sum(share, root=puller, tag=self.tag(puller, number))
            if me in self.pullers:
                self.trainer.delays.read(number, sum(self.known.values()))
                z = await self.sum.sum(share, root=me, tag=self.tag(me, number))
                assert z is not None  # noqa: S101  this party is the root
                await self.step(batch, z)
        self.known = dict.fromkeys(self.pullers, (self.stint + 1) * self.plan.per_epoch)

    # -- both ---------------------------------------------------------------------------------------

    def tag(self, puller: str, number: int) -> int:
        return tag_of(Topic.TRAIN, number * len(self.pullers) + self.pullers.index(puller))

    def batch(self, puller: str, number: int) -> Round:
        """All read the rows of an epoch in one order, each from a place of its own."""
        offset = self.pullers.index(puller) * self.plan.per_epoch // len(self.pullers)
        return self.schedule.round(number, offset)

    async def measure(self) -> bool:
        """The model after this stint; True when the run is over."""
        last = self.stint + 1 == self.plan.epochs
        target = self.context.target_loss
        rounds = (self.stint + 1) * self.plan.per_epoch
        every = int(self.context.job.train.evaluate_every) or self.plan.epochs
        if (self.stint + 1) % every and not last:
            return False
        # any mark may be the last one where a target can end the run
        final = last or target is not None
        mark = Mark(self.plan.passes(rounds), self.rounds, final)
        loss = await self.trainer.measure_now(mark)
        if target is None or last:
            return last
        tag = tag_of(Topic.PAUSE, self.plan.epochs + self.stint)
        if loss is not None:
            reached = np.array([float(loss <= target)])
            await self.net.broadcast(Announce(tag, reached))
        else:
            reached = (await self.net.recv(Announce, self.context.evaluator, tag)).values
        return bool(reached[0])
