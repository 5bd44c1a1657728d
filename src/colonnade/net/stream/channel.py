"""What a wire over a real network needs from its engine (TLS sockets): channels, and who is there.

An engine dials and listens. A channel is one encrypted connection whose other end has proven to own a
certificate; bytes go in and come out in order until it breaks. Everything else (frames, reconnecting,
resending, pinning) is the wire's and is written once.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Protocol

from colonnade.errors import JobError

Address = tuple[str, int]

AT_ONCE, LATER = 2, 5
"""Turns of an event loop until what has come is delivered: where the loop reads each socket by itself, and
where its reader hands it on to tasks. The task that waits for that goes on before the loop reads, so
one turn is not enough."""

CLOSE_S = 2.0
"""How long a closing channel waits for its last bytes to be taken."""


class Receiver(Protocol):
    """What a channel calls: with what arrives, when there is room again, and at its end."""

    def received(self, data: bytes) -> None: ...

    def drained(self) -> None:
        """Take note that the bytes of a write that returned False have left."""
        ...

    def gone(self, error: Exception) -> None:
        """Take note, once and at the end, that the channel is closed; a CertificateError if that was why."""
        ...


class Channel(Protocol):
    """One encrypted connection with somebody whose certificate the authority signed."""

    @property
    def certificate(self) -> bytes:
        """The other end's certificate (DER), which the authority signed."""
        ...

    def open(self, receiver: Receiver) -> None:
        """Begin to hand what arrives to the receiver."""
        ...

    def write(self, data: bytes) -> bool:
        """Send these bytes. False if they have not left yet: then write nothing more before `drained`."""
        ...

    def prompt(self) -> bool:
        """Return whether nothing was written since this party last heard anything: then nothing more may be
        sent soon, and what is to be sent need not wait for it."""
        ...

    def close(self) -> None:
        """Send what was written, then end; at the latest after `CLOSE_S`."""
        ...

    def abort(self) -> None:
        """End now."""
        ...


class Transport(Protocol):
    """Dials and listens. A new transport is a new engine."""

    write_size: int
    """Bytes that are best written at once, if this many are waiting."""

    async def dial(self, peer: str, host: str, port: int) -> Channel: ...

    async def listen(
        self, host: str, port: int, accepted: Callable[[Channel], None], refused: Callable[[str], None]
    ) -> None:
        """Call `accepted` with a channel to everybody the authority vouches for, `refused` with why others
        are not let in."""
        ...

    def catch_up(self) -> int:
        """Read what has come, where that can be done now; in this many turns of the event loop all is
        read."""
        ...

    async def close(self) -> None:
        """Stop listening."""
        ...


def cannot_listen(who: str, where: str, error: Exception) -> JobError:
    """Return the error for a port that is taken, or an address that is not this machine's."""
    reason = ""
    if isinstance(error, OSError) and error.errno is not None:
        # asyncio puts the system's reason into a sentence of its own; a name that is not known has its own
        reason = f": {os.strerror(error.errno) if error.errno > 0 else error.strerror}"
    return JobError(
        f"{who} cannot listen on {where}{reason}; is it running already? If not, choose another port"
    )
