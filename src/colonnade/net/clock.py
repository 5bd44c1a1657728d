"""Time for a party: the wall clock, or a virtual one on an event loop whose time jumps.

On the virtual loop, when nothing is left to do now, it is at once the time of the next event. The standard
selector loop does all the work; only its clock and its waiting are replaced. (Libraries for this exist; the
one made for it is under a licence that an Apache-licensed project cannot depend on, the others bring a test
framework's plug-ins.)
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import selectors
import time
from collections.abc import Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")
Heard = Callable[[float, float], None]
"""What a clock calls with the beginning and the end of a piece of work."""


def burn(seconds: float) -> None:
    """Compute for this many seconds of this thread's processor time."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


KERNEL = 1e-3
"""Seconds that one piece of extra work takes at the most."""


class _SlowSelector(selectors.DefaultSelector):
    """Whenever a loop is about to wait, works on, in proportion to its work since it last waited."""

    def __init__(self, speed: float) -> None:
        super().__init__()
        self._more = 1 / speed - 1
        self._worked = time.thread_time()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        burn(self._more * (time.thread_time() - self._worked))
        found = super().select(timeout)
        self._worked = time.thread_time()
        return found


def loop_at(speed: float) -> asyncio.AbstractEventLoop:
    """Return an event loop on which everything takes 1 / speed times the computing: a slow machine, by
    work."""
    return asyncio.SelectorEventLoop(_SlowSelector(speed) if speed < 1 else None)


class RealClock:
    """The wall clock, less the time spent on measurement.

    `extra` stands for larger columns than there are: every piece of work is this many seconds longer.
    """

    virtual = False

    def __init__(self, extra: float = 0.0) -> None:
        self._start = time.perf_counter()
        self._excluded = 0.0
        self._extra = extra
        self.heard: Heard | None = None

    def restart(self) -> None:
        """Begin again at zero."""
        self._start, self._excluded = time.perf_counter(), 0.0

    def now(self) -> float:
        return time.perf_counter() - self._start - self._excluded

    def set(self, now: float) -> None:
        self._start, self._excluded = time.perf_counter() - now, 0.0

    async def work(self, seconds: float) -> None:
        """Do the extra work, if there is any. Real work takes its own time, so `seconds` is not used.

        Kernels take a millisecond or less, and between two a party reads its messages and answers; so it does
        here. What a slow machine computes more is computed at each of these turns.
        """
        if not self._extra:
            return
        begin, left = self.now(), self._extra
        while left > 0:
            burn(min(left, KERNEL))
            left -= KERNEL
            await asyncio.sleep(0)
        if self.heard is not None:
            self.heard(begin, self.now())

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
                return cast(T, end.value)
            try:
                error = None
                yield awaited
            except BaseException as thrown:  # the coroutine's to handle, a cancellation above all
                error = thrown


class VirtualClock:
    """One party's processors in the simulated world, each `speed` times as fast as the reference.

    Work queues for the first that is free, so a slow party falls behind just as a slow machine would. With
    `piece` it is cut into pieces of this many seconds, and messages that come during one are handled after
    it. Nothing here depends on how fast the simulation itself runs.
    """

    virtual = True

    def __init__(self, speed: float = 1.0, piece: float = float("inf"), processors: int = 1) -> None:
        self._speed = speed
        self._piece = piece
        self._free_at = [0.0] * processors  # a heap
        self.busy = 0.0
        self.heard: Heard | None = None

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    def set(self, now: float) -> None:
        """Do nothing: all parties share the loop's time."""

    async def work(self, seconds: float) -> None:
        left = seconds / self._speed
        while left > 0:
            duration = min(left, self._piece)
            left -= duration
            end = self._queue(duration)
            await asyncio.sleep(end - self.now())

    def handle(self, seconds: float) -> float:
        """Queue the handling of a message, which takes so long; returns when it is done."""
        return self._queue(seconds / self._speed)

    def _queue(self, duration: float) -> float:
        """Be busy for so long once all that was queued before is done; returns when that ends."""
        end = max(self.now(), self._free_at[0]) + duration
        heapq.heapreplace(self._free_at, end)
        self.busy += duration
        if self.heard is not None:
            self.heard(end - duration, end)
        return end

    def uncharged(self) -> nullcontext[None]:
        return nullcontext()

    def beside(self, work: Coroutine[Any, Any, T]) -> Coroutine[Any, Any, T]:
        return work


class _JumpingSelector(selectors.SelectSelector):
    """Waiting takes no time: the clock is set forward instead."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("every party waits, and nothing is left that could happen")
        self.now += max(timeout, 0.0)
        return []


class _Event(asyncio.TimerHandle):
    """An event of a virtual loop: of two at the same instant the one that was planned first comes first.

    The order of equals in a heap would depend on everything else that is in it.
    """

    __slots__ = ("planned",)
    planned: int

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, _Event):
            return NotImplemented
        return (self.when(), self.planned) < (other.when(), other.planned)


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time jumps from event to event.

    >>> async def nap() -> float:
    ...     await asyncio.sleep(3600)
    ...     return asyncio.get_running_loop().time()
    >>> run_virtual(nap())
    3600.0
    """

    def __init__(self) -> None:
        self._selector_clock = _JumpingSelector()
        super().__init__(self._selector_clock)
        self._planned = itertools.count()

    def time(self) -> float:
        return self._selector_clock.now

    def call_at(  # type: ignore[override]
        self, when: float, callback: Any, *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        event = _Event(when, callback, args, self, context)
        event.planned = next(self._planned)
        heapq.heappush(self._scheduled, event)  # type: ignore[attr-defined]
        event._scheduled = True  # type: ignore[attr-defined]
        return event


def run_virtual(main: Coroutine[Any, Any, T]) -> T:
    """Run a program on an event loop whose time jumps, and return its result."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
