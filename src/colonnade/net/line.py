"""One party's end of a line with a peer: which frames were sent, which arrived, and what must be sent again.

Frames to a peer carry 1, 2, 3, ...; the peer takes them in that order, drops repeats, keeps early ones
until the gap closes, and says with every frame of its own how far it has come. What is not acknowledged
is kept, and sent again with the very same bytes: a masked value that was sent twice in two versions
would give its mask away.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

ACK_EVERY = 64
ACK_BYTES = 2**20
EARLY_LIMIT = 4096
EARLY_BYTES = 64 * 2**20


@dataclass(slots=True)
class Line:
    """The numbers of one end: of the last frame sent, taken in order, and acknowledged by the peer."""

    sent: int = 0
    taken: int = 0
    acknowledged: int = 0
    unacknowledged: deque[tuple[int, bytes]] = field(default_factory=deque)
    early: dict[int, bytes] = field(default_factory=dict)
    early_bytes: int = 0
    reported: int = 0  # the last `taken` the peer was told of
    unreported_bytes: int = 0
    gap_reported: int = -1

    def number(self) -> int:
        """The number of the next frame to the peer."""
        self.sent += 1
        return self.sent

    def keep(self, sequence: int, frame: bytes) -> None:
        """Store a frame until it is acknowledged."""
        self.unacknowledged.append((sequence, frame))

    def acknowledge(self, upto: int) -> bool:
        """Forget the frames up to this one, which the peer has. False if that was known."""
        if upto <= self.acknowledged:
            return False
        self.acknowledged = upto
        kept = self.unacknowledged
        while kept and kept[0][0] <= upto:
            kept.popleft()
        return True

    def take(self, sequence: int, frame: bytes) -> list[bytes] | None:
        """The frames that may be delivered now, in order; None for a repeat."""
        if sequence == self.taken + 1:
            self.taken = sequence
            self.unreported_bytes += len(frame)
            if not self.early:
                return [frame]
            ready = [frame]
            while (following := self.early.pop(self.taken + 1, None)) is not None:
                self.taken += 1
                self.early_bytes -= len(following)
                self.unreported_bytes += len(following)
                ready.append(following)
            return ready
        if sequence <= self.taken or sequence in self.early:
            return None
        # what does not fit is dropped: it is sent again when the gap before it is closed
        if len(self.early) < EARLY_LIMIT and self.early_bytes + len(frame) <= EARLY_BYTES:
            self.early[sequence] = frame
            self.early_bytes += len(frame)
        return []

    @property
    def waiting(self) -> int:
        """How many bytes wait for the peer: to close a gap, or to say that it has them."""
        return self.early_bytes + sum(len(frame) for _, frame in self.unacknowledged)

    def clear(self) -> None:
        """Forget the frames that wait."""
        self.unacknowledged.clear()
        self.early.clear()
        self.early_bytes = 0

    def report(self) -> None:
        """Remember that the peer is told of `taken` now."""
        self.reported = self.taken
        self.unreported_bytes = 0

    def owes_ack(self) -> bool:
        """True when so much has arrived that the peer must be told, even without an answer to send."""
        # by number and by size: until then the peer keeps every frame in memory
        return self.taken - self.reported >= ACK_EVERY or self.unreported_bytes >= ACK_BYTES

    def gap_is_news(self) -> bool:
        """True once for every gap, so that one missing frame leads to one request."""
        if self.early and self.gap_reported != self.taken:
            self.gap_reported = self.taken
            return True
        return False
