"""Runs in pairs, without a slow party and with one: does accuracy suffer, or is it chance?"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

LIMIT = 0.1  # points of accuracy
SPEED = 0.4  # of the slow party; the others have 1
HEADS = ("all at 1, %", f"one at {SPEED}, %", "+- of a run", "points", "+- of that mean", "least", "most")
"""What the cells of `Pairs` are."""


@dataclass(frozen=True)
class Pairs:
    """Accuracies in per cent, of the runs without a slow party and of their twins with one."""

    without: Sequence[float]
    slowed: Sequence[float]

    @property
    def points(self) -> list[float]:
        """By how many points every run with a slow party is better than its twin."""
        return [b - a for a, b in zip(self.without, self.slowed, strict=True)]

    @property
    def mean(self) -> float:
        """The mean difference in points."""
        return statistics.mean(self.points)

    @property
    def error(self) -> float:
        """The standard error of the mean difference; NaN of a single pair."""
        return _spread(self.points) / math.sqrt(len(self.points))

    @property
    def within(self) -> str:
        """Whether the mean difference is within the limit, in a word."""
        return "yes" if abs(self.mean) <= LIMIT else "NO"

    def cells(self) -> list[Any]:
        """Both means, how runs without a slow party differ, and the differences.

        >>> Pairs([80.0, 82.0], [80.0, 81.5]).cells()[3:]
        [-0.25, 0.25, -0.5, 0.0]
        """
        means = [statistics.mean(self.without), statistics.mean(self.slowed)]
        return [*means, _spread(self.without), self.mean, self.error, min(self.points), max(self.points)]


def _spread(values: Sequence[float]) -> float:
    """The standard deviation; NaN of a single value."""
    return statistics.stdev(values) if len(values) > 1 else math.nan
