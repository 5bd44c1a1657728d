"""An event loop whose time jumps: when nothing is left to do now, it is at once the time of the next event.

The standard selector loop does all the work; only its clock and its waiting are replaced. (Libraries for
this exist; the one made for it is under a licence that an Apache-licensed project cannot depend on, the
others bring a test framework's plug-ins.)
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Jump(selectors.SelectSelector):
    """Waiting takes no time: the clock is set forward instead."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("every party waits, and nothing is left that could happen")
        self.now += max(timeout, 0.0)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """
    >>> async def nap() -> float:
    ...     await asyncio.sleep(3600)
    ...     return asyncio.get_running_loop().time()
    >>> run_virtual(nap())
    3600.0
    """

    def __init__(self) -> None:
        self._jump = _Jump()
        super().__init__(self._jump)

    def time(self) -> float:
        return self._jump.now


def run_virtual(main: Coroutine[Any, Any, T]) -> T:
    """Run a program on an event loop whose time jumps from event to event."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
