"""What crosses between two parties whose products are encrypted: bytes, and a few small whole numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from colonnade.arrays import Floats, Rows, Words
from colonnade.errors import MalformedMessage
from colonnade.messages import Announce, Sealed, Topic, tag_of
from colonnade.net.expect import PACKED, floats, said_by, whole
from colonnade.net.network import Network

T = TypeVar("T")


class PeerLine:
    """One party's end: messages go and come in one order, so both count them alike."""

    def __init__(self, net: Network, peer: str) -> None:
        self.net, self.peer = net, peer
        self._sent = self._got = 0

    async def seal(self, *parts: object) -> None:
        """Send something that can be written as bytes; each of several in a message of its own."""
        for part in parts:
            body = np.frombuffer(bytes(part), dtype=np.uint8)  # type: ignore[call-overload]
            await self.net.send(self.peer, Sealed(self._out(), body))

    async def opened(self, read: Callable[[bytes], T]) -> T:
        """Return what the peer's next bytes are."""
        message = await self.net.recv(Sealed, self.peer, self._in(), body=PACKED)
        with said_by(self.peer):
            return read(message.body.tobytes())

    def let_open(self, numbers: int, topic: Topic = Topic.BLIND) -> None:
        """Count numbers that the peer can open by what it is sent next; refused beyond what is declared."""
        self.net.let_open(self.peer, topic, numbers)

    async def tell(self, *numbers: int) -> None:
        """Send a few small whole numbers."""
        await self.net.send(self.peer, Announce(self._out(), np.array(numbers, dtype=np.int64)))

    async def told(self, count: int | None, low: int, high: int) -> Rows:
        """Return the peer's next whole numbers, which must lie in this range."""
        shifted = whole(count, low=low, high=high)
        heard: Rows = (await self.net.recv(Announce, self.peer, self._in(), values=shifted)).values
        return heard

    async def show(self, numbers: Floats) -> None:
        """Send numbers that the peer may read."""
        await self.net.send(self.peer, Announce(self._out(), numbers))

    async def shown(self, *shape: int) -> Floats:
        """Return the peer's next numbers."""
        heard: Floats = (await self.net.recv(Announce, self.peer, self._in(), values=floats(*shape))).values
        return heard

    async def exchange(self, own: Floats) -> Floats:
        """Send numbers, and return as many of the peer's."""
        await self.show(own)
        return await self.shown(*own.shape)

    def _out(self) -> int:
        self._sent += 1
        return tag_of(Topic.BLIND, self._sent)

    def _in(self) -> int:
        self._got += 1
        return tag_of(Topic.BLIND, self._got)


def parts_of(data: bytes, count: int) -> Words:
    """Return parts of inner products, as an asker gives them back; refuse anything else."""
    if len(data) != 8 * count:
        raise MalformedMessage(f"{len(data)} bytes of inner products where {8 * count} were due")
    return np.frombuffer(data, dtype="<u8").astype(np.uint64)
