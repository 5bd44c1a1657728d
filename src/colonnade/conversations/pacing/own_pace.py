"""Dominators that launch rounds each at its own pace: a window for each, and one party whose shares count.

Every dominator goes over the rows at its own pace (`schedule.OwnTurns`). Every party sends it shares without
being asked, as far as the dominator's own window allows: `ahead` rounds beyond those of this dominator that
are finished here, and up to `stale` more where it uses them (`shares_ahead`). Nobody waits for another
dominator, and a fast one launches more rounds than a slow one.

A sum needs the share of every party. So one party, the keeper, decides how many rounds there are, and
needs no word for it: a round exists once the keeper has given its share. The keeper gives as many shares as
the run has rounds until the next pause, to whichever dominator is ready; that ends a stage of the run
(`stages`). Shares that others have sent beyond it are used after the pause; after the end nobody needs them.

Delays are bounded where the job says so: the keeper gives a dominator at most `lead` shares between two
thetas of any other (`delay_bound` has the bound and its proof).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache

from colonnade.conversations.pacing.delay_bound import UNBOUNDED, bound
from colonnade.conversations.pacing.delays import Lateness
from colonnade.conversations.pacing.pacing import Pacing
from colonnade.conversations.pacing.round_counts import RoundCounts
from colonnade.conversations.pacing.shares_ahead import SharesAhead, SharesAheadState
from colonnade.conversations.pacing.stages import Stages, StagesState
from colonnade.net.network import Network
from colonnade.state import Declared

OTHERS, OWN = 1, 2  # who wakes first where both may go on


@dataclass
class OwnPaceState:
    """How far a party is with every dominator's rounds, and where the run pauses or ends."""

    stages: StagesState
    counts: RoundCounts
    marks: list[list[int]]  # for every dominator: the rounds of each that were begun at its last theta
    shares_ahead: SharesAheadState
    read: dict[int, Sequence[int]] = field(default_factory=dict)  # what was finished when weights were read
    seen: dict[int, Sequence[int]] = field(default_factory=dict)  # what was, at the dominator, with its theta
    tau_1: int = 0
    tau_2: int = 0


class OwnPace(Pacing):
    """Decides which rounds of which dominator one party may begin, and counts those that it has finished.

    Round k of dominator j, of m, has the number k m + j. `stale` more rounds of a dominator than its window
    has are scored at the most, where that pays, which is asked once. `own` is which of the dominators the
    party is, if any.
    """

    STATE = Declared(kept=("state",), remade=("_conditions",))
    lets_give = True

    def __init__(
        self,
        dominators: int,
        ahead: int,
        rounds: int,
        gates: Iterable[int] = (),
        *,
        keeper: bool = False,
        stale: int = 0,
        lead: int = UNBOUNDED,
        own: int | None = None,
        pays: Callable[[], bool] = lambda: True,
    ) -> None:
        super().__init__()
        self.own_ahead, self.keeper, self.lead = ahead, keeper, lead
        self.delay_bound = bound(dominators, ahead, stale, lead)
        marks = [[0] * dominators for _ in range(dominators)]
        counts = RoundCounts.of(dominators, UNBOUNDED)
        self._dominators = dominators
        self._stale, self._pays = stale, cache(pays)
        self.stages = Stages(rounds, gates, counts, self._conditions.wake, keeper=keeper)
        self.shares_ahead = SharesAhead(dominators, ahead, own)
        self.state = OwnPaceState(self.stages.state, counts, marks, self.shares_ahead.state)

    # -- how far it is ------------------------------------------------------------------------------

    @property
    def ahead(self) -> int:
        """The most rounds in flight, of all dominators together."""
        return self.own_ahead * self._dominators

    @property
    def done(self) -> tuple[int, ...]:
        """How many rounds of every dominator are finished."""
        return tuple(self.state.counts.finished)

    @property
    def finished(self) -> int:
        """How many rounds are finished."""
        return sum(self.state.counts.finished)

    @property
    def base(self) -> int:
        """How many rounds are finished, without those that have overtaken others."""
        return sum(self.state.counts.base)

    @property
    def stop(self) -> int:
        """How many rounds the run has."""
        return self.stages.stop

    @property
    def lateness(self) -> Lateness:
        """The bound of delays that is kept, and both parts of the longest delay."""
        return Lateness(self.delay_bound, self.state.tau_1, self.state.tau_2)

    @property
    def ending(self) -> bool:
        """Whether the run is to end before its last round."""
        return self.stages.state.ending

    def ends_in_flight(self) -> Iterable[int]:
        """Return the rounds at both ends of what is in flight, for every dominator."""
        counts = self.state.counts
        ends = [(base, max(base, begun - 1)) for base, begun in zip(counts.base, counts.begun, strict=True)]
        return [own * self._dominators + j for j, both in enumerate(ends) for own in both]

    # -- beginning and finishing rounds -------------------------------------------------------------

    def past(self, number: int) -> bool:
        """Return whether the round is not to be computed any more."""
        own, index = divmod(number, self._dominators)
        return own >= self.state.counts.stop[index]

    async def opens(self, number: int, extra: int = 0) -> bool:
        """Wait until the round may begin, and begin it; False if it is not to be computed any more."""
        while not self.open_to(number, extra):
            if self.past(number):
                return False
            await self._conditions.until(lambda: self.may_begin(number, extra) or self.past(number), OWN)
        return True

    async def until(self, holds: Callable[[], bool], first: int = 0) -> None:
        """Wait until something holds that changes with the rounds that are finished, or may begin."""
        await self._conditions.until(holds, OTHERS)

    def begin(self, number: int, extra: int = 0) -> bool:
        """Begin a round before its `end`; at the keeper, if it may add one to the run."""
        own, index = divmod(number, self._dominators)
        if self.keeper and not self._may_add(index, extra):
            return False
        begun = self.state.counts.begun
        if own >= begun[index]:
            begun[index] = own + 1
        if self.keeper:
            self.stages.close_if_full()
        return True

    def read(self, numbers: Iterable[int]) -> None:
        """Note that the weights are read for some rounds."""
        read, done = self.state.read, self.done
        for number in numbers:
            read[number] = done

    @property
    def seen(self) -> tuple[int, ...]:
        """What a dominator says with a theta: how many rounds of each dominator it has finished."""
        return self.done

    def heard(self, number: int, seen: Sequence[int]) -> None:
        """Note which rounds were finished where a round's theta was computed: this many of every
        dominator."""
        self.state.seen[number] = seen
        self.shares_ahead.hear(number % self._dominators)
        self._conditions.changes += 1  # it says how many shares its dominator uses

    @property
    def own_waits(self) -> bool:
        """Whether theta of an own round waits for the next update: the round after it is scored already."""
        return self.beyond() > 0

    async def catch_up(self, net: Network) -> None:
        """Take in thetas that came during an update, or it would seem that shares given were not used."""
        await net.catch_up()

    def finish(self, numbers: Iterable[int]) -> None:
        """Mark rounds as finished."""
        state, counts, done = self.state, self.state.counts, self.done
        for number in numbers:
            own, index = divmod(number, self._dominators)
            read, seen = state.read.pop(number), state.seen.pop(number)
            if seen != read and (late := _more(seen, read)) > state.tau_1:
                state.tau_1 = late
            if seen != done and (late := _more(done, seen)) > state.tau_2:
                state.tau_2 = late
            counts.finish(own, index)
            if self.lead < UNBOUNDED:
                state.marks[index] = list(counts.begun)
        self.shares_ahead.look_back(counts.begun)
        self.stages.wake()
        self._conditions.wake()

    def beyond(self, *, behind: bool = False) -> int:
        """Return how many rounds beyond its window a dominator may get, however far this party is: none where
        they do not pay."""
        return self._stale if self._pays() else 0

    def may_begin(self, number: int, extra: int = 0) -> bool:
        """Return whether the round is within its window and, at the keeper, may be added to the run."""
        if number >= self.end(number, extra):
            return False
        return not self.keeper or self._may_add(number % self._dominators, extra)

    def end(self, number: int, extra: int = 0) -> int:
        """Return the first round of the same dominator that is beyond its window or the end."""
        m, counts, ahead = self._dominators, self.state.counts, self.shares_ahead
        index = number % m
        base, stop = counts.base[index], counts.stop[index]
        if index == ahead.own and not ahead.may_launch(base):
            return number
        limit = base + self.own_ahead
        if extra:  # as many beyond its window as the dominator uses, and `extra` at most
            limit += min(extra, ahead.beyond(index, base))
        return (limit if limit < stop else stop) * m + index

    def _may_add(self, index: int, extra: int) -> bool:
        """Return whether the keeper may give a share to this dominator: not too many in all, nor since any
        theta.

        A slow dominator has fewer in hand than a fast one, or at a pause all would wait for it to use them.
        """
        state, counts = self.state, self.state.counts
        if self.stages.closed:
            return False
        begun, finished = counts.begun[index], counts.finished[index]
        if in_hand := begun - finished:
            beyond = self.shares_ahead.beyond(index, counts.base[index]) if extra else 0
            if in_hand * max(counts.finished) > (self.own_ahead + min(extra, beyond)) * finished:
                return False
        if self.lead >= UNBOUNDED:
            return True
        leads = (begun - mark[index] for other, mark in enumerate(state.marks) if other != index)
        return all(lead < self.lead for lead in leads)

    @property
    def holds_back(self) -> bool:
        """Whether there may be thetas that are not due yet: from the end of a stage until the next begins."""
        return self.stages.closed

    def is_due(self, number: int) -> bool:
        """Return whether theta of a round may be applied now: one from beyond a pause waits for its end here.

        All parties take part in a pause, so nothing from beyond it can come before this party has begun it.
        """
        return self.stages.holds(*divmod(number, self._dominators))

    async def due(self, number: int) -> None:
        """Wait until theta of a round may be applied."""
        await self.stages.until(lambda: self.is_due(number))

    def under_way(self) -> list[int]:
        """Return the rounds that are begun here and not finished."""
        m, counts = self._dominators, self.state.counts
        return [own * m + j for j in range(m) for own in counts.under_way(j)]

    def over(self, number: int) -> bool:
        """Return whether the round is finished here."""
        own, index = divmod(number, self._dominators)
        return self.state.counts.over(own, index)

    # -- pauses and the end -------------------------------------------------------------------------

    def hold(self, gate: int) -> None:
        """Put up a gate ahead of all rounds of this stage."""
        self.stages.hold(gate)

    def gates(self) -> AsyncIterator[int]:
        """Yield every gate once all rounds before it are finished; asking for the next one lifts it."""
        return self.stages.gates()

    async def reaches(self, number: int) -> bool:
        """Wait until this many rounds are finished; False if the run stops before that."""
        return await self.stages.reaches(number)

    async def ends(self) -> None:
        """Wait until every round of the run is finished, and all know that they are."""
        await self.stages.until(self.stages.over)

    async def agree_on_ends(self, net: Network, evaluator: str, *, may_end_early: bool) -> None:
        """Tell all how many rounds of every dominator each stage ends with, or hear so from the keeper."""
        await (self.stages.announce(net) if self.keeper else self.stages.heed(net, evaluator))

    async def end_early(self, net: Network) -> None:
        """Give no more shares; only the keeper may."""
        self.stages.end_early()

    def left_over(self) -> list[int]:
        """Return the rounds that were begun here and never took place, once the run is over."""
        m, stages, begun = self._dominators, self.stages.state, self.state.counts.begun
        counts = stages.closed[stages.last] if stages.last is not None else self.done
        return [own * m + j for j in range(m) for own in range(counts[j], begun[j])]


def _more(these: Sequence[int], those: Sequence[int]) -> int:
    """Return how many rounds are among these and not among those."""
    return sum([one - other for one, other in zip(these, those, strict=True) if one > other])
