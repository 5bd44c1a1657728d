"""Counts that a daemon keeps for its metrics page, in memory: a restart begins them at nought."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Bounds of the buckets that durations are counted in; the last has no end."""


class Histogram:
    """How often a value fell into each bucket, and the sum of all values."""

    def __init__(self, bounds: tuple[float, ...] = SECONDS) -> None:
        self.bounds, self.counts, self.sum = bounds, [0] * (len(bounds) + 1), 0.0

    def add(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def lines(self, name: str) -> Iterator[str]:
        """Yield the histogram as Prometheus reads it: each bucket counts those before it, too."""
        so_far = 0
        for bound, count in zip((*(f"{each:g}" for each in self.bounds), "+Inf"), self.counts, strict=True):
            so_far += count
            yield f'{name}_bucket{{le="{bound}"}} {so_far}'
        yield f"{name}_sum {self.sum:.6g}"
        yield f"{name}_count {so_far}"


@dataclass
class DaemonCounts:
    """What happened at this daemon's doors, and when something last went well (seconds since 1970)."""

    requests: Counter[str] = field(default_factory=Counter)  # to the prediction service, by status code
    request_s: Histogram = field(default_factory=Histogram)  # of those that were answered with scores
    last_scores: float | None = None
    last_done: dict[str, float] = field(default_factory=dict)  # runs, by kind: train, score
