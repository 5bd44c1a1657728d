"""Where an alignment computes: processes of its own for many ids, a thread for few.

Work is a function of arrays and bytes, so that it means the same in both. Processes are new and no forks:
the party has threads, and an event loop that a child must not share. They end with the alignment, or with the
party if that is killed.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.process import BaseProcess
from typing import ParamSpec, Self, TypeVar

from colonnade.errors import AlignmentError

ENOUGH = 100_000  # points to compute before processes are worth their start: five seconds of work
A_WORKER = 25_000  # points for which one more is worth its start

_Args = ParamSpec("_Args")
_Result = TypeVar("_Result")


class ComputePool:
    """Workers for as long as the `async with` block lasts; `size` can be busy at once."""

    def __init__(self, points: int) -> None:
        alone = points < ENOUGH or multiprocessing.current_process().daemon
        self.size = 1 if alone else max(1, min(_cores(), points // A_WORKER))
        self._executor: Executor = (
            ThreadPoolExecutor(1)
            if alone
            else ProcessPoolExecutor(self.size, multiprocessing.get_context("spawn"), initializer=_begin)
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        self._executor.shutdown(wait=False, cancel_futures=True)

    async def run(self, work: Callable[_Args, _Result], *args: _Args.args, **kwargs: _Args.kwargs) -> _Result:
        """Return what `work` returns, computed beside the event loop."""
        try:
            return await asyncio.wrap_future(self._executor.submit(work, *args, **kwargs))
        except BrokenProcessPool:
            raise AlignmentError(
                "a process that compared ids has ended; was it killed for want of memory?"
            ) from None


def _cores() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _begin() -> None:
    """Leave interrupts to the party, and end when it does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: BaseProcess) -> None:
    parent.join()
    os._exit(1)
