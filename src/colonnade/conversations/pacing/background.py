"""Work that goes on in the background while a party does something else."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Background:
    """Tasks that run until the context ends; one that fails ends what is guarded meanwhile."""

    def __init__(self, *work: Coroutine[Any, Any, None]) -> None:
        self._work = work
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Background:
        self._tasks = [asyncio.ensure_future(each) for each in self._work]
        return self

    async def __aexit__(self, *error: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def guard(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of some work; a task in the background that fails meanwhile ends it."""
        task = asyncio.ensure_future(work)
        try:
            finished, _ = await asyncio.wait({task, *self._tasks}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            task.cancel()  # and look at what it raised, also where this party is being ended at the same time
            await asyncio.gather(task, return_exceptions=True)
        # several may have failed together; every exception must be looked at, the first is raised
        failures = [error for each in finished if (error := each.exception()) is not None]
        if failures:
            raise failures[0]
        return task.result()
