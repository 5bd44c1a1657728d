"""Frames on a stream of bytes: a length of four bytes, then the frame; and what that and TLS cost.

A length is checked before its frame is read, so nobody can make a party set aside memory for a frame
that it would refuse. A frame of length zero is a word of the wire itself: the sender hangs up on purpose.
"""

from __future__ import annotations

from colonnade.errors import OversizedMessage

# what a TLS 1.3 record and a length prefix add to a frame on a real line
RECORD, RECORD_OVERHEAD, LENGTH_PREFIX = 16384, 22, 4
HANG_UP = bytes(LENGTH_PREFIX)


def tls_framing(size: int) -> int:
    """Bytes that a length prefix and TLS 1.3 records add to a frame of `size` bytes.

    Frames that are waiting together share a record, so this is the most a frame can cost.

    >>> tls_framing(100), tls_framing(20_000)
    (26, 48)
    """
    return LENGTH_PREFIX + RECORD_OVERHEAD * -(-(size + LENGTH_PREFIX) // RECORD)


def prefix(size: int) -> bytes:
    return size.to_bytes(LENGTH_PREFIX, "little")


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
        self._need = LENGTH_PREFIX

    def feed(self, data: bytes) -> list[bytes]:
        """The frames that are complete now. OversizedMessage when one is announced that is too long."""
        if self._rest:
            self._rest.append(data)
            self._size += len(data)
            if self._size < self._need:
                return []
            data = b"".join(self._rest)  # once a frame is whole, and not for every piece of it
            self._rest.clear()
        frames = []
        at, size = 0, len(data)
        self._need = LENGTH_PREFIX
        while size - at >= LENGTH_PREFIX:
            start = at + LENGTH_PREFIX
            length = int.from_bytes(data[at:start], "little")
            if length > self.limit:
                raise OversizedMessage(f"a frame of {length} bytes is announced, the limit is {self.limit}")
            end = start + length
            if end > size:
                self._need = end - at
                break
            frames.append(data[start:end])
            at = end
        if at < size:
            self._rest.append(data[at:])
            self._size = size - at
        return frames
