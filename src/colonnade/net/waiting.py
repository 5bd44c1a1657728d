"""Waiting for messages: every wait has a deadline, and one timer watches them all.

A wait names what is missing and from whom, so that the error of a wait that came to nothing can say it.
When the run fails, every wait, now and later, ends with that reason.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from colonnade.errors import ColonnadeError, DeadlineExceeded

RESOLUTION = 1e-5
PATIENCE = 10  # deadlines that who shows signs of life, and nothing else, is waited for
BLOCKED = 1.0  # a timer that comes this late tells that its loop was not free to run


class _Wait:
    """Somebody waits until every sender in `missing` has delivered."""

    __slots__ = ("begun", "due", "future", "missing", "what")

    def __init__(
        self, missing: set[str], what: str, begun: float, due: float, future: asyncio.Future[None]
    ) -> None:
        self.missing = missing
        self.what = what
        self.begun = begun
        self.due = due
        self.future = future


class Waits:
    """All waits of one party, by what they wait for."""

    def __init__(self, me: str, deadline: float) -> None:
        self.failure: ColonnadeError | None = None
        self._me = me
        self._deadline = deadline
        self._waits: dict[object, list[_Wait]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self.heard: dict[str, float] = {}  # when every peer last said something
        self.now: Callable[[], float] = self._first_now  # of the loop that this party runs on

    async def until(
        self, key: object, missing: set[str], what: str, *, patient: bool = False, deadlines: float = 1
    ) -> None:
        """Wait until `release` was called for `key` and each of `missing`, or for `deadlines` deadlines.

        A patient wait has no deadline.
        """
        if self.failure is not None:
            raise self.failure
        loop = asyncio.get_running_loop()
        begun = self.now()
        due = float("inf") if patient else begun + deadlines * self._deadline
        wait = _Wait(missing, what, begun, due, loop.create_future())
        self._waits.setdefault(key, []).append(wait)
        if self._timer is None and not patient:
            self._timer = loop.call_at(wait.due, self._check, wait.due)
        try:
            await wait.future
        finally:
            waits = self._waits[key]
            waits.remove(wait)
            if not waits:
                del self._waits[key]

    def release(self, key: object, sender: str) -> None:
        """End the waits for `key` in which only this sender was missing."""
        for wait in self._waits.get(key, ()):
            wait.missing.discard(sender)
            if not wait.missing and not wait.future.done():
                wait.future.set_result(None)

    def fail(self, error: ColonnadeError) -> None:
        """End every wait, now and later, with this error; only the first error counts."""
        if self.failure is None:
            self.failure = error
            for waits in self._waits.values():
                for wait in waits:
                    if not wait.future.done():
                        wait.future.set_exception(error)

    def _first_now(self) -> float:
        """Return the time of the loop; from now on its clock is asked, if that is the one most loops have."""
        loop = asyncio.get_running_loop()
        self.now = time.monotonic if type(loop).time is asyncio.BaseEventLoop.time else loop.time
        return self.now()

    def extend(self, peer: str) -> None:
        """Wait a deadline more for a peer that shows signs of life, but not for ever."""
        now = asyncio.get_running_loop().time()
        for waits in self._waits.values():
            for wait in waits:
                if peer in wait.missing or "" in wait.missing:
                    longest = wait.begun + PATIENCE * self._deadline
                    wait.due = max(wait.due, min(now + self._deadline, longest))

    def _silences(self, now: float) -> str:
        """Return for how long every peer has been silent, the longest first."""
        since = sorted((at, peer) for peer, at in self.heard.items())
        known = (f"{peer} is silent for {now - at:.3g} s" for at, peer in since)
        return ", ".join(known) or "nobody has said a word"

    def words(self) -> str:
        """Return what is waited for now, and from whom; the longest wait first."""
        pending = sorted(
            (wait for waits in self._waits.values() for wait in waits), key=lambda wait: wait.begun
        )
        found = [
            f"{wait.what} from {', '.join(sorted(wait.missing))}" for wait in pending if wait.missing - {""}
        ]
        return f"{self._me} waited for {'; '.join(found[:3])}" if found else ""

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _check(self, when: float) -> None:
        """End the waits that are overdue, and look again when the next one would be."""
        loop = asyncio.get_running_loop()
        # a loop may call a little early, within the resolution of its clock
        now = loop.time() + RESOLUTION
        late = now - when
        self._timer = None
        upcoming = float("inf")
        for waits in self._waits.values():
            for wait in waits:
                if wait.future.done():
                    continue
                if late > BLOCKED:
                    # this process was busy itself and could not have heard anybody
                    wait.due = max(wait.due, now + self._deadline)
                if wait.due > now:
                    upcoming = min(upcoming, wait.due)
                    continue
                silent = ", ".join(sorted(wait.missing - {""})) or f"any peer ({self._silences(now)})"
                text = f"{self._me} waited {wait.due - wait.begun:g} s for {wait.what} from {silent}"
                wait.future.set_exception(DeadlineExceeded(f"{text}; is it running and reachable?"))
        if upcoming < float("inf"):
            self._timer = loop.call_at(upcoming, self._check, upcoming)
