"""Rows that were scored: for whom, by which model, on which day.

They are counted in memory and written into the journal every few minutes, and when a session ends.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field

import msgspec

from colonnade.shares import now

EVERY_S = 600.0


class ScoredLine(msgspec.Struct, frozen=True, kw_only=True, tag="scored"):
    """Rows that one party has had scored by one model, since the line before about the two."""

    when: str
    day: str
    asker: str
    model: str
    rows: int


@dataclass
class ScoredRows:
    """Counts that are not written down yet."""

    counts: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    since: float = field(default_factory=time.monotonic)

    def add(self, asker: str, model: str, rows: int) -> None:
        """Count rows."""
        self.counts[now()[:10], asker, model] += rows

    @property
    def due(self) -> bool:
        """Whether the counts should be written down."""
        days = {day for day, _, _ in self.counts}
        return len(days) > 1 or time.monotonic() - self.since > EVERY_S

    def take(self) -> list[ScoredLine]:
        """Return what is to be written down, and begin to count again."""
        taken = [
            ScoredLine(when=now(), day=day, asker=asker, model=model, rows=rows)
            for (day, asker, model), rows in sorted(self.counts.items())
        ]
        self.counts.clear()
        self.since = time.monotonic()
        return taken
