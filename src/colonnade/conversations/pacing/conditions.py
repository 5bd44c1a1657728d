"""Lets tasks of a party wait for what others of its tasks change."""

from __future__ import annotations

import asyncio
import bisect
from collections.abc import Callable
from operator import itemgetter


class Conditions:
    """Lets tasks wait until something holds; a change of what they ask for wakes them.

    They wake in the order of what they wait for, in any order of coming: so a run goes on as it would have.
    """

    def __init__(self) -> None:
        self._waiting: list[tuple[int, Callable[[], bool], asyncio.Future[None]]] = []
        self.changes = 0  # how often somebody changed something

    async def until(self, holds: Callable[[], bool], first: int = 0) -> None:
        """Wait until it holds; `first` is the first round that it is about."""
        while not holds():
            wait = (first, holds, asyncio.get_running_loop().create_future())
            bisect.insort(self._waiting, wait, key=itemgetter(0))
            try:
                await wait[2]
            except asyncio.CancelledError:
                self._waiting = [other for other in self._waiting if other is not wait]
                raise

    def wake(self) -> None:
        """Look again at what everybody waits for."""
        self.changes += 1
        ready = [wait for wait in self._waiting if wait[1]()]
        if not ready:
            return
        self._waiting = [wait for wait in self._waiting if wait not in ready]
        for _, _, future in ready:
            if not future.done():
                future.set_result(None)
