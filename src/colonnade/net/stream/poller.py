"""Which of many sockets have something to read: asked once for all of them, by the loop or at any time.

An event loop calls back for every socket that is ready, each in its own turn. Here one descriptor stands for
all sockets of a party, so the loop calls once and all that has come is read in one go. And a party that has
computed for a while may ask by itself, without letting the loop take its turns, which on a machine with more
parties than cores is what a small round costs most.
"""

from __future__ import annotations

import asyncio
import os
import selectors
from collections.abc import Callable

SUPPORTED = hasattr(selectors.DefaultSelector, "fileno") and hasattr(os, "readv")
"""Whether many descriptors can be asked for through one, as on Linux, BSD and macOS."""


class Poller:
    """The sockets of one party that are read as soon as there is something to read."""

    def __init__(self) -> None:
        self.heard = 0  # how often there was something
        self._selector: selectors.BaseSelector | None = None
        self._fileno = -1
        self._loop: asyncio.AbstractEventLoop | None = None

    def watch(self, descriptor: int, read: Callable[[], None]) -> None:
        """Call `read` whenever this descriptor is ready, until it is forgotten."""
        if self._selector is None:
            selector = selectors.DefaultSelector()
            self._selector, self._loop = selector, asyncio.get_running_loop()
            self._fileno = selector.fileno()
            self._loop.add_reader(self._fileno, self.poll)
        self._selector.register(descriptor, selectors.EVENT_READ, read)

    def forget(self, descriptor: int) -> None:
        """Watch a descriptor no more. The last one takes the poller's own with it."""
        if self._selector is None or self._loop is None:
            return
        self._selector.unregister(descriptor)
        if not self._selector.get_map():
            self._loop.remove_reader(self._fileno)
            self._selector.close()
            self._selector = None

    def poll(self) -> None:
        """Read all that has come."""
        if self._selector is None:
            return
        ready = self._selector.select(0)
        if ready:
            self.heard += 1
            for key, _ in ready:
                key.data()
