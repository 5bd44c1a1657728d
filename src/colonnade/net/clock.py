"""Real and virtual time behind one face."""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import Coroutine, Generator, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class RealClock:
    """The wall clock, less the time spent on measurement.

    `pause` stands for work that this machine does not have: every piece of work takes so many seconds more,
    one piece after another.
    """

    virtual = False

    def __init__(self, pause: float = 0.0) -> None:
        self._start = time.perf_counter()
        self._excluded = 0.0
        self._pause = pause
        self._free_at = 0.0

    def now(self) -> float:
        return time.perf_counter() - self._start - self._excluded

    async def work(self, seconds: float) -> None:
        """Real work takes its own time, and the pause."""
        if self._pause:
            begin = time.perf_counter()
            self._free_at = max(begin, self._free_at) + self._pause
            await asyncio.sleep(self._free_at - begin)

    @contextmanager
    def uncharged(self) -> Iterator[None]:
        begin = time.perf_counter()
        try:
            yield
        finally:
            self._excluded += time.perf_counter() - begin

    def beside(self, work: Coroutine[Any, Any, T]) -> Uncharged[T]:
        return Uncharged(self, work)


class Uncharged(Generic[T]):
    """Awaits a coroutine on a clock that stands still while it runs and goes on while it waits."""

    def __init__(self, clock: RealClock, work: Coroutine[Any, Any, T]) -> None:
        self._clock = clock
        self._work = work

    def __await__(self) -> Generator[Any, None, T]:
        error: BaseException | None = None
        while True:
            try:
                with self._clock.uncharged():
                    awaited = self._work.send(None) if error is None else self._work.throw(error)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            try:
                error = None
                yield awaited
            except BaseException as thrown:  # the coroutine's to handle, a cancellation above all
                error = thrown


class VirtualClock:
    """One party's processor in the simulated world: `threads` lanes, each `speed` times the reference.

    Work queues for the lane that is free first, so a slow party falls behind just as a slow machine
    would. Nothing here depends on how fast the simulation itself runs.
    """

    virtual = True

    def __init__(self, speed: float = 1.0, threads: int = 1) -> None:
        self._speed = speed
        self._free_at = [0.0] * threads
        self.busy = 0.0

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    async def work(self, seconds: float) -> None:
        if seconds <= 0:
            return
        duration = seconds / self._speed
        now = self.now()
        end = max(now, self._free_at[0]) + duration
        heapq.heapreplace(self._free_at, end)
        self.busy += duration
        await asyncio.sleep(end - now)

    def uncharged(self) -> nullcontext[None]:
        return nullcontext()

    def beside(self, work: Coroutine[Any, Any, T]) -> Coroutine[Any, Any, T]:
        return work
