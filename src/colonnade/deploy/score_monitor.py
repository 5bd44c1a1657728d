"""Whether served scores are still like the first ones: PSI for /metrics, from counts alone.

The first scores of a model make the bins and are what later ones are compared with. No score is kept after
that, only counts per bin, and older counts fade, so that the figure is about the latest few thousand.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from colonnade.arrays import Floats
from colonnade.credit.measures import psi_of_counts
from colonnade.data.bins import Bins, number_bins

FIRST = 1000  # scores that make the reference
LATEST = 5000  # scores after which counts are halved


class ScoreMonitor:
    """Counts of the scores of one model; `psi` is None until there is something to compare."""

    def __init__(self) -> None:
        self._first: list[float] = []
        self._bins: Bins | None = None
        self._then = self._now = np.zeros(0)

    def observe(self, scores: Sequence[float]) -> None:
        """Count these scores."""
        if self._bins is not None:
            self._count(self._bins, np.array(scores, dtype=np.float64))
            return
        self._first += scores
        if len(self._first) >= FIRST:
            values = np.array(self._first)
            self._bins, self._first = number_bins("score", values, 10, FIRST // 50), []
            self._then = np.bincount(self._bins.codes(values), minlength=self._bins.count).astype(float)
            self._now = np.zeros_like(self._then)

    @property
    def psi(self) -> float | None:
        """How far the latest scores are from the first ones."""
        return psi_of_counts(self._then, self._now) if self._now.sum() >= FIRST / 10 else None

    def _count(self, bins: Bins, scores: Floats) -> None:
        if self._now.sum() > LATEST:
            self._now = self._now / 2
        self._now = self._now + np.bincount(bins.codes(scores), minlength=bins.count)
