"""The best split of every open node, from its histogram: the second-order gain of gradient boosting.

A split sends the rows of the bins up to one to the left and all others to the right; gaps go where they
gain more. The gain is G_l^2 / (H_l + lambda) + G_r^2 / (H_r + lambda) - G^2 / (H + lambda), G and H being the
sums of first and second derivatives, as XGBoost computes it. Of equal gains the first counts, in the order of
parties, columns and bins; sums are whole numbers, so nobody can disagree on what is equal.

Where scores may only rise or fall with some columns, a node has bounds: its leaves score within them. A split
of such a column that would go the wrong way is none, and halves the bounds of its children between their
scores, so that nothing below can cross (as XGBoost does it). Then G and H are worth what a score within the
bounds makes of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from colonnade.arrays import Floats, Words
from colonnade.job import Trees
from colonnade.trees.bins import BinGrid, Codes, Counts, Flags
from colonnade.trees.gradients import Units, parted
from colonnade.trees.sets import MOST, InOrder, packed_sets

LEAST_GAIN = 1e-6
"""What a split must gain as in XGBoost, and less where all derivatives are small: labels may be, too."""
_SMALLEST = 5e-324  # above 0
Bounds = tuple[Floats, Floats]
"""The least and the largest score of every node's leaves."""


@dataclass(frozen=True, eq=False)
class Best:
    """The best split of every node: its gain, the last bin that goes left, where gaps go, the left sum."""

    gain: Floats  # -inf: there is none
    bin: Counts  # a place in the grid
    gaps_left: Flags
    left: Words
    sets: Codes | None = None  # of columns of categories: which bins go left (`sets.packed_sets`)


@dataclass(frozen=True)
class SplitScorer:
    """Scores splits: by the job's rules, in the units of the words of one tree."""

    rules: Trees
    units: Units

    def weight(self, total: Words, bounds: Bounds | None = None) -> Floats:
        """Return the best score of a leaf with these sums and bounds, before the learning rate."""
        weight = self._weight(*self._sums(total))
        return weight if bounds is None else np.clip(weight, *bounds)

    def cover(self, total: Words) -> Floats:
        """Return the sum of second derivatives."""
        return self._sums(total)[1]

    def best(
        self,
        histograms: Words,
        totals: Words,
        grid: BinGrid,
        allowed: Flags,
        bounds: Bounds | None = None,
        ends: Flags | None = None,
    ) -> Best:
        """Return the best split of every node, [nodes, bins], among the columns that are allowed.

        Where bins were joined, only those that end a joined one have a split (`ends`).
        """
        nodes = np.arange(len(totals))
        if not grid.total:
            return Best(np.full(len(nodes), -np.inf), 0 * nodes, nodes < 0, totals)
        ordered: InOrder | None = None
        told = ends
        if grid.sets.any():
            ordered = InOrder.of(histograms, grid, ends, self._sums)
            histograms, ends = ordered.sums, ordered.usable
        rises, with_gaps = grid.directions[grid.column], grid.gaps[grid.column]
        up_to = _up_to(histograms, grid)
        place = np.arange(grid.total) - grid.start[grid.column]
        last = place == grid.ordered[grid.column] - 1
        usable = allowed[grid.column] & (place < grid.ordered[grid.column])
        if ends is not None:
            usable = usable & ends
        # where a column has gaps, its last ordered bin splits all numbers from all gaps
        right = self._gains(up_to, totals, usable & (~last | with_gaps), rises, bounds)
        left, gaps = right, up_to
        if with_gaps.any():
            gaps = np.zeros_like(up_to)
            gaps[:, with_gaps] = histograms[:, (grid.start + grid.ordered)[grid.column[with_gaps]]]
            left = self._gains(up_to + gaps, totals, usable & ~last & with_gaps, rises, bounds)
        gain = np.maximum(left, right)
        picked = gain.argmax(axis=1)
        at, has_gaps = (nodes, picked), with_gaps[picked]
        # where gaps make no difference, a gap in a new row goes with the heavier side
        heavier = 2 * self._sums(up_to[at])[1] > self._sums(totals)[1]
        gaps_left = (left[at] > right[at]) | (((left[at] == right[at]) | ~has_gaps) & heavier)
        left_sum = np.where(gaps_left & has_gaps, up_to[at] + gaps[at], up_to[at])
        sets = None
        if ordered is not None:
            sets = _sets(ordered, grid, picked, heavier, told)
        return Best(gain[at], picked, gaps_left, left_sum, sets)

    def _gains(
        self, left: Words, totals: Words, usable: Flags, rises: Counts, bounds: Bounds | None
    ) -> Floats:
        """Return the gain of every split, -inf where it is none."""
        g, h = self._sums(left)
        all_g, all_h = (part[:, None] for part in self._sums(totals))
        other_g, other_h = all_g - g, all_h - h
        least = max(self.rules.least_weight, _SMALLEST)
        fine = usable & (h >= least) & (other_h >= least)
        if bounds is None:
            gain = self._worth(g, h) + self._worth(other_g, other_h) - self._worth(all_g, all_h)
        else:
            within = bounds[0][:, None], bounds[1][:, None]
            score, other = (np.clip(self._weight(*s), *within) for s in ((g, h), (other_g, other_h)))
            alone = np.clip(self._weight(all_g, all_h), *within)
            fine &= rises * (other - score) >= 0
            gain = self._worth_at(g, h, score) + self._worth_at(other_g, other_h, other)
            gain -= self._worth_at(all_g, all_h, alone)
        gains: Floats = np.where(fine & (gain > max(self.rules.gamma, self._least_gain)), gain, -np.inf)
        return gains

    @property
    def _least_gain(self) -> float:
        return LEAST_GAIN * min(1.0, self.units.steepest**2)

    def _worth(self, g: Floats, h: Floats) -> Floats:
        return g * g / self._bend(h)

    def _worth_at(self, g: Floats, h: Floats, score: Floats) -> Floats:
        """Return the same for a score that is not the best there is."""
        return -(2 * g + self._bend(h) * score) * score

    def _weight(self, g: Floats, h: Floats) -> Floats:
        weight: Floats = np.where(h + self.rules.reg_lambda > 0, -g, 0.0) / self._bend(h)
        return weight

    def _sums(self, words: Words) -> tuple[Floats, Floats]:
        g, h = parted(words, signed=self.units.signed)
        return g * self.units.g, h * self.units.h

    def _bend(self, h: Floats) -> Floats:
        bend: Floats = h + self.rules.reg_lambda
        if bend.min(initial=1.0) <= 0:  # which it seldom is, and to look is faster than to put
            np.putmask(bend, bend <= 0, 1.0)
        return bend


def _sets(ordered: InOrder, grid: BinGrid, picked: Counts, heavier: Flags, ends: Flags | None) -> Codes:
    """Return which bins go left in every node that is split by a column of categories."""
    found = np.zeros((len(picked), MOST), dtype=bool)
    for node in np.flatnonzero(grid.sets[grid.column[picked]]).tolist():
        column = int(grid.column[picked[node]])
        start, width = int(grid.start[column]), int(grid.width[column])
        here = slice(start, start + width)
        found[node, :width] = ordered.left(node, here, int(picked[node]), bool(heavier[node]), ends)
    return packed_sets(found)


def _up_to(histograms: Words, grid: BinGrid) -> Words:
    """Return the sums of every bin and all bins before it in its column."""
    running = np.cumsum(histograms, axis=1, dtype=np.uint64)
    before = np.concatenate([np.zeros((len(running), 1), dtype=np.uint64), running], axis=1)
    sums: Words = running - before[:, grid.start[grid.column]]
    return sums
