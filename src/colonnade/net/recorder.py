"""Writes down when a party computes and sends, beside a run and without a part in it.

A recorder hears of computing from the party's clock, which is told of all work where time is virtual, and
on a real clock from the party's tasks (`recorded`): every step of a task between two waits is computing. It
hears of frames from a wire around the party's own. Nothing it does changes what is sent or, in virtual time,
when; the memory it takes is bounded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine, Generator
from contextvars import ContextVar
from typing import Any, TypeVar

from colonnade.net.clock import RealClock, VirtualClock
from colonnade.net.network import Wire
from colonnade.net.tapped import TappedWire
from colonnade.timeline import PartyTimeline

T = TypeVar("T")

MOST = 4000  # spans of computing, and frames, that are kept of a party
NEAR = 1e-6  # spans this close to each other are one


class Recorder:
    """Keeps the timeline of one party, in the time of its clock.

    With `receives` also what it receives: which party's frame ended a wait is known only where it arrives.
    """

    def __init__(self, clock: RealClock | VirtualClock, *, receives: bool = False) -> None:
        self.clock = clock
        self._begun = 0.0
        clock.heard = self._computed
        self._timeline = PartyTimeline(busy=[], sent=[])
        self._full_at: float | None = None
        self._receives = receives
        self._idle_since = 0.0
        self._woken_by: str | None = None

    def now(self) -> float:
        """Return the seconds since the beginning."""
        return self.clock.now() - self._begun

    def begin(self) -> None:
        """Count from now on, where a party did something else before on the same clock."""
        self._begun = self.clock.now()

    def _computed(self, begin: float, end: float) -> None:
        """Note a span in the time of the clock."""
        self.computed(begin - self._begun, end - self._begun)

    def computed(self, begin: float, end: float) -> None:
        """Note a span of computing; the frame that came last before it is what was waited for."""
        kept = self._timeline
        kept.busy_seconds += end - begin
        if self._woken_by is not None:
            gap = max(0.0, begin - self._idle_since)
            kept.waited[self._woken_by] = kept.waited.get(self._woken_by, 0.0) + gap
            self._woken_by = None
        self._idle_since = end
        if self._full_at is not None:
            return
        if kept.busy and 0 <= begin - kept.busy[-1][1] < NEAR:
            kept.busy[-1] = (kept.busy[-1][0], end)
        elif len(kept.busy) < MOST:
            kept.busy.append((begin, end))
        else:
            self._full_at = begin

    def sent(self, to: str, frame: bytes) -> None:
        """Note a frame that leaves now."""
        kept = self._timeline
        kept.frames += 1
        if self._full_at is not None:
            return
        if len(kept.sent) < MOST:
            kept.sent.append((self.now(), to, len(frame)))
        else:
            self._full_at = self.now()

    def received(self, sender: str, frame: bytes) -> None:
        """Note a frame that arrives now."""
        self._woken_by = sender
        kept = self._timeline.received
        if self._full_at is None and len(kept) < MOST:
            kept.append((self.now(), sender, len(frame)))
        elif self._full_at is None:
            self._full_at = self.now()

    def finish(self, seconds: float) -> PartyTimeline:
        """Return the timeline of a run that took this many seconds."""
        self._timeline.seconds = seconds
        self._timeline.until = seconds if self._full_at is None else self._full_at
        return self._timeline

    def tap(self, wire: Wire) -> Wire:
        """Return the wire, with every frame noted that passes through it."""
        return TappedWire(wire, self.sent, self.received if self._receives else None)


# whose steps the tasks of this context are; tasks inherit it from the task that starts them
_recorder: ContextVar[Recorder | None] = ContextVar("recorder", default=None)


async def recorded(recorder: Recorder | None, work: Coroutine[Any, Any, T]) -> T:
    """Do a party's work on a real clock; every step of it, and of the tasks it starts, is noted as computing.

    Without a recorder nothing is added to the work.
    """
    if recorder is None:
        return await work
    loop = asyncio.get_running_loop()
    if loop.get_task_factory() is None:
        loop.set_task_factory(_recorded_task)
    before = _recorder.set(recorder)
    try:
        return await _RecordedSteps(work, recorder)
    finally:
        _recorder.reset(before)  # what the same task does later is no part of it


def _recorded_task(
    loop: asyncio.AbstractEventLoop,
    coroutine: Coroutine[Any, Any, T] | Generator[Any, None, T],
    **options: Any,
) -> asyncio.Task[T]:
    """Return a task of the loop; if it belongs to a party that is recorded, its steps are noted."""
    recorder = _recorder.get()
    if recorder is not None and asyncio.iscoroutine(coroutine):
        coroutine = _awaited(_RecordedSteps(coroutine, recorder))
    return asyncio.Task(coroutine, loop=loop, **options)


async def _awaited(work: Awaitable[T]) -> T:
    return await work


class _RecordedSteps(Awaitable[T]):
    """Awaits a coroutine, and tells a recorder of every step from one wait to the next."""

    def __init__(self, work: Coroutine[Any, Any, T], recorder: Recorder) -> None:
        self._work = work
        self._recorder = recorder

    def __await__(self) -> Generator[Any, Any, T]:
        recorder, error = self._recorder, None
        while True:
            begin = recorder.now()
            try:
                awaited = self._work.send(None) if error is None else self._work.throw(error)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            finally:
                recorder.computed(begin, recorder.now())
            try:
                error = None
                yield awaited
            except BaseException as thrown:  # the coroutine's to handle, a cancellation above all
                error = thrown
