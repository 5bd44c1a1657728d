"""Bounds the connections of an HTTP server: how many there may be, and how long one may be silent.

Anybody who reaches the port can open connections and say nothing, and a process can hold few. So there is
room for a fixed number at once, one that does not ask anything in time is closed, and where there is no room
left the one that has been silent for longest makes way: a client that asks at once is answered.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING

from colonnade.deploy.settings import address
from colonnade.net.stream.channel import cannot_listen

if TYPE_CHECKING:
    from aiohttp import web

MOST = 200
FIRST_S = 10.0  # until the first question
NEXT_S = 60.0  # from one question to the next, its answer included
HANDSHAKE_S = 5.0
END_OF_HEAD = b"\r\n\r\n"


class ConnectionLimits:
    """Makes the protocol of every connection and closes silent ones; `inner` makes what answers requests."""

    def __init__(
        self, inner: Callable[[], asyncio.Protocol], most: int = MOST, first_s: float = FIRST_S
    ) -> None:
        self.inner, self.most, self.first_s = inner, most, first_s
        self.inside: dict[Visitor, None] = {}  # the one that has been silent for longest comes first

    def __call__(self) -> Visitor:
        """Return the protocol of a new connection."""
        return Visitor(self, self.inner())


async def listen(
    runner: web.AppRunner, setting: str, where: str, tls: ssl.SSLContext | None = None
) -> asyncio.Server:
    """Let visitors in at the address that a setting names, to be answered by an application."""
    host, port = address(where, setting)
    await runner.setup()
    if runner.server is None:
        raise RuntimeError("the application was not set up")
    patience = HANDSHAKE_S if tls is not None else None
    try:
        return await asyncio.get_running_loop().create_server(
            ConnectionLimits(runner.server), host, port, ssl=tls, ssl_handshake_timeout=patience
        )
    except OSError as error:
        await runner.cleanup()
        raise cannot_listen(f"{setting}:", where, error) from error


class Visitor(asyncio.Protocol):
    """One connection: all that happens on it is passed on, for as long as it asks."""

    def __init__(self, limits: ConnectionLimits, inner: asyncio.Protocol) -> None:
        self._limits, self._inner = limits, inner
        self._transport: asyncio.BaseTransport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._tail = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        if len(self._limits.inside) >= self._limits.most:
            next(iter(self._limits.inside)).leave()
        self._heard(self._limits.first_s)
        self._inner.connection_made(transport)

    def _heard(self, patience: float) -> None:
        """Count as heard from just now; the connection is closed if nothing is asked for this many
        seconds."""
        self._forget()
        self._limits.inside[self] = None
        self._timer = asyncio.get_running_loop().call_later(patience, self.leave)

    def _forget(self) -> None:
        self._limits.inside.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()

    def leave(self) -> None:
        """Close the connection without a word."""
        self._forget()
        if isinstance(self._transport, asyncio.Transport):
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        if END_OF_HEAD in self._tail + data:
            self._heard(NEXT_S)
        self._tail = (self._tail + data)[-3:]
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        self._inner.connection_lost(exc)
