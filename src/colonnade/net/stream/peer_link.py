"""The link of a wire with one peer, over one connection after another.

The wire looks for connections and decides who is admitted; the link holds the one that stands, and what
is known of the peer while none does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass

from colonnade.errors import ColonnadeError
from colonnade.net.stream.channel import Address
from colonnade.net.stream.connection import Connection
from colonnade.net.stream.outbox import Outbox


@dataclass(eq=False, slots=True)
class PeerLink:
    """One peer: its connection while one stands, and the search for one while none does."""

    peer: str
    address: Address
    dials: bool
    outbox: Outbox
    connection: Connection | None = None
    instance: bytes = b""  # the peer's process; empty until it was met
    ended: ColonnadeError | None = None
    left: bool = False  # it hung up on purpose
    closed: bool = False  # this party did
    timer: asyncio.TimerHandle | None = None
    dialling: asyncio.Task[None] | None = None

    def store(self, frame: bytes) -> Awaitable[None] | None:
        """Take a frame while no connection stands."""
        if self.ended is not None or self.closed:
            return None  # nobody will take it, and all that must know have been told
        if self.instance:
            return self.outbox.turn()  # the line is down; the endpoint sends again when it stands
        return self.outbox.put(frame)

    def attach(self, connection: Connection, instance: bytes) -> None:
        """Send over this connection from now on, instead of the one there was."""
        former = self.connection
        if former is not None:  # the peer noticed the break before this end did
            self.detach()
            former.channel.abort()
        self.stop_waiting()
        self.instance, self.connection = instance, connection
        connection.admitted(self.peer)
        self.outbox.connect(connection.channel)

    def detach(self) -> None:
        self.connection = None
        self.outbox.disconnect()

    def stop_waiting(self) -> None:
        """Do not give up on the peer when its time is over."""
        if self.timer is not None:
            self.timer.cancel()

    def end(self, error: ColonnadeError) -> None:
        """Hang up: the peer is gone for good."""
        self.ended = error
        self.stop_waiting()
        if self.connection is not None:
            self.outbox.hang_up()
            self.connection.close()
            self.detach()
        self.outbox.release()

    def leave(self) -> None:
        """Send what waits and hang up: this party leaves."""
        self.stop_waiting()
        if self.dialling is not None:
            self.dialling.cancel()
        self.closed = True
        self.outbox.hang_up()
        self.detach()
        self.outbox.release()
