"""Dominators that launch rounds at their own pace: a window for each, and one party whose shares are tickets.

Every dominator goes over the rows at its own pace (`schedule.OwnTurns`). Every party sends it shares without
being asked, as far as the dominator's own window allows: `ahead` rounds beyond those of this dominator that
are finished here, and up to `stale` more where it uses them (`reach`). Nobody waits for another dominator,
and a fast one launches more rounds than a slow one.

A sum needs the share of every party. So one party, the keeper, decides how many rounds there are, and
needs no word for it: a round exists once the keeper has given its share. The keeper gives as many shares as
the run has rounds until the next pause, to whichever dominator is ready, and then tells all how many rounds
of each dominator that makes (`messages.Enough`). Everybody finishes these, and all stand at one point. Shares
that others have sent beyond it are used after the pause; after the end nobody needs them. A party that is
still busy with the pause leaves thetas from beyond it for later.

Delays are bounded where the job says so: the keeper gives a dominator at most `lead` shares between two
thetas of any other (`lateness` has the bound and its proof).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from operator import ge

from colonnade.conversations.lateness import UNBOUNDED, bound
from colonnade.conversations.pacing import Conditions
from colonnade.conversations.progress import Progress
from colonnade.conversations.reach import Reach, ReachState
from colonnade.errors import ProtocolError
from colonnade.messages import Enough
from colonnade.net.expect import said_by
from colonnade.net.network import Network

OTHERS, OWN = 1, 2  # who wakes first where both may go on, whoever came first


@dataclass
class TicketsState:
    """How far a party is with every dominator's rounds, and where the run pauses or ends."""

    limits: list[int]  # rounds of all dominators until every pause, and until the end
    progress: Progress
    marks: list[list[int]]  # for every dominator: the rounds of each that were begun at its last theta
    reach: ReachState
    leg: int = 0  # pauses so far
    closed: list[list[int]] = field(default_factory=list)  # for every leg: the rounds of each until its end
    told: int = 0  # legs whose end the keeper has told all
    last: int | None = None  # the leg that is the last
    ending: bool = False  # the run is to end as soon as it can
    read: dict[int, Sequence[int]] = field(default_factory=dict)  # what was finished when weights were read
    seen: dict[int, Sequence[int]] = field(default_factory=dict)  # what was, at the dominator, with its theta
    tau_1: int = 0
    tau_2: int = 0


class Tickets:
    """Decides which rounds of which dominator one party may begin, and counts those that it has finished.

    Round k of dominator j, of m, has the number k m + j.
    """

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
        limits = [*sorted(set(gates)), rounds]
        self.reach = Reach(dominators, ahead, own)
        self.state = TicketsState(limits, Progress.of(dominators, UNBOUNDED), marks, self.reach.state)
        self._dominators = dominators
        self._conditions = Conditions()  # of who waits for a round to begin
        self._legs = Conditions()  # of who waits for the end of a leg, or for many rounds
        self._awaited: list[int] = []  # how many

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
        state = self.state
        return state.limits[-1] if state.last is None else sum(state.closed[state.last])

    @property
    def ending(self) -> bool:
        """Whether the run is to end before its last round."""
        return self.state.ending

    def numbers(self) -> Iterable[int]:
        """The rounds at both ends of what is in flight, for every dominator."""
        progress = self.state.progress
        ends = [
            (base, max(base, begun - 1)) for base, begun in zip(progress.base, progress.begun, strict=True)
        ]
        return [own * self._dominators + j for j, both in enumerate(ends) for own in both]

    # -- beginning and finishing rounds -------------------------------------------------------------

    def past(self, number: int) -> bool:
        """Whether the round is not to be computed any more."""
        own, index = divmod(number, self._dominators)
        return own >= self.state.progress.stop[index]

    def expects(self, number: int) -> bool:
        """Whether the round is begun here and not finished."""
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
            self._close_if_full()
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
        if state.leg < len(state.closed) or (self._awaited and self.base >= min(self._awaited)):
            self._legs.wake()
        self._conditions.wake()

    def may_begin(self, number: int, extra: int = 0) -> bool:
        """Whether the round is within its dominator's window and, at the keeper, has a ticket."""
        if number >= self.end(number, extra):
            return False
        return not self.keeper or self._has_ticket(number % self._dominators, extra)

    def end(self, number: int, extra: int = 0) -> int:
        """The first round of the same dominator that is beyond its window or the end."""
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
        """Whether the keeper may give a share to this dominator: not too many in all, nor since any theta.

        A slow dominator has fewer in hand than a fast one, or at a pause all would wait for it to use them.
        """
        state, progress = self.state, self.state.progress
        if state.leg < len(state.closed):
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
        return self.state.leg < len(self.state.closed)

    def is_due(self, number: int) -> bool:
        """Whether theta of a round may be applied now: one from beyond a pause waits for its end here.

        All parties take part in a pause, so nothing from beyond it can come before this party has begun it.
        """
        state = self.state
        if not self.holds_back:
            return True
        own, index = divmod(number, self._dominators)
        return own < state.closed[state.leg][index]

    async def due(self, number: int) -> None:
        """Wait until theta of a round may be applied."""
        await self._legs.until(lambda: self.is_due(number))

    def under_way(self) -> list[int]:
        """The rounds that are begun here and not finished."""
        m, progress = self._dominators, self.state.progress
        return [own * m + j for j in range(m) for own in progress.under_way(j)]

    def over(self, number: int) -> bool:
        """Whether the round is finished here."""
        own, index = divmod(number, self._dominators)
        return self.state.progress.over(own, index)

    # -- pauses and the end -------------------------------------------------------------------------

    def _close_if_full(self) -> None:
        """End the leg, at the keeper, once shares of all its rounds are given, or the run is to end."""
        state = self.state
        if not self.keeper or state.leg < len(state.closed):
            return
        begun = state.progress.begun
        if state.ending or sum(begun) >= state.limits[state.leg]:
            self.close(state.leg, begun, last=state.ending or state.leg == len(state.limits) - 1)

    def close(self, leg: int, counts: Sequence[int], *, last: bool) -> None:
        """End a leg with so many rounds of every dominator, since the keeper says so."""
        state = self.state
        known = state.closed[-1] if state.closed else [0] * self._dominators
        if leg != len(state.closed) or len(counts) != len(known) or state.last is not None:
            raise ProtocolError(f"the end of leg {leg} with {len(counts)} numbers of rounds was not due")
        if any(count < before for count, before in zip(counts, known, strict=True)):
            raise ProtocolError(f"leg {leg} ends with fewer rounds than the one before: {list(counts)}")
        if sum(counts) > state.limits[leg]:
            raise ProtocolError(
                f"leg {leg} ends after {sum(counts)} rounds, {state.limits[leg]} at most are due"
            )
        state.closed.append(list(counts))
        if last:
            state.last = leg
            state.progress.stop[:] = counts
        self._wake_all()

    def _wake_all(self) -> None:
        """Look again at what everybody waits for, as a leg began or ended."""
        self._legs.wake()
        self._conditions.wake()

    async def announce(self, net: Network) -> None:
        """Tell all how many rounds of every dominator each leg ends with; the keeper does."""
        state = self.state
        while state.last is None or state.told <= state.last:
            await self._legs.until(lambda: state.told < len(state.closed))
            leg = state.told
            await net.broadcast(Enough(leg, tuple(state.closed[leg]), leg == state.last))
            state.told += 1
            self._wake_all()

    async def heed(self, net: Network, keeper: str) -> None:
        """End legs where the keeper says; for everybody else."""
        async for waiting in net.stream(Enough, patient=True):
            for sender, message in waiting:
                if sender != keeper:
                    raise ProtocolError(f"{sender} ended a leg of the run, which is for {keeper} to do")
                with said_by(sender):
                    self.close(message.tag, message.counts, last=message.last)

    def hold(self, gate: int) -> None:
        """Put up a gate ahead of all rounds of this leg."""
        limits = self.state.limits
        if gate not in limits and gate < limits[-1]:
            self.state.limits = sorted([*limits, gate])

    async def gates(self) -> AsyncIterator[int]:
        """Yield every gate once all rounds before it are finished; asking for the next one lifts it."""
        state = self.state
        while True:
            await self._legs.until(self._at_the_end_of_a_leg)
            if state.leg == state.last:
                return
            yield state.limits[state.leg]
            state.leg += 1
            self._close_if_full()
            self._wake_all()

    def _at_the_end_of_a_leg(self) -> bool:
        state = self.state
        if state.leg >= len(state.closed):
            return False
        return all(map(ge, state.progress.base, state.closed[state.leg]))

    async def reaches(self, number: int) -> bool:
        """Wait until so many rounds are finished; False if the run stops before that."""
        self._awaited.append(number)
        try:
            await self._legs.until(lambda: self.base >= number or self._over())
        finally:
            self._awaited.remove(number)
        return self.base >= number

    async def ends(self) -> None:
        """Wait until every round of the run is finished, and all know that they are."""
        await self._legs.until(self._over)

    def _over(self) -> bool:
        state = self.state
        if state.leg != state.last:
            return False
        told = not self.keeper or state.told == len(state.closed)
        return told and self._at_the_end_of_a_leg()

    async def end_early(self, net: Network) -> None:
        """Give no more shares; only the keeper may. `announce` tells the others."""
        self.state.ending = True
        self._close_if_full()

    def strays(self) -> list[int]:
        """The rounds that were begun here and never took place, once the run is over."""
        m, state = self._dominators, self.state
        counts = state.closed[state.last] if state.last is not None else self.done
        return [own * m + j for j in range(m) for own in range(counts[j], state.progress.begun[j])]


def _more(these: Sequence[int], those: Sequence[int]) -> int:
    """How many rounds are among these and not among those."""
    return sum([one - other for one, other in zip(these, those, strict=True) if one > other])
