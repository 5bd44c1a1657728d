"""Ports of this machine: one that many lines share, and how to find free ones.

A daemon that knows several peers keeps one line with each. Every line is a wire of two parties that may end
and begin again without the others noticing. They share a port: a peer that dials in is handed to the line of
the party that its certificate names. The line itself then checks that the certificate is the pinned one.
"""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from random import SystemRandom

from colonnade.net.stream.channel import Address, Channel, Transport
from colonnade.net.stream.pem_files import names_in

_NEVER_LENT = range(15_000, 32_768)  # Linux lends ports from 32768 on, other systems from 49152 on
_TRIES = 1000


class Port:
    """A listening port that hands each channel to the line of the peer at its other end."""

    def __init__(self, engine: Transport, address: Address) -> None:
        self.address = address
        self.refused: Counter[str] = Counter()
        self._engine = engine
        self._accepting: dict[str, Callable[[Channel], None]] = {}

    async def open(self) -> None:
        await self._engine.listen(*self.address, self._accepted, self._refuse)

    async def close(self) -> None:
        await self._engine.close()

    def engine(self, peer: str) -> PeerEngine:
        """Return the engine for the line with this peer."""
        return PeerEngine(self, peer)

    def _accepted(self, channel: Channel) -> None:
        for name in names_in(channel.certificate):
            if name in self._accepting:
                self._accepting[name](channel)
                return
        self._refuse("not a known peer, or one whose line is not open")
        channel.abort()

    def _refuse(self, reason: str) -> None:
        self.refused[reason] += 1


class PeerEngine:
    """An `Transport` for one peer: it dials as usual, and listens through the common port."""

    def __init__(self, port: Port, peer: str) -> None:
        self.write_size = port._engine.write_size
        self._port = port
        self._peer = peer

    async def dial(self, peer: str, host: str, port: int) -> Channel:
        return await self._port._engine.dial(peer, host, port)

    async def listen(
        self, host: str, port: int, accepted: Callable[[Channel], None], refused: Callable[[str], None]
    ) -> None:
        self._port._accepting[self._peer] = accepted

    def catch_up(self) -> int:
        return self._port._engine.catch_up()

    async def close(self) -> None:
        self._port._accepting.pop(self._peer, None)


def free_ports(count: int) -> list[int]:
    """Return ports of this machine that nobody listens on now, for parties that live on it together.

    They are drawn below those that systems lend to connections: such a one may be lent to somebody before the
    party listens that it was found for.
    """
    with ExitStack() as stack:
        found = list[int]()
        for port in SystemRandom().sample(_NEVER_LENT, _TRIES + count):
            with suppress(OSError):  # somebody listens there
                stack.enter_context(socket.create_server(("127.0.0.1", port)))
                found.append(port)
            if len(found) == count:
                return found
    raise OSError(f"{count} free ports of this machine were not found")
