"""The numbers of one end of a line, and the frames that carry them.

Every frame says which one it is and up to which the sender has taken those of its peer (`frame.py`). Nearly
all frames are simply the next message: `pack` makes such a frame, `open` takes one. There are two ways to do
both, alike to the last byte: `_line.c`, compiled when the package is installed, and `PlainEnds`, where no
compiler was there.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from colonnade.errors import MalformedMessage
from colonnade.net.frame import CHECKED, DATA, header_size, pack, unpack

MOST = 2**32
"""Frames that one end can number."""

ACK_EVERY, ACK_BYTES = 64, 2**20
"""Frames, and bytes, after which the peer is told that they have come, even without an answer to send."""


class PlainEnds:
    """What one end of a line has sent and taken. `to` and `of` are the routes of the two directions.

    `keeps` says whether frames are kept until the peer has acknowledged them; `gap`, whether later frames
    have come already and wait for the next one.
    """

    def __init__(self, to: int, of: int, keeps: bool) -> None:
        self.to, self.of = to, of
        self.sent = self.taken = self.acknowledged = 0
        self.reported = 0  # the last `taken` the peer was told of
        self.unreported_bytes = self.kept_bytes = 0
        self.gap = False
        self._keeps = keeps
        self._kept: deque[bytes] = deque()  # the last frames that were sent, up to number `sent`

    def pack(self, payload: bytes) -> bytes:
        """Return the next frame to the peer."""
        frame = pack((DATA, self.to, self.sent + 1, self.taken), payload, checked=False)
        self.count(frame)
        return frame

    def count(self, frame: bytes) -> None:
        """Count a frame as the next one to the peer, which tells it how far this end has come."""
        if self.sent + 1 >= MOST:
            raise OverflowError("a line has numbers for 2^32 frames")
        if self._keeps:
            self._kept.append(frame)
            self.kept_bytes += len(frame)
        self.sent += 1
        self.reported, self.unreported_bytes = self.taken, 0

    def pass_by(self, length: int) -> int:
        """Count a payload that is handed over without a frame; how long its frame would be."""
        self.sent += 1
        return length + header_size(self.sent, self.taken)

    def open(self, frame: bytes) -> bytes | memoryview | None:
        """Return the payload of a frame that is simply the next message; None for others, which change
        nothing."""
        if self.gap or not frame or frame[0] & CHECKED:
            return None
        try:
            (kind, route, sequence, acknowledged), payload = unpack(frame)
        except MalformedMessage:
            return None
        if kind != DATA or route != self.of or sequence != self.taken + 1 or acknowledged > self.sent:
            return None
        self.taken = sequence
        self.unreported_bytes += len(frame)
        self.acknowledge(acknowledged)
        return payload

    def owes_ack(self) -> bool:
        """Return True when so much has arrived that the peer must be told: until then it keeps every
        frame."""
        return self.taken - self.reported >= ACK_EVERY or self.unreported_bytes >= ACK_BYTES

    def acknowledge(self, upto: int) -> bool:
        """Forget the frames up to this one, which the peer has. False if that was known, or none was sent."""
        if not self.acknowledged < upto <= self.sent:
            return False
        self.acknowledged = upto
        for _ in range(len(self._kept) - (self.sent - upto)):
            self.kept_bytes -= len(self._kept.popleft())
        return True

    def unacknowledged(self) -> list[tuple[int, bytes]]:
        """Return the frames that are kept, with their numbers."""
        return list(enumerate(self._kept, start=self.sent - len(self._kept) + 1))

    def forget(self) -> None:
        """Forget the frames that are kept."""
        self._kept.clear()
        self.kept_bytes = 0


if TYPE_CHECKING:
    Ends = PlainEnds
else:
    try:
        from colonnade.net._line import Ends
    except ImportError:
        Ends = PlainEnds
