"""Frames that wait for one peer: they leave together, and a sender of too much waits.

Everything that is sent in one turn of the event loop, or while the line is full, is written at once, so
that small messages share a TLS record. Above the high-water mark a sender is given a
future to wait for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from colonnade.net.framing import HANG_UP, prefix
from colonnade.net.stream.channel import Channel

HIGH_WATER = 2**20


class Outbox:
    """The frames that wait for one peer. About `write_size` bytes are written at once."""

    def __init__(self, write_size: int) -> None:
        self._write_size = write_size
        self._channel: Channel | None = None
        self._pieces: list[bytes] = []  # a length, its frame, a length, its frame, ...
        self._waiting = 0
        self._full = False
        self._scheduled = False
        self._senders: list[asyncio.Future[None]] = []

    def put(self, frame: bytes) -> Awaitable[None] | None:
        """Send a frame. What comes back, if anything, is to be awaited before the next."""
        channel, size = self._channel, len(frame)
        length = prefix(size)
        alone = size < self._write_size and not (self._pieces or self._full)
        if channel is not None and alone and channel.prompt():
            self._full = not channel.write(length + frame)
            return None
        self._pieces += (length, frame)
        self._waiting += len(length) + size
        if not self._scheduled and not self._full and self._channel is not None:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._flush)
        return self.turn() if self._waiting > HIGH_WATER else None

    def turn(self) -> asyncio.Future[None]:
        """Return a future that is done when there is room again."""
        # one future a sender: a sender that is cancelled must not take the others with it
        sender = asyncio.get_running_loop().create_future()
        self._senders.append(sender)
        return sender

    def connect(self, channel: Channel) -> None:
        """Write to this channel from now on, beginning with what waits."""
        self._channel = channel
        self._full = False
        self._flush()

    def disconnect(self) -> None:
        """Forget what waits, since the line broke; the endpoint keeps it until it is acknowledged."""
        self._channel = None
        self._pieces.clear()
        self._waiting = 0

    def drained(self) -> None:
        self._full = False
        self._flush()

    def hang_up(self) -> None:
        """Write all that waits and the word that nothing follows, then close the channel."""
        if self._channel is not None:
            while self._pieces:
                self._channel.write(self._next())
            self._channel.write(HANG_UP)
            self._channel.close()
            self.disconnect()

    def release(self) -> None:
        """Let every sender that waits for room go on."""
        senders, self._senders = self._senders, []
        for sender in senders:
            if not sender.done():
                sender.set_result(None)

    def _flush(self) -> None:
        self._scheduled = False
        while self._pieces and not self._full and self._channel is not None:
            self._full = not self._channel.write(self._next())
        if not self._full and self._channel is not None:
            self.release()

    def _next(self) -> bytes:
        """Return the bytes of the next write: whole frames, enough of them to fill it."""
        if self._waiting <= self._write_size:
            data, self._pieces, self._waiting = b"".join(self._pieces), [], 0
            return data
        count, size = 0, 0
        while size < self._write_size and count < len(self._pieces):
            size += len(self._pieces[count]) + len(self._pieces[count + 1])
            count += 2
        data = b"".join(self._pieces[:count])
        del self._pieces[:count]
        self._waiting -= size
        return data
