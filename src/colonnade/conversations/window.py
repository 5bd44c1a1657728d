"""Which rounds this party has finished, and which it may begin: that bounds the delay.

A round may begin when all but the last `ahead` rounds before it are finished here. Other parties' thetas
may overtake each other, so finished rounds need not be consecutive; `base` is the first unfinished one.
A gate holds back every round from its number on: all rounds before it are finished, then something is
done together, then the gate is lifted.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field

from colonnade.errors import JobError


def check_delay(ahead: int, max_delay: int | None) -> int:
    """Return `ahead`; refuse it if a theta could then be more than `max_delay` updates late."""
    bound = 2 * (ahead - 1)
    if max_delay is not None and bound > max_delay:
        raise JobError(
            f"train: ahead = {ahead} batches in flight can be {bound} updates late, over max_delay = "
            f"{max_delay}; set ahead = {max_delay // 2 + 1} or max_delay = {bound}"
        )
    return ahead


@dataclass
class WindowState:
    """How far a party is: `base` is the first unfinished round, `beyond` are finished rounds after it."""

    gates: list[int]  # still to come
    stop: int  # no round from here on
    base: int = 0
    finished: int = 0
    begun: int = 0
    beyond: set[int] = field(default_factory=set)


class Window:
    """Decides which rounds one party may begin, and counts those that it has finished."""

    def __init__(self, ahead: int, rounds: int, gates: Iterable[int] = ()) -> None:
        self.ahead = ahead
        self.state = WindowState(sorted(set(gates)), rounds)
        self._waiting: list[tuple[Callable[[], bool], asyncio.Future[None]]] = []

    @property
    def base(self) -> int:
        """The first round that is not finished."""
        return self.state.base

    @property
    def finished(self) -> int:
        """How many rounds are finished."""
        return self.state.finished

    @property
    def begun(self) -> int:
        """The round after the last one that was begun."""
        return self.state.begun

    @property
    def delay_bound(self) -> int:
        """The most updates that a theta can be late: 2 (ahead - 1), as thetas may overtake each other."""
        return 2 * (self.ahead - 1)

    async def opens(self, number: int, extra: int = 0) -> bool:
        """Wait until the round may begin; False if it is not to be computed any more."""
        if not self._may_begin(number, extra):
            await self._until(lambda: self._may_begin(number, extra))
        return self.open_to(number, extra)

    def open_to(self, number: int, extra: int = 0) -> bool:
        """Whether the round may begin now; `extra` rounds beyond the window are for a party that lags."""
        if number >= self.state.stop or not self._may_begin(number, extra):
            return False
        self.state.begun = max(self.state.begun, number + 1)
        return True

    def _may_begin(self, number: int, extra: int) -> bool:
        gate = self.state.gates[0] if self.state.gates else number + 1
        return number < min(self.state.base + self.ahead + extra, gate) or number >= self.state.stop

    async def gates(self) -> AsyncIterator[int]:
        """Yield every gate once all rounds before it are finished; asking for the next one lifts it."""
        while self.state.gates:
            if not await self.reaches(self.state.gates[0]) or self.state.gates[0] >= self.state.stop:
                return
            yield self.state.gates[0]
            self.state.gates.pop(0)
            self._wake()

    async def reaches(self, number: int) -> bool:
        """Wait until every round before `number` is finished; False if the run stops before that."""
        await self._until(lambda: self.state.base >= min(number, self.state.stop))
        return self.state.base >= number

    async def ends(self) -> None:
        """Wait until every round of the run is finished."""
        await self._until(lambda: self.state.base >= self.state.stop)

    def finish(self, numbers: Iterable[int]) -> None:
        """Mark rounds as finished."""
        for number in numbers:
            self.state.beyond.add(number)
            self.state.finished += 1
        while self.state.base in self.state.beyond:
            self.state.beyond.remove(self.state.base)
            self.state.base += 1
        self._wake()

    def stop_at(self, number: int) -> None:
        """Compute no round from `number` on."""
        self.state.stop = min(self.state.stop, number)
        self._wake()

    async def _until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            future = asyncio.get_running_loop().create_future()
            self._waiting.append((holds, future))
            await future

    def _wake(self) -> None:
        still = []
        for holds, future in self._waiting:
            if future.done():
                continue
            if holds():
                future.set_result(None)
            else:
                still.append((holds, future))
        self._waiting = still
