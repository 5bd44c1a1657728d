"""When each party of a run computed and sent, stored as timeline.json; at other times it waited.

Of a long run only the beginning is kept span by span, because a picture shows no more; the totals are of the
whole run. Times are the run's own: virtual in the simulated world. Between daemons every party has its own
timeline and its own clock, and nothing of it is told to anybody.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from colonnade.errors import DataError

FILE = "timeline.json"


class PartyTimeline(msgspec.Struct, kw_only=True):
    """What one party did: spans of computing, and frames sent (when, to whom, how many bytes).

    Where nobody sees the other parties' lanes, also frames received, and for whose frames it waited how long.
    """

    busy: list[tuple[float, float]] = []
    sent: list[tuple[float, str, int]] = []
    until: float = 0.0  # up to here spans and frames are complete
    seconds: float = 0.0  # of the whole run
    busy_seconds: float = 0.0
    frames: int = 0
    received: list[tuple[float, str, int]] = []
    waited: dict[str, float] = {}


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """The timelines of the parties of a run, by their names."""

    virtual: bool
    parties: dict[str, PartyTimeline]

    def write(self, path: Path) -> None:
        """Write the file, whole or not at all."""
        draft = path.with_suffix(".part")
        draft.write_bytes(msgspec.json.encode(self))
        draft.replace(path)


def read_timeline(path: Path) -> Timeline:
    """Return the timeline that `Timeline.write` stored; DataError if the file is none."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Timeline)
    except msgspec.MsgspecError as error:
        raise DataError(f"{path}: no timeline; `colonnade run --timeline` writes one ({error})") from error
