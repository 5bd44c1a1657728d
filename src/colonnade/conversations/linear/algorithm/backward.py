"""The backward conversation (VFB2, Algorithms 1-3): label holders compute theta, everybody updates.

A round: every party sends its share of the scores of the round's rows into the secure sum, whose root is
the round's dominator; the dominator computes theta = dL/dz and sends it to all; every party steps on its
own block. All parties know every dominator's rounds, so shares are pushed ahead and nobody waits to be asked.

Every dominator launches rounds at its own pace, a part of `ahead` of them at a time (`tickets`). With
`ahead` = 1, or one H over all blocks, dominators take turns instead (`window`), and with `ahead` = 1 the same
code is the synchronous algorithm.

What each side learns: a dominator learns the total score of its rows; every party learns theta of every
row, and with it, for the logistic loss, the label and the total score (docs/threat-model.md).
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass

from colonnade.arrays import Floats
from colonnade.conversations.context import Context, Outcome
from colonnade.conversations.evaluate import heed_stop, measure_at_marks
from colonnade.conversations.linear.parties.clear import Trainer
from colonnade.conversations.linear.parties.from_plan import trainer_of
from colonnade.conversations.linear.settings import LinearSettings
from colonnade.conversations.pacing.one_order import OneOrder
from colonnade.conversations.pacing.own_pace import OwnPace
from colonnade.conversations.pacing.priority_lock import PriorityLock, Urgency
from colonnade.conversations.pacing.schedule import Round
from colonnade.errors import ProtocolError
from colonnade.job.plan import Plan
from colonnade.messages import Backward, Topic, tag_of
from colonnade.net.expect import expect, floats


async def converse(context: Context[LinearSettings]) -> Outcome:
    """Train the party's block through the backward conversation."""
    trainer = trainer_of(context, context.plan.label_holders, own_pace=own_pace(context.plan))
    if not context.gates.position:
        await trainer.tune()
    trainer.checkpoints.begin()
    await BackwardConversation(context, trainer).run()
    return trainer.outcome()


def own_pace(plan: Plan[LinearSettings]) -> bool:
    """Return whether dominators launch rounds each at its own pace; or else they take turns.

    One batch at a time is one order of batches, and so is what one H over all blocks needs.
    """
    return plan.pace.ahead > 1 and len(plan.label_holders) > 1 and plan.settings.pairs != "joint"


@dataclass
class BackwardConversation:
    """One party's side: it sends shares, steps on thetas and, if it holds the label, dominates rounds."""

    context: Context[LinearSettings]
    trainer: Trainer

    def __post_init__(self) -> None:
        plan = self.context.plan
        self.net, self.sum = self.context.net, self.context.sum
        self.schedule, self.window = self.trainer.schedule, self.trainer.window
        # work is chosen when there is time for it: by then more rounds are open and more thetas have come
        self.worker = PriorityLock()
        self.joined = plan.network.join
        self.classes = self.trainer.block.w.shape[1:]
        # all parties must step in the same order where one H is over all blocks
        self.in_order = self.trainer.joint is not None
        # work on several rounds is done at once: their scores are one product, their thetas one update
        self.joins = plan.network.join and not self.in_order
        self.waiting: list[tuple[Round, Floats]] = []  # thetas of others that nobody has stepped on yet
        self.upcoming: dict[int, int] = {}  # the next round of every list to give shares to
        self.looked = -1  # what had changed in the window when no more of them could begin
        self.serving = False  # whoever steps on thetas of others gives the shares that this opens as well
        self.begun: dict[int, Round] = {}  # rounds of others whose theta is to come
        self.paces = len(self.schedule.dominators) if isinstance(self.window, OwnPace) else 0
        self.lists = self.schedule.given(self.net.me)
        # a share is kept while its round is under way, where rounds are across gates: it must not change
        self.keeps = bool(self.paces) and self.context.checkpoints is not None

    async def run(self) -> None:
        """Run all rounds to the end, and measure the model on the way."""
        me, dominators = self.net.me, self.schedule.dominators
        work = [self.push(), self.measure(), self.trainer.pauses()]
        if me in dominators:
            work.append(self.dominate())
        if set(dominators) - {me}:
            work.append(self.collaborate())
        work += self._ending()
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(step) for step in work]
            await self.window.ends()
            # the last measurement may take long, and nobody must wait for a theta meanwhile
            pushing, _measuring, *others = tasks
            for task in (pushing, *others):
                task.cancel()
        if isinstance(self.window, OwnPace):
            for number in self.window.strays():
                await self.sum.drop(tag_of(Topic.TRAIN, number))

    def _ending(self) -> list[Coroutine[None, None, None]]:
        """Return what tells this party where the run pauses or ends, or tells the others."""
        evaluator = self.context.evaluator
        match self.window:
            case OwnPace() as tickets if self.net.me == evaluator:
                return [tickets.legs.announce(self.net)]
            case OwnPace() as tickets:
                return [tickets.legs.heed(self.net, evaluator)]
            case OneOrder() as window if self.context.may_end_early and self.net.me != evaluator:
                return [heed_stop(self.net, window, evaluator)]
            case _:
                return []

    async def push(self) -> None:
        """Send shares of other dominators' rounds as early as these may begin (Algorithm 1)."""
        await self._give_again()
        self.upcoming = {place: self._next(numbers) for place, numbers in enumerate(self.lists)}
        self.looked = -1  # whoever has looked before did not know these
        while numbers := [number for number in self.upcoming.values() if not self.window.past(number)]:
            await self.give()
            await self.window.until(self._to_give, min(numbers))

    def _to_give(self) -> bool:
        """Return whether `push` has something to do: shares to give, or none any more."""
        return not self.serving and (self._may_give() or all(map(self.window.past, self.upcoming.values())))

    def _may_give(self) -> bool:
        """Return whether a round that this party has not given its share to may begin now."""
        if self.looked == self.window.changes:
            return False
        may_begin, extra = self.window.may_begin, self.trainer.staleness
        return any(may_begin(number, extra) for number in self.upcoming.values())

    async def give(self) -> None:
        """Send shares of all rounds that may begin now."""
        while self._may_give():
            async with self.worker.busy(Urgency.SHARES):
                shares = await self._scored()
            for batch, share in shares:
                await self._give_one(batch, share)

    async def _scored(self) -> list[tuple[Round, Floats]]:
        """Begin what may begin now, with this party's shares of it."""
        batches = self._opened()
        return list(zip(batches, await self.trainer.scores(batches), strict=True)) if batches else []

    def _give_one(self, batch: Round, share: Floats) -> Coroutine[None, None, None]:
        """Send the share of one round; its theta may come from now on."""
        dominators, number = self.schedule.dominators, batch.number
        self.begun[number] = batch
        if self.keeps:
            self.trainer.given[number] = share
        return self.sum.give(
            share, root=dominators[number % len(dominators)], tag=tag_of(Topic.TRAIN, number)
        )

    def _opened(self) -> list[Round]:
        """Begin every round that may begin now, of whoever is behind first; or one, if none are joined."""
        batches: list[Round] = []
        upcoming, extra, window = self.upcoming, self.trainer.staleness, self.window
        for place in sorted(upcoming, key=upcoming.__getitem__):
            number = upcoming[place]
            end = window.end(number, extra)
            while number < end and (self.joined or not batches) and window.begin(number, extra):
                batches.append(self.schedule.round(number))
                number = upcoming[place] = next(self.lists[place])
        if self.joined:
            self.looked = window.changes
        return batches

    async def _give_again(self) -> None:
        """Where a run goes on: send the shares that were under way, as they were, under new masks."""
        for number in self.window.under_way():
            if self.schedule.dominator(number) == self.net.me:
                continue
            batch, share = self.schedule.round(number), self.trainer.given.get(number)
            if share is None:
                (share,) = await self.trainer.scores([batch])
            await self._give_one(batch, share)

    def _next(self, numbers: Iterator[int]) -> int:
        """Return the first of these rounds that is not begun: where a run goes on, not the first of all."""
        begun = set(self.window.under_way())
        return next(number for number in numbers if number not in begun and not self.window.over(number))

    async def dominate(self) -> None:
        """Sum the scores of the own rounds, send theta to all, step (Algorithm 2, on a label holder)."""
        share: Floats | None = None
        for number in self.schedule.led(self.net.me):
            if self.window.over(number):  # before the run went on
                continue
            tag, batch = tag_of(Topic.TRAIN, number), self.schedule.round(number)
            share = self.trainer.given.get(number) if share is None else share
            if share is None:
                if not await self.window.opens(number, self.trainer.staleness):
                    return
                async with self.worker.busy(Urgency.OWN_ROUND):
                    (share,) = await self.trainer.scores([batch])
            if self.keeps:
                self.trainer.given[number] = share
            z = await self.sum.collect(share, tag=tag)
            theta, seen = self.trainer.reply(batch, z), self.seen
            self.trainer.tally.launched += 1
            await self.net.spread(Backward(tag, theta, seen))
            self.window.heard(number, seen)
            if self.window.holds_back:
                await self.window.due(number)
            share = await self.step_on((batch, theta))

    async def step_on(self, own: tuple[Round, Floats]) -> Floats | None:
        """Step on the theta of an own round, or let it wait for the next update.

        Returns the share of the next own round, if that may begin now.
        """
        if self.in_order:
            await self.update([own])
            return None
        if self.paces and self.trainer.staleness:
            self.waiting.append(own)
            self.net.nudge(Backward)
            return None
        async with self.worker.busy(Urgency.OWN_ROUND if self.joined else Urgency.THETAS):
            await self._apply([own, *self._taken()])
            number = own[0].number + len(self.schedule.dominators)
            if not self.window.open_to(number):
                return None
            (share,) = await self.trainer.scores([self.schedule.round(number)])
            return share

    async def collaborate(self) -> None:
        """Step on others' thetas (Algorithm 3, on every party); thetas that wait together are one update."""
        self.net.listen(Backward, self._hear)
        async with asyncio.TaskGroup() as updates:
            while True:
                if not self.waiting:
                    await self.net.arrival(Backward)
                    if self.joins and not self.trainer.staleness:
                        await asyncio.sleep(0)  # what others send in the same breath is joined with it
                if self.joins:
                    await self.work_off()
                    continue
                # each waits for its turn, while later ones keep arriving
                thetas, self.waiting = self.waiting, []
                for batch, theta in thetas:
                    await self.window.due(batch.number)
                    updates.create_task(self.update([(batch, theta)]))

    async def work_off(self) -> None:
        """Step on whatever thetas wait, when there is nothing more urgent to do, and give what that opens."""
        async with self.worker.busy(Urgency.THETAS):
            self.serving = True
            if thetas := self._taken():
                await self.trainer.update(thetas)
            shares = await self._scored()
        for batch, share in shares:
            await self._give_one(batch, share)
        await self.give()  # what has become possible while these were sent
        self.serving = False
        if self.waiting:
            await asyncio.sleep(0)  # `dominate` asks for the worker before this does so again
        if self.waiting and self.window.holds_back:
            await self.window.due(self.waiting[0][0].number)

    def _taken(self) -> list[tuple[Round, Floats]]:
        """Return all thetas that wait and are due, which now are the caller's to step on."""
        if not self.joins:
            return []
        here, self.waiting = self.waiting, []
        if not self.window.holds_back:
            return here
        due = [each for each in here if self.window.is_due(each[0].number)]
        if len(due) < len(here):
            self.waiting = [each for each in here if not self.window.is_due(each[0].number)]
        return due

    def _hear(self, sender: str, message: Backward) -> None:
        """Let a theta that has come wait for whoever has time to step on it.

        An error if the message is not what its sender may send.
        """
        number, seen, dominators = message.tag, message.seen, self.schedule.dominators
        if dominators[number % len(dominators)] != sender:
            raise ProtocolError(f"{sender} sent theta of round {number}, which it does not dominate")
        batch = self.begun.pop(number, None)
        if batch is None:
            raise ProtocolError(f"{sender} sent theta of round {number}, which is over or has not begun")
        # with one H the questions that ride along add to it, and how many is known when its turn comes
        due = floats(None) if self.in_order else floats(batch.end - batch.start, *self.classes)
        if due.wrong(message.theta):
            expect(sender, message, {"theta": due})
        if len(seen) != self.paces or (seen and min(seen) < 0):
            raise ProtocolError(f"{sender} sent {seen} with theta of round {number}")
        self.window.heard(number, seen)
        self.waiting.append((batch, message.theta))

    @property
    def seen(self) -> tuple[int, ...]:
        """How many rounds of every dominator are finished here, where each has its own pace."""
        return self.window.done if isinstance(self.window, OwnPace) else ()

    async def update(self, thetas: list[tuple[Round, Floats]]) -> None:
        """Step on thetas when there is time or, with one H over all blocks, when their round is due."""
        joint = self.trainer.joint
        if joint is not None:
            (batch, theta), dominator = thetas[0], self.schedule.dominator(thetas[0][0].number)
            await self.window.reaches(batch.number)
            if theta.size != (due := joint.reply_size(batch)):
                raise ProtocolError(f"{dominator} sent {theta.size} numbers with theta; {due} were due")
            await self.trainer.update(thetas)
        else:
            async with self.worker.busy(Urgency.THETAS):
                await self._apply(thetas)

    async def _apply(self, thetas: list[tuple[Round, Floats]]) -> None:
        """Step on thetas; `push` asks for the worker before anybody else has it again."""
        await self.trainer.update(thetas)
        if self.paces:
            await asyncio.sleep(0)

    async def measure(self) -> None:
        """Measure the model at its marks and at the end."""
        trainer = self.trainer
        await measure_at_marks(
            self.net, trainer.evaluation, trainer.marks, self.schedule, self.window, trainer.measure_at
        )
