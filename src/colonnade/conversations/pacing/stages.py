"""Where a run pauses and where it ends, when dominators have a pace of their own (`tickets`).

The stretch of a run between two pauses is a leg. How many rounds it has in all is known beforehand; how many
of every dominator, one party, the keeper, finds out as it gives its shares, and tells all
(`messages.Enough`). Everybody finishes these, and all stand at one point. A party that is still busy with the
pause leaves thetas from beyond it for later.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from operator import ge

from colonnade.conversations.pacing.conditions import Conditions
from colonnade.conversations.pacing.round_counts import RoundCounts
from colonnade.errors import ProtocolError
from colonnade.messages import Enough
from colonnade.net.expect import said_by
from colonnade.net.network import Network
from colonnade.state import Declared


@dataclass
class StagesState:
    """Which leg a party is in, and where the legs end."""

    limits: list[int]  # rounds of all dominators until every pause, and until the end
    leg: int = 0  # pauses so far
    closed: list[list[int]] = field(default_factory=list)  # for every leg: the rounds of each until its end
    told: int = 0  # legs whose end the keeper has told all
    last: int | None = None  # the leg that is the last
    ending: bool = False  # the run is to end as soon as it can


class Stages:
    """The legs of a run at one party. `changed` tells whoever waits for rounds that one began or ended."""

    STATE = Declared(remade=("_conditions", "_awaited"))

    def __init__(
        self,
        rounds: int,
        gates: Iterable[int],
        progress: RoundCounts,
        changed: Callable[[], None],
        *,
        keeper: bool,
    ) -> None:
        self.keeper = keeper
        self.state = StagesState([*sorted(set(gates)), rounds])
        self._progress = progress
        self._changed = changed
        self._conditions = Conditions()
        self._awaited: list[int] = []  # how many rounds somebody waits for

    @property
    def stop(self) -> int:
        """How many rounds the run has."""
        state = self.state
        return state.limits[-1] if state.last is None else sum(state.closed[state.last])

    @property
    def closed(self) -> bool:
        """Whether it is known where the present leg ends: from then on until the next one begins."""
        return self.state.leg < len(self.state.closed)

    def holds(self, own: int, index: int) -> bool:
        """Return whether a dominator's round is before the end of this leg, as far as it is known."""
        return not self.closed or own < self.state.closed[self.state.leg][index]

    # -- their ends ---------------------------------------------------------------------------------

    def close_if_full(self) -> None:
        """End the leg, at the keeper, once shares of all its rounds are given, or the run is to end."""
        state = self.state
        if not self.keeper or self.closed:
            return
        begun = self._progress.begun
        if state.ending or sum(begun) >= state.limits[state.leg]:
            self.close(state.leg, begun, last=state.ending or state.leg == len(state.limits) - 1)

    def close(self, leg: int, counts: Sequence[int], *, last: bool) -> None:
        """End a leg with so many rounds of every dominator, since the keeper says so."""
        state = self.state
        known = state.closed[-1] if state.closed else [0] * len(self._progress.base)
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
            self._progress.stop[:] = counts
        self._wake_all()

    def end_early(self) -> None:
        """Let this leg be the last, and as short as it can be; only the keeper may. `announce` tells all."""
        self.state.ending = True
        self.close_if_full()

    async def announce(self, net: Network) -> None:
        """Tell all how many rounds of every dominator each leg ends with; the keeper does."""
        state = self.state
        while state.last is None or state.told <= state.last:
            await self._conditions.until(lambda: state.told < len(state.closed))
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

    # -- pauses -------------------------------------------------------------------------------------

    def hold(self, gate: int) -> None:
        """Put up a gate ahead of all rounds of this leg."""
        limits = self.state.limits
        if gate not in limits and gate < limits[-1]:
            self.state.limits = sorted([*limits, gate])

    async def gates(self) -> AsyncIterator[int]:
        """Yield every gate once all rounds before it are finished; asking for the next one lifts it."""
        state = self.state
        while True:
            await self._conditions.until(self._at_the_end)
            if state.leg == state.last:
                return
            yield state.limits[state.leg]
            state.leg += 1
            self.close_if_full()
            self._wake_all()

    def _at_the_end(self) -> bool:
        """Return whether all rounds of this leg are finished."""
        return self.closed and all(map(ge, self._progress.base, self.state.closed[self.state.leg]))

    # -- waiting ------------------------------------------------------------------------------------

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds that changes with the beginning or the end of a leg."""
        await self._conditions.until(holds)

    async def reaches(self, number: int) -> bool:
        """Wait until so many rounds are finished; False if the run stops before that."""
        self._awaited.append(number)
        try:
            await self._conditions.until(lambda: sum(self._progress.base) >= number or self.over())
        finally:
            self._awaited.remove(number)
        return sum(self._progress.base) >= number

    def over(self) -> bool:
        """Return whether every round of the run is finished, and all know that they are."""
        state = self.state
        told = not self.keeper or state.told == len(state.closed)
        return state.leg == state.last and told and self._at_the_end()

    def wake(self) -> None:
        """Look, after rounds were finished, whether that is what somebody waits for here."""
        if self.closed or (self._awaited and sum(self._progress.base) >= min(self._awaited)):
            self._conditions.wake()

    def _wake_all(self) -> None:
        """Look again at what everybody waits for, as a leg began or ended."""
        self._conditions.wake()
        self._changed()
