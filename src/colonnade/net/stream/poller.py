"""Which of many sockets have something to read: asked once for all of them, by the loop or at any time.

An event loop calls back for every socket that is ready, each in its own turn. Here one descriptor stands for
all sockets of a party, so the loop calls once and all that has come is read in one go. And a party that has
computed for a while may ask by itself, without letting the loop take its turns, which on a machine with more
parties than cores is what a small round costs most.
"""

from __future__ import annotations

import asyncio
import os
import select
from collections.abc import Callable

SUPPORTED = hasattr(select, "epoll") and hasattr(os, "readv")
"""Whether many descriptors can be asked for through one, and read into a buffer: on Linux."""


class Poller:
    """The sockets of one party that are read as soon as there is something to read."""

    def __init__(self) -> None:
        self.heard = 0  # how often there was something
        self._epoll: select.epoll | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._readers: dict[int, Callable[[], None]] = {}

    def watch(self, descriptor: int, read: Callable[[], None]) -> None:
        """Call `read` whenever this descriptor is ready, until it is forgotten."""
        if self._epoll is None:
            self._epoll, self._loop = select.epoll(), asyncio.get_running_loop()
            self._loop.add_reader(self._epoll.fileno(), self.poll)
        self._epoll.register(descriptor, select.EPOLLIN)
        self._readers[descriptor] = read

    def forget(self, descriptor: int) -> None:
        """Watch a descriptor no more. The last one takes the poller's own with it."""
        if self._epoll is None or self._loop is None:
            return
        self._epoll.unregister(descriptor)
        del self._readers[descriptor]
        if not self._readers:
            self._loop.remove_reader(self._epoll.fileno())
            self._epoll.close()
            self._epoll = None

    def poll(self) -> None:
        """Read all that has come."""
        if self._epoll is None:
            return
        ready = self._epoll.poll(0)
        if ready:
            self.heard += 1
            for descriptor, _ in ready:
                if (read := self._readers.get(descriptor)) is not None:  # an earlier one may end others
                    read()
