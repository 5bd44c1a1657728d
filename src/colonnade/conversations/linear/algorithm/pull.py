"""The pull conversation (AsySQN, AFSGD/AFSVRG/AFSAGA-VP, FD-SVRG): a party pulls scores for itself.

Every party that holds the label runs rounds of its own: the others send their shares of the scores of
its rows, the sum reaches it alone, it computes theta and steps on its own block only. Nothing goes back,
so the blocks of parties without the label are never trained. Parties do not wait for each other: each
asks for its next batches as it finishes old ones, `ahead` at a time, and serves the others in between; a
fast party makes more steps than a slow one. In the synchronous schedule all do the same round together.

Delays are bounded where the job says so (`max_delay`): then no party makes an update while it is more than
`lead` rounds ahead of the slowest. With m label holders, `ahead` batches in flight and a lead of d a batch
is at most (ahead - 1) + (m - 1) (ahead + 1 + 2 d) updates late (`delay_bound`).

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
from collections.abc import Coroutine
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from colonnade.arrays import Floats
from colonnade.conversations.context import Context, Outcome
from colonnade.conversations.evaluate import Mark
from colonnade.conversations.linear.parties.from_plan import Training, training_of
from colonnade.conversations.linear.settings import LinearSettings
from colonnade.conversations.pacing.delay_bound import UNBOUNDED
from colonnade.conversations.pacing.delays import Lateness
from colonnade.conversations.pacing.schedule import Round
from colonnade.messages import Announce, Ask, Stop, Topic, tag_of
from colonnade.net.expect import floats, out_of_turn
from colonnade.state import Declared

NOTHING = np.zeros(0)

T = TypeVar("T")


def delay_bound(ahead: int, label_holders: int, lead: int) -> int | None:
    """Return the most updates that a batch can be late if nobody is over `lead` rounds ahead; None: no bound.

    From the moment that a party asks for a batch to the moment that it steps on it, it makes ahead - 1 other
    steps of its own. Another party was at most lead + 1 rounds behind at the first moment and is at most
    lead + 1 ahead at the second, and the own rounds between.

    >>> delay_bound(1, 3, 0), delay_bound(2, 1, UNBOUNDED), delay_bound(1, 3, UNBOUNDED)
    (4, 1, None)
    """
    others = label_holders - 1
    if others and lead >= UNBOUNDED:
        return None
    return (ahead - 1) + (others * (ahead + 1 + 2 * lead) if others else 0)


async def converse(context: Context[LinearSettings]) -> Outcome:
    """Train the own block, if this party holds the label, and send others the shares that they ask for."""
    pullers = context.plan.label_holders
    training = training_of(context)
    steps = training.party.steps
    steps.blocks = steps.updates_per_round = len(pullers)
    if not context.gates.position:
        await training.pauses.tune()
    conversation = PullConversation(context, training)
    steps.progress = conversation.progress
    await conversation.run()
    return training.measurement.outcome(
        conversation.rounds, conversation.lateness, ended_early=conversation.state.ended_early
    )


@dataclass
class PullState:
    """How far every party is, and the scores of own rounds that are not used yet."""

    known: dict[str, int]  # rounds that every puller is known to have finished
    stint: int = 0
    begun: int = 0  # own rounds asked for
    done: int = 0  # own rounds finished
    fetched: dict[int, Floats] = field(default_factory=dict)
    ended_early: bool = False
    served: dict[str, int] = field(default_factory=dict)  # batches that every other puller has asked for
    stopped: int = 0  # stints that the evaluator has ended


class PullConversation:
    """One party's side: it pulls scores for itself, if it holds the label, and serves the others."""

    STATE = Declared(kept=("state",), remade=("moved", "stops"))

    def __init__(self, context: Context[LinearSettings], training: Training) -> None:
        self.context, self.training, self.party = context, training, training.party
        self.net, self.sum = context.net, context.sum
        self.schedule, self.timetable = training.party.schedule, training.pauses.timetable
        self.pullers = context.plan.label_holders
        self.state = PullState(known=dict.fromkeys(self.pullers, 0))
        self.moved = asyncio.Event()  # somebody finished a round, or the stint ends
        # by stint: the word to stop may come before a slow party has even begun that stint
        self.stops: defaultdict[int, asyncio.Event] = defaultdict(asyncio.Event)

    @property
    def stopping(self) -> asyncio.Event:
        """Set when the evaluator has ended this stint."""
        return self.stops[self.state.stint]

    @property
    def rounds(self) -> int:
        """Secure sums for all label holders together, up to the end of this stint."""
        return self.training.measurement.sums(
            (self.state.stint + 1) * self.timetable.per_epoch, len(self.pullers)
        )

    @property
    def lateness(self) -> Lateness:
        """The bound of delays, and the longest: theta is used where it is computed, so tau_2 is nothing."""
        pace, lead = self.context.plan.pace, self.context.plan.settings.lead
        latest = max(self.party.steps.delays.counts, default=0)
        if pace.schedule == "sync":
            return Lateness(0, latest, 0)
        return Lateness(delay_bound(pace.ahead, len(self.pullers), lead), latest, 0)

    def progress(self) -> float:
        """Return the part of the run's updates that is done, from 0 to 1."""
        return min(1.0, sum(self.state.known.values()) / (self.schedule.rounds * len(self.pullers)))

    async def run(self) -> None:
        """Train stint by stint, measure after each, and serve the others all the while."""
        gates = self.context.gates
        gates.keep(self)
        gates.begin(1)
        serving = asyncio.ensure_future(self.serve())
        heeding = asyncio.ensure_future(self.heed())
        try:
            await self._guard(gates.realign(), serving, heeding)
            for stint in range(gates.position, self.timetable.epochs):
                self.state.stint = stint
                await self._guard(self.together(), serving, heeding)
                if await self._guard(self.measure(), serving, heeding):
                    break
                if gates.due(stint + 1):
                    await self._guard(gates.reached(stint + 1), serving, heeding)
        finally:
            for task in (serving, heeding):
                task.cancel()
            await asyncio.gather(serving, heeding, return_exceptions=True)

    async def _guard(self, work: Coroutine[None, None, T], *background: asyncio.Task[None]) -> T:
        """Return the result of some work; a task in the background that fails meanwhile ends it with its
        error."""
        task = asyncio.ensure_future(work)
        try:
            finished, _ = await asyncio.wait({task, *background}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            task.cancel()  # and look at what it raised, also where this party is being ended at the same time
            await asyncio.gather(task, return_exceptions=True)
        # several may have failed together; every exception must be looked at, the first is raised
        failures = [error for each in finished if (error := each.exception()) is not None]
        if failures:
            raise failures[0]
        return task.result()

    async def together(self) -> None:
        """Make the pause before a stint, then train until the stint ends."""
        self.party.steps.delays.turn()
        await self.training.pauses.make(self.state.stint * self.timetable.per_epoch, self.pullers)
        if self.context.plan.pace.schedule == "sync":
            await self.in_step()
        else:
            await self.at_own_pace()

    # -- asynchronous -------------------------------------------------------------------------------

    async def at_own_pace(self) -> None:
        """Pull, step and serve until the evaluator ends the stint."""
        if self.net.me in self.pullers:
            while self.state.begun < self.state.done + self.context.plan.pace.ahead:
                await self.ask()
            while await self.may_go_on():
                await self.pull(self.state.done)
                if not self.stopping.is_set():
                    await self.ask()
                await self.count()
            # all take part in the sum of whatever was asked for, so it is fetched even if nobody needs it
            for number in range(self.state.done, self.state.begun):
                self.state.fetched[number] = await self.scores(number)
        # a party without the label only serves, however long the stint takes
        await self.stopping.wait()
        # everybody serves until everybody has got what it asked for
        tag = tag_of(Topic.PAUSE, self.state.stint)
        await self.net.broadcast(Announce(tag, NOTHING))
        await self.net.gather(Announce, tag, values=floats(0))

    async def may_go_on(self) -> bool:
        """Wait until this party is not too far ahead of the slowest; False if the stint ends meanwhile."""
        state, lead = self.state, self.context.plan.settings.lead
        while state.done - min(state.known.values()) > lead and not self.stopping.is_set():
            self.moved.clear()
            await self.moved.wait()
        return not self.stopping.is_set()

    async def ask(self) -> None:
        """Ask all parties for their shares of the next own round."""
        await self.net.broadcast(Ask(self.tag(self.net.me, self.state.begun)))
        self.party.steps.delays.read(self.state.begun, sum(self.state.known.values()))
        self.state.begun += 1

    async def pull(self, number: int) -> None:
        """Make one own round: fetch the scores of its rows, compute theta, step on the own block."""
        z = await self.scores(number)
        self.state.fetched.pop(number, None)
        await self.step(self.batch(self.net.me, number), z)

    async def scores(self, number: int) -> Floats:
        """Return the total scores of an own round, summed over all parties or kept from the stint before."""
        if (known := self.state.fetched.get(number)) is not None:
            return known
        me = self.net.me
        share = await self.party.share(self.batch(me, number))
        return await self.sum.collect(share, tag=self.tag(me, number))

    async def step(self, batch: Round, z: Floats) -> None:
        """Step on the own block from the total scores of a batch."""
        rows = self.party.block.places(batch)
        theta = self.context.label_holder.theta(z, rows, batch.number)
        await self.party.apply([(batch, theta)])
        self.party.steps.delays.apply(batch.number, sum(self.state.known.values()))
        self.party.tally.updates += 1
        self.party.tally.launched += 1
        self.state.done += 1
        self.state.known[self.net.me] = self.state.done
        self.party.block.keep(self.epochs())

    async def serve(self) -> None:
        """Send the own shares of the batches that others ask for, until cancelled."""
        async for waiting in self.net.stream(Ask, patient=True):
            for sender, message in waiting:
                number = self._asked_for(sender, message)
                self.state.known[sender] = max(0, number - self.context.plan.pace.ahead + 1)
                share = await self.party.share(self.batch(sender, number))
                await self.sum.give(share, root=sender, tag=message.tag)
            self.moved.set()
            await self.count()

    def _asked_for(self, sender: str, message: Ask) -> int:
        """Return the number of the batch that a label holder asks for: its next one, no further than it may
        be."""
        number = self.state.served.get(sender, 0)
        if sender not in self.pullers or message.tag != self.tag(sender, number):
            raise out_of_turn(sender, message, "it is not the batch that it may ask for now")
        per_epoch, ahead = self.timetable.per_epoch, self.context.plan.pace.ahead
        most = self.timetable.epochs * per_epoch * len(self.pullers) + ahead
        if number >= most:
            raise out_of_turn(sender, message, "it has asked for all batches of the run")
        self.state.served[sender] = number + 1
        return number

    async def count(self) -> None:
        """End the stint once all parties together have made its updates; only the evaluator does."""
        quota = (self.state.stint + 1) * self.timetable.per_epoch * len(self.pullers)
        if self.net.me != self.context.evaluator or self.stopping.is_set():
            return
        if sum(self.state.known.values()) >= quota:
            self.stopping.set()
            self.moved.set()
            await self.net.broadcast(Stop(self.state.stint))

    async def heed(self) -> None:
        """End stints when the evaluator says so."""
        async for waiting in self.net.stream(Stop, patient=True):
            for sender, message in waiting:
                if sender != self.context.evaluator or message.at != self.state.stopped:
                    raise out_of_turn(
                        sender, message, f"it ends stint {message.at}, which is not for it to do"
                    )
                self.state.stopped += 1
                self.stops[message.at].set()
            self.moved.set()

    # -- synchronous --------------------------------------------------------------------------------

    async def in_step(self) -> None:
        """Make a stint's rounds in step: all label holders pull the same rows, every sum waits for all."""
        me = self.net.me
        for number in range(
            self.state.stint * self.timetable.per_epoch, (self.state.stint + 1) * self.timetable.per_epoch
        ):
            batch = self.schedule.round(number)
            share = await self.party.share(batch)
            for puller in self.pullers:
                if puller != me:
                    await self.sum.give(share, root=puller, tag=self.tag(puller, number))
            if me in self.pullers:
                self.party.steps.delays.read(number, sum(self.state.known.values()))
                await self.step(batch, await self.sum.collect(share, tag=self.tag(me, number)))
        self.state.known = dict.fromkeys(self.pullers, (self.state.stint + 1) * self.timetable.per_epoch)

    # -- both ---------------------------------------------------------------------------------------

    def tag(self, puller: str, number: int) -> int:
        """Return the tag of a puller's own round; no two are alike."""
        return tag_of(Topic.TRAIN, number * len(self.pullers) + self.pullers.index(puller))

    def batch(self, puller: str, number: int) -> Round:
        """Return the batch of a puller's own round: all share an epoch's order, and each begins elsewhere in
        it."""
        offset = self.pullers.index(puller) * self.timetable.per_epoch // len(self.pullers)
        return self.schedule.round(number, offset)

    def epochs(self) -> set[int]:
        """Return the passes that label holders are in, or come to next."""
        ahead, per_epoch = self.context.plan.pace.ahead, self.timetable.per_epoch
        ends = [known + more for known in self.state.known.values() for more in (0, ahead)]
        return {number // per_epoch for number in ends}

    async def measure(self) -> bool:
        """Measure the model after this stint, if it is due; returns whether the run is over."""
        last = self.state.stint + 1 == self.timetable.epochs
        rounds = (self.state.stint + 1) * self.timetable.per_epoch
        every = int(self.context.plan.pace.evaluate_every) or self.timetable.epochs
        if (self.state.stint + 1) % every and not last:
            return False
        mark = Mark(self.timetable.passes(rounds), self.rounds, last)
        loss = await self.training.measurement.now(mark)
        over = self.training.measurement.evaluation.over(loss, self.state.stint + 1)
        if last or not self.context.may_end_early:
            return last
        tag = tag_of(Topic.PAUSE, self.timetable.epochs + self.state.stint)
        if loss is not None:
            await self.net.broadcast(Announce(tag, np.array([float(over)])))
        else:
            due = floats(1, low=0, high=1)
            over = bool((await self.net.recv(Announce, self.context.evaluator, tag, values=due)).values[0])
        if over:  # the same moment once more, with the test rows
            await self.training.measurement.now(replace(mark, final=True))
        self.state.ended_early = over
        return over
