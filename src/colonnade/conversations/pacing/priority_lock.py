"""Hands out a party's time: of all that wait for it, the most urgent first.

Shares for others come first, since everybody waits for them; a dominator's own round comes next, and takes
along all thetas of others wait; what is left are thetas that nobody else takes. Each party's windows
bound how much of the first there is, so that nothing waits for ever. A party has one worker or, on the
virtual clock, as many as the job gives it processors: VFB2's threads within a party.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Coroutine
from enum import IntEnum


class Urgency(IntEnum):
    """What comes first: the smaller number."""

    SHARES = 0
    OWN_ROUND = 1
    THETAS = 2


class PriorityLock:
    """Some workers; who asks gets one in the order of urgency, and of asking."""

    def __init__(self, workers: int = 1) -> None:
        self._free = workers
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._asked = itertools.count()
        self._turns = [_Turn(self, urgency) for urgency in Urgency]

    def busy(self, urgency: Urgency) -> _Turn:
        """Keep a worker for as long as the context lasts."""
        return self._turns[urgency]

    async def acquire(self, urgency: Urgency) -> None:
        """Wait for a worker, unless one is free and nobody else waits."""
        if self._free and not self._waiting:
            self._free -= 1
            return
        future = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (urgency, next(self._asked), future))
        if len(self._waiting) == 1:
            self._grant()
        try:
            await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():  # it was granted in the same moment
                self._free += 1
                self._grant()
            raise

    def release(self) -> None:
        """Give a worker to the next one."""
        self._free += 1
        if self._waiting:
            # not at once: the one that gives it back may have something more urgent to do next
            asyncio.get_running_loop().call_soon(self._grant)

    def _grant(self) -> None:
        while self._free and self._waiting:
            *_, future = heapq.heappop(self._waiting)
            if not future.done():
                self._free -= 1
                future.set_result(None)


class _Turn:
    """Somebody's turn at a worker."""

    __slots__ = ("_urgency", "_worker")

    def __init__(self, worker: PriorityLock, urgency: Urgency) -> None:
        self._worker, self._urgency = worker, urgency

    def __aenter__(self) -> Coroutine[None, None, None]:
        return self._worker.acquire(self._urgency)

    async def __aexit__(self, *error: object) -> None:
        self._worker.release()
