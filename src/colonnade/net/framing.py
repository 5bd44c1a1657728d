"""Frames on a stream of bytes: a length, then the frame; and what that and TLS cost.

A length takes two bytes, little-endian, or four where the highest bit of the two is set: it is no part of the
length, whose upper half follows. A length is checked before its frame is read, so nobody can make a party set
aside memory for a frame that it would refuse. A frame of length zero is a word of the wire itself: the sender
hangs up on purpose.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from colonnade.errors import OversizedMessage

RECORD, RECORD_OVERHEAD = 16384, 22  # a TLS 1.3 record: bytes in it at most, and on top of them
SHORT, LONG = 2, 4  # bytes of a length
PIECE = 4096  # bytes; smaller parts of a frame are kept together
_BITS = 15  # of a length, in its first two bytes
_MARK = 1 << _BITS


def prefix(size: int) -> bytes:
    """Return the length that goes before a frame of `size` bytes."""
    if size < _MARK:
        return size.to_bytes(SHORT, "little")
    return (size % _MARK | _MARK).to_bytes(SHORT, "little") + (size >> _BITS).to_bytes(SHORT, "little")


HANG_UP = prefix(0)


@lru_cache(maxsize=256)
def stream_framing(size: int) -> tuple[int, int]:
    """Return bytes that are sent beside a frame of `size` bytes: for its length, which is ours, and for TLS
    records.

    Frames that are waiting together share a record, so this is the most a frame can cost.

    >>> stream_framing(100), stream_framing(20_000), stream_framing(40_000)
    ((2, 22), (2, 44), (4, 66))
    """
    length = SHORT if size < _MARK else LONG
    return length, RECORD_OVERHEAD * -(-(size + length) // RECORD)


class Splitter:
    """Cuts a stream of bytes, which comes in pieces of any size, into its frames.

    >>> splitter = Splitter(100)
    >>> splitter.feed(prefix(3) + b"ab"), splitter.feed(b"c" + prefix(1)), splitter.feed(b"d")
    ([], [b'abc'], [b'd'])
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._rest: list[bytes] = []
        self._size = 0
        self._need = SHORT

    def feed(self, data: bytes) -> list[bytes]:
        """Return the frames that are complete now. OversizedMessage if one is announced that is too long."""
        if self._rest:
            if len(self._rest[-1]) + len(data) > PIECE:
                self._rest.append(data)
            else:  # pieces of two bytes, each by itself, would weigh twenty times as much as their frame
                self._rest[-1] += data
            self._size += len(data)
            if self._size < self._need:
                return []
            data = b"".join(self._rest)  # once a frame is whole, and not for every piece of it
            self._rest.clear()
        frames, at, self._need = split(data, self.limit)
        if self._need < 0:
            raise OversizedMessage(f"a frame of {-self._need} bytes is announced, the limit is {self.limit}")
        if at < len(data):
            self._rest.append(data[at:])
            self._size = len(data) - at
        return frames


def plain_split(data: bytes, limit: int) -> tuple[list[bytes], int, int]:
    """Return the whole frames in some bytes, where they end, and how many bytes from there the next one
    needs.

    The last number is negative where a frame is longer than the limit: minus its length. `_line.c` does the
    same, compiled.
    """
    frames = []
    at, size, need = 0, len(data), SHORT
    while size - at >= SHORT:
        start = at + SHORT
        length = int.from_bytes(data[at:start], "little")
        if length & _MARK:
            if size - at < LONG:
                need = LONG
                break
            start = at + LONG
            length += (int.from_bytes(data[at + SHORT : start], "little") << _BITS) - _MARK
        if length > limit:
            need = -length
            break
        end = start + length
        if end > size:
            need = end - at
            break
        frames.append(data[start:end])
        at = end
    return frames, at, need


if TYPE_CHECKING:
    split = plain_split
else:
    try:
        from colonnade.net._line import split
    except ImportError:
        split = plain_split
