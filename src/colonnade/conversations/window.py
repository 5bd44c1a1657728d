"""Which rounds this party has finished, and which it may begin: the bound on the delay.

A round may begin when all but the last `ahead` rounds before it are finished here. Other parties' thetas
may overtake each other, so finished rounds need not be consecutive; `base` is the first unfinished one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable


class Window:
    def __init__(self, ahead: int, rounds: int) -> None:
        self.ahead = ahead
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

    async def opens(self, number: int) -> bool:
        """Wait until the round may begin; False if it is not to be computed any more."""
        if not (number < self.base + self.ahead or number >= self.stop):
            await self._until(lambda: number < self.base + self.ahead or number >= self.stop)
        if number >= self.stop:
            return False
        self.begun = max(self.begun, number + 1)
        return True

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
