"""Whether served scores are still like those of the model's test rows: PSI for /metrics, from counts alone.

What served scores are compared with is the distribution of the test scores that the label holder kept at
training. Where there are too few of them, the first scores that are served take their place. No served score
is kept, only counts per bin, and older counts fade, so that the figure is about the latest few thousand.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from colonnade.arrays import Floats
from colonnade.credit.measures import psi_of_counts
from colonnade.data.prepare.bins import ColumnBins, number_bins

FIRST = 1000  # served scores that make the reference, where there is no other
LATEST = 5000  # scores after which counts are halved
PER_BIN = 50  # reference scores a bin
FEWEST = 2 * PER_BIN  # reference scores, and served ones before they are compared


class ScoreMonitor:
    """Counts of the scores of one model; `psi` is None until there is something to compare."""

    def __init__(self, reference: Floats | None = None) -> None:
        self._first: list[float] = []
        self._bins: ColumnBins | None = None
        self._then = self._now = np.zeros(0)
        if reference is not None and len(reference) >= FEWEST:
            self._refer(reference)

    def observe(self, scores: Sequence[float]) -> None:
        """Count these scores."""
        if self._bins is not None:
            self._count(self._bins, np.array(scores, dtype=np.float64))
            return
        self._first += scores
        if len(self._first) >= FIRST:
            self._refer(np.array(self._first))
            self._first = []

    def _refer(self, scores: Floats) -> None:
        """Compare with these scores from now on."""
        self._bins = number_bins("score", scores, min(10, len(scores) // PER_BIN), 1)
        self._then = np.bincount(self._bins.codes(scores), minlength=self._bins.count).astype(float)
        self._now = np.zeros_like(self._then)

    @property
    def psi(self) -> float | None:
        """How far the latest scores are from the reference."""
        return psi_of_counts(self._then, self._now) if self._now.sum() >= FEWEST else None

    def _count(self, bins: ColumnBins, scores: Floats) -> None:
        if self._now.sum() > LATEST:
            self._now = self._now / 2
        self._now = self._now + np.bincount(bins.codes(scores), minlength=bins.count)
