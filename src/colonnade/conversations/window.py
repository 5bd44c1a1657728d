"""Which rounds this party has finished, and which it may begin: the bound on the delay.

A round may begin when all but the last `ahead` rounds before it are finished here. Other parties' thetas
may overtake each other, so finished rounds need not be consecutive; `base` is the first unfinished one.
A gate holds back every round from its number on: all rounds before it are finished, then something is
done together, then the gate is lifted.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable

from colonnade.errors import JobError


def check_delay(ahead: int, max_delay: int | None) -> int:
    """`ahead`, if that many rounds in flight cannot make a theta later than `max_delay` updates."""
    bound = 2 * (ahead - 1)
    if max_delay is not None and bound > max_delay:
        raise JobError(
            f"train: ahead = {ahead} batches in flight can be {bound} updates late, over max_delay = "
            f"{max_delay}; set ahead = {max_delay // 2 + 1} or max_delay = {bound}"
        )
    return ahead


class Window:
    """The rounds of one run at one party."""

    def __init__(self, ahead: int, rounds: int, gates: Iterable[int] = ()) -> None:
        self.ahead = ahead
        self._gates = deque(sorted(set(gates)))
        self.stop = rounds
        self.base = 0
        self.finished = 0
        self.begun = 0
        self._beyond: set[int] = set()
        self._waiting: list[tuple[Callable[[], bool], asyncio.Future[None]]] = []

    @property
    def delay_bound(self) -> int:
        """Thetas may overtake each other, so reading k rounds ahead can be 2 (k - 1) updates late."""
        return 2 * (self.ahead - 1)

    async def opens(self, number: int, extra: int = 0) -> bool:
        """Wait until the round may begin; False if it is not to be computed any more."""
        if not self._may_begin(number, extra):
            await self._until(lambda: self._may_begin(number, extra))
        return self.open_to(number, extra)

    def open_to(self, number: int, extra: int = 0) -> bool:
        """Whether the round may begin now; `extra` rounds beyond the window are for a party that lags."""
        if number >= self.stop or not self._may_begin(number, extra):
            return False
        self.begun = max(self.begun, number + 1)
        return True

    def _may_begin(self, number: int, extra: int) -> bool:
        gate = self._gates[0] if self._gates else number + 1
        return number < min(self.base + self.ahead + extra, gate) or number >= self.stop

    async def gates(self) -> AsyncIterator[int]:
        """Every gate when it is reached; it is lifted when the next one is asked for."""
        while self._gates:
            if not await self.reaches(self._gates[0]) or self._gates[0] >= self.stop:
                return
            yield self._gates[0]
            self._gates.popleft()
            self._wake()

    async def reaches(self, number: int) -> bool:
        """Wait until every round before `number` is finished; False if the run stops before that."""
        await self._until(lambda: self.base >= min(number, self.stop))
        return self.base >= number

    async def ends(self) -> None:
        await self._until(lambda: self.base >= self.stop)

    def finish(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            self._beyond.add(number)
            self.finished += 1
        while self.base in self._beyond:
            self._beyond.remove(self.base)
            self.base += 1
        self._wake()

    def stop_at(self, number: int) -> None:
        """Compute no round from `number` on."""
        self.stop = min(self.stop, number)
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
