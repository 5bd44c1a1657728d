"""Where a run pauses and where it ends, when dominators have a pace of their own (`own_pace`).

What lies between two pauses of a run is a stage. How many rounds it has in all is known beforehand; how many
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
    """Which stage a party is in, and where the stages end."""

    limits: list[int]  # rounds of all dominators until every pause, and until the end
    stage: int = 0  # pauses so far
    closed: list[list[int]] = field(default_factory=list)  # for every stage: the rounds of each until its end
    told: int = 0  # stages whose end the keeper has told all
    last: int | None = None  # the stage that is the last
    ending: bool = False  # the run is to end as soon as it can


class Stages:
    """The stages of a run at one party. `changed` tells the tasks that wait for rounds that one began or
    ended."""

    STATE = Declared(remade=("_conditions", "_awaited"))

    def __init__(
        self,
        rounds: int,
        gates: Iterable[int],
        counts: RoundCounts,
        changed: Callable[[], None],
        *,
        keeper: bool,
    ) -> None:
        self.keeper = keeper
        self.state = StagesState([*sorted(set(gates)), rounds])
        self._counts = counts
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
        """Whether it is known where the present stage ends: from then on until the next one begins."""
        return self.state.stage < len(self.state.closed)

    def holds(self, own: int, index: int) -> bool:
        """Return whether a dominator's round is before the end of this stage, as far as it is known."""
        return not self.closed or own < self.state.closed[self.state.stage][index]

    # -- their ends ---------------------------------------------------------------------------------

    def close_if_full(self) -> None:
        """End the stage, at the keeper, once shares of all its rounds are given, or the run is to end."""
        state = self.state
        if not self.keeper or self.closed:
            return
        begun = self._counts.begun
        if state.ending or sum(begun) >= state.limits[state.stage]:
            self.close(state.stage, begun, last=state.ending or state.stage == len(state.limits) - 1)

    def close(self, stage: int, counts: Sequence[int], *, last: bool) -> None:
        """End a stage with this many rounds of every dominator, since the keeper says so."""
        state = self.state
        known = state.closed[-1] if state.closed else [0] * len(self._counts.base)
        if stage != len(state.closed) or len(counts) != len(known) or state.last is not None:
            raise ProtocolError(f"the end of stage {stage} with {len(counts)} numbers of rounds was not due")
        if any(count < before for count, before in zip(counts, known, strict=True)):
            raise ProtocolError(f"stage {stage} ends with fewer rounds than the one before: {list(counts)}")
        if sum(counts) > state.limits[stage]:
            raise ProtocolError(
                f"stage {stage} ends after {sum(counts)} rounds, {state.limits[stage]} at most are due"
            )
        state.closed.append(list(counts))
        if last:
            state.last = stage
            self._counts.stop[:] = counts
        self._wake_all()

    def end_early(self) -> None:
        """Let this stage be the last, and as short as it can be; only the keeper may; `announce` tells."""
        self.state.ending = True
        self.close_if_full()

    async def announce(self, net: Network) -> None:
        """Tell all how many rounds of every dominator each stage ends with; the keeper does."""
        state = self.state
        while state.last is None or state.told <= state.last:
            await self._conditions.until(lambda: state.told < len(state.closed))
            stage = state.told
            await net.broadcast(Enough(stage, tuple(state.closed[stage]), stage == state.last))
            state.told += 1
            self._wake_all()

    async def heed(self, net: Network, keeper: str) -> None:
        """End stages where the keeper says; for everybody else."""
        async for waiting in net.stream(Enough, patient=True):
            for sender, message in waiting:
                if sender != keeper:
                    raise ProtocolError(f"{sender} ended a stage of the run, which is for {keeper} to do")
                with said_by(sender):
                    self.close(message.tag, message.counts, last=message.last)

    # -- pauses -------------------------------------------------------------------------------------

    def hold(self, gate: int) -> None:
        """Put up a gate ahead of all rounds of this stage."""
        limits = self.state.limits
        if gate not in limits and gate < limits[-1]:
            self.state.limits = sorted([*limits, gate])

    async def gates(self) -> AsyncIterator[int]:
        """Yield every gate once all rounds before it are finished; asking for the next one lifts it."""
        state = self.state
        while True:
            await self._conditions.until(self._at_the_end)
            if state.stage == state.last:
                return
            yield state.limits[state.stage]
            state.stage += 1
            self.close_if_full()
            self._wake_all()

    def _at_the_end(self) -> bool:
        """Return whether all rounds of this stage are finished."""
        return self.closed and all(map(ge, self._counts.base, self.state.closed[self.state.stage]))

    # -- waiting ------------------------------------------------------------------------------------

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds that changes with the beginning or the end of a stage."""
        await self._conditions.until(holds)

    async def reaches(self, number: int) -> bool:
        """Wait until this many rounds are finished; False if the run stops before that."""
        self._awaited.append(number)
        try:
            await self._conditions.until(lambda: sum(self._counts.base) >= number or self.over())
        finally:
            self._awaited.remove(number)
        return sum(self._counts.base) >= number

    def over(self) -> bool:
        """Return whether every round of the run is finished, and all know that they are."""
        state = self.state
        told = not self.keeper or state.told == len(state.closed)
        return state.stage == state.last and told and self._at_the_end()

    def wake(self) -> None:
        """Look, after rounds were finished, whether that is what somebody waits for here."""
        if self.closed or (self._awaited and sum(self._counts.base) >= min(self._awaited)):
            self._conditions.wake()

    def _wake_all(self) -> None:
        """Look again at what everybody waits for, as a stage began or ended."""
        self._conditions.wake()
        self._changed()
