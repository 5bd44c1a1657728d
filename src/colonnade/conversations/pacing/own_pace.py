"""Dominators that launch rounds at their own pace: a window for each, and one party whose shares are tickets.

Every dominator goes over the rows at its own pace (`schedule.OwnTurns`). Every party sends it shares without
being asked, as far as the dominator's own window allows: `ahead` rounds beyond those of this dominator that
are finished here, and up to `stale` more where it uses them (`reach`). Nobody waits for another dominator,
and a fast one launches more rounds than a slow one.

A sum needs the share of every party. So one party, the keeper, decides how many rounds there are, and
needs no word for it: a round exists once the keeper has given its share. The keeper gives as many shares as
the run has rounds until the next pause, to whichever dominator is ready; that ends a leg of the run (`legs`).
Shares that others have sent beyond it are used after the pause; after the end nobody needs them.

Delays are bounded where the job says so: the keeper gives a dominator at most `lead` shares between two
thetas of any other (`lateness` has the bound and its proof).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, field

from colonnade.conversations.pacing.conditions import Conditions
from colonnade.conversations.pacing.delay_bound import UNBOUNDED, bound
from colonnade.conversations.pacing.round_counts import RoundCounts
from colonnade.conversations.pacing.shares_ahead import SharesAhead, SharesAheadState
from colonnade.conversations.pacing.stages import Stages, StagesState
from colonnade.net.network import Network
from colonnade.state import Declared

OTHERS, OWN = 1, 2  # who wakes first where both may go on, whoever came first


@dataclass
class OwnPaceState:
    """How far a party is with every dominator's rounds, and where the run pauses or ends."""

    legs: StagesState
    progress: RoundCounts
    marks: list[list[int]]  # for every dominator: the rounds of each that were begun at its last theta
    reach: SharesAheadState
    read: dict[int, Sequence[int]] = field(default_factory=dict)  # what was finished when weights were read
    seen: dict[int, Sequence[int]] = field(default_factory=dict)  # what was, at the dominator, with its theta
    tau_1: int = 0
    tau_2: int = 0


class OwnPace:
    """Decides which rounds of which dominator one party may begin, and counts those that it has finished.

    Round k of dominator j, of m, has the number k m + j.
    """

    STATE = Declared(kept=("state",), remade=("_conditions",))

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
    ) -> None:
        self.own_ahead, self.keeper, self.lead = ahead, keeper, lead
        self.delay_bound = bound(dominators, ahead, stale, lead)
        marks = [[0] * dominators for _ in range(dominators)]
        progress = RoundCounts.of(dominators, UNBOUNDED)
        self._dominators = dominators
        self._conditions = Conditions()  # of who waits for a round to begin
        self.legs = Stages(rounds, gates, progress, self._conditions.wake, keeper=keeper)
        self.reach = SharesAhead(dominators, ahead, own)
        self.state = OwnPaceState(self.legs.state, progress, marks, self.reach.state)

    # -- how far it is ------------------------------------------------------------------------------

    @property
    def ahead(self) -> int:
        """The most rounds in flight, of all dominators together."""
        return self.own_ahead * self._dominators

    @property
    def done(self) -> tuple[int, ...]:
        """How many rounds of every dominator are finished."""
        return tuple(self.state.progress.finished)

    @property
    def finished(self) -> int:
        """How many rounds are finished."""
        return sum(self.state.progress.finished)

    @property
    def base(self) -> int:
        """How many rounds are finished, without those that have overtaken others."""
        return sum(self.state.progress.base)

    @property
    def stop(self) -> int:
        """How many rounds the run has."""
        return self.legs.stop

    @property
    def ending(self) -> bool:
        """Whether the run is to end before its last round."""
        return self.legs.state.ending

    def numbers(self) -> Iterable[int]:
        """Return the rounds at both ends of what is in flight, for every dominator."""
        progress = self.state.progress
        ends = [
            (base, max(base, begun - 1)) for base, begun in zip(progress.base, progress.begun, strict=True)
        ]
        return [own * self._dominators + j for j, both in enumerate(ends) for own in both]

    # -- beginning and finishing rounds -------------------------------------------------------------

    def past(self, number: int) -> bool:
        """Return whether the round is not to be computed any more."""
        own, index = divmod(number, self._dominators)
        return own >= self.state.progress.stop[index]

    def expects(self, number: int) -> bool:
        """Return whether the round is begun here and not finished."""
        own, index = divmod(number, self._dominators)
        return self.state.progress.expects(own, index)

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

    def open_to(self, number: int, extra: int = 0) -> bool:
        """Begin the round, if it may begin now; `extra` rounds more are for a party that lags."""
        return number < self.end(number, extra) and self.begin(number, extra)

    def begin(self, number: int, extra: int = 0) -> bool:
        """Begin a round before its `end`; at the keeper, if it has a ticket."""
        own, index = divmod(number, self._dominators)
        if self.keeper and not self._has_ticket(index, extra):
            return False
        begun = self.state.progress.begun
        if own >= begun[index]:
            begun[index] = own + 1
        if self.keeper:
            self.legs.close_if_full()
        return True

    def read(self, numbers: Iterable[int]) -> None:
        """Note that the weights are read for some rounds."""
        read, done = self.state.read, self.done
        for number in numbers:
            read[number] = done

    def heard(self, number: int, seen: Sequence[int]) -> None:
        """Note which rounds were finished where a round's theta was computed: so many of every dominator."""
        self.state.seen[number] = seen
        self.reach.hear(number % self._dominators)
        self._conditions.changes += 1  # it says how many shares its dominator uses

    def finish(self, numbers: Iterable[int]) -> None:
        """Mark rounds as finished."""
        state, progress, done = self.state, self.state.progress, self.done
        for number in numbers:
            own, index = divmod(number, self._dominators)
            read, seen = state.read.pop(number), state.seen.pop(number)
            if seen != read and (late := _more(seen, read)) > state.tau_1:
                state.tau_1 = late
            if seen != done and (late := _more(done, seen)) > state.tau_2:
                state.tau_2 = late
            progress.finish(own, index)
            if self.lead < UNBOUNDED:
                state.marks[index] = list(progress.begun)
        self.reach.look_back(progress.begun)
        self.legs.wake()
        self._conditions.wake()

    def may_begin(self, number: int, extra: int = 0) -> bool:
        """Return whether the round is within its dominator's window and, at the keeper, has a ticket."""
        if number >= self.end(number, extra):
            return False
        return not self.keeper or self._has_ticket(number % self._dominators, extra)

    def end(self, number: int, extra: int = 0) -> int:
        """Return the first round of the same dominator that is beyond its window or the end."""
        m, progress, reach = self._dominators, self.state.progress, self.reach
        index = number % m
        base, stop = progress.base[index], progress.stop[index]
        if index == reach.own and not reach.may_launch(base):
            return number
        limit = base + self.own_ahead
        if extra:  # as many beyond its window as the dominator uses, and `extra` at most
            limit += min(extra, reach.beyond(index, base))
        return (limit if limit < stop else stop) * m + index

    def _has_ticket(self, index: int, extra: int) -> bool:
        """Return whether the keeper may give a share to this dominator: not too many in all, nor since any
        theta.

        A slow dominator has fewer in hand than a fast one, or at a pause all would wait for it to use them.
        """
        state, progress = self.state, self.state.progress
        if self.legs.closed:
            return False
        begun, finished = progress.begun[index], progress.finished[index]
        if in_hand := begun - finished:
            beyond = self.reach.beyond(index, progress.base[index]) if extra else 0
            if in_hand * max(progress.finished) > (self.own_ahead + min(extra, beyond)) * finished:
                return False
        if self.lead >= UNBOUNDED:
            return True
        leads = (begun - mark[index] for other, mark in enumerate(state.marks) if other != index)
        return all(lead < self.lead for lead in leads)

    @property
    def changes(self) -> int:
        """How often a theta came, a round was finished, or a leg began or ended."""
        return self._conditions.changes

    @property
    def holds_back(self) -> bool:
        """Whether there may be thetas that are not due yet: from the end of a leg until the next begins."""
        return self.legs.closed

    def is_due(self, number: int) -> bool:
        """Return whether theta of a round may be applied now: one from beyond a pause waits for its end here.

        All parties take part in a pause, so nothing from beyond it can come before this party has begun it.
        """
        return self.legs.holds(*divmod(number, self._dominators))

    async def due(self, number: int) -> None:
        """Wait until theta of a round may be applied."""
        await self.legs.until(lambda: self.is_due(number))

    def under_way(self) -> list[int]:
        """Return the rounds that are begun here and not finished."""
        m, progress = self._dominators, self.state.progress
        return [own * m + j for j in range(m) for own in progress.under_way(j)]

    def over(self, number: int) -> bool:
        """Return whether the round is finished here."""
        own, index = divmod(number, self._dominators)
        return self.state.progress.over(own, index)

    # -- pauses and the end -------------------------------------------------------------------------

    def hold(self, gate: int) -> None:
        """Put up a gate ahead of all rounds of this leg."""
        self.legs.hold(gate)

    def gates(self) -> AsyncIterator[int]:
        """Yield every gate once all rounds before it are finished; asking for the next one lifts it."""
        return self.legs.gates()

    async def reaches(self, number: int) -> bool:
        """Wait until so many rounds are finished; False if the run stops before that."""
        return await self.legs.reaches(number)

    async def ends(self) -> None:
        """Wait until every round of the run is finished, and all know that they are."""
        await self.legs.until(self.legs.over)

    async def end_early(self, net: Network) -> None:
        """Give no more shares; only the keeper may."""
        self.legs.end_early()

    def strays(self) -> list[int]:
        """Return the rounds that were begun here and never took place, once the run is over."""
        m, legs, begun = self._dominators, self.legs.state, self.state.progress.begun
        counts = legs.closed[legs.last] if legs.last is not None else self.done
        return [own * m + j for j in range(m) for own in range(counts[j], begun[j])]


def _more(these: Sequence[int], those: Sequence[int]) -> int:
    """Return how many rounds are among these and not among those."""
    return sum([one - other for one, other in zip(these, those, strict=True) if one > other])
