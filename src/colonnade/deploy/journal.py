"""What a daemon has done since it started, for its operator: counts, and the latest events in words."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from colonnade.deploy.score_monitor import ScoreMonitor

KEPT = 20


@dataclass
class Journal:
    """Counts of ended runs by how they ended, of bytes sent in them and of scored rows; the latest events."""

    ended: Counter[str] = field(default_factory=Counter)
    sent_bytes: int = 0
    scored_rows: int = 0
    scores: defaultdict[str, ScoreMonitor] = field(default_factory=lambda: defaultdict(ScoreMonitor))
    latest: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Add an event to the latest, of which only the last few are kept."""
        self.latest = [*self.latest[1 - KEPT :], text]
