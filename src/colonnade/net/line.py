"""One party's end of a line with a peer: which frames were sent, which arrived, and what must be sent again.

Frames to a peer carry 1, 2, 3, ...; the peer takes them in that order, drops repeats, keeps early ones
until the gap closes, and says with every frame of its own how far it has come. What is not acknowledged
is kept, and sent again with the very same bytes: a masked value that was sent twice in two versions
would give its mask away.
"""

from __future__ import annotations

from colonnade.net.ends import Ends
from colonnade.net.frame import DATA, pack

EARLY_LIMIT = 4096
EARLY_BYTES = 64 * 2**20


class Line(Ends):
    """One end of a line: its numbers, and the frames that came too early."""

    def __init__(self, to: int, of: int, *, keeps: bool = True) -> None:
        super().__init__(to, of, keeps)
        self.early: dict[int, bytes] = {}
        self.early_bytes = 0
        self.gap_reported = -1

    def take(self, sequence: int, frame: bytes) -> list[bytes] | None:
        """Return the frames that may be delivered now, in order; None for a repeat."""
        if sequence == self.taken + 1:
            ready = [frame]
            while (following := self.early.pop(sequence + len(ready), None)) is not None:
                self.early_bytes -= len(following)
                ready.append(following)
            self.taken += len(ready)
            self.unreported_bytes += sum(map(len, ready))
            self.gap = bool(self.early)
            return ready
        if sequence <= self.taken or sequence in self.early:
            return None
        # what does not fit is dropped: it is sent again when the gap before it is closed
        if len(self.early) < EARLY_LIMIT and self.early_bytes + len(frame) <= EARLY_BYTES:
            self.early[sequence] = frame
            self.early_bytes += len(frame)
            self.gap = True
        return []

    @property
    def waiting(self) -> int:
        """How many bytes wait for the peer: to close a gap, or to say that it has them."""
        return self.early_bytes + self.kept_bytes

    def clear(self) -> None:
        """Forget the frames that wait."""
        self.forget()
        self.early.clear()
        self.early_bytes, self.gap = 0, False

    def report(self) -> None:
        """Remember that the peer is told of `taken` now."""
        self.reported, self.unreported_bytes = self.taken, 0

    def gap_is_news(self) -> bool:
        """Return True once for every gap, so that one missing frame leads to one request."""
        if self.early and self.gap_reported != self.taken:
            self.gap_reported = self.taken
            return True
        return False


class CheckedLine(Line):
    """A line over a wire that may change frames: each has a checksum, which is looked at before all else."""

    def pack(self, payload: bytes) -> bytes:
        """Return the next frame to the peer."""
        frame = pack((DATA, self.to, self.sent + 1, self.taken), payload)
        self.count(frame)
        return frame

    def open(self, frame: bytes) -> None:
        """Return None: no frame is taken before its checksum was looked at."""
