"""Splits of categories: a set of them goes left, and all others right.

For one node, the best of all sets is among few: with categories in the order of their mean gradient, G / H,
it is some of the first (Fisher, 1958). So a column of categories is split like one of numbers, once its bins
are put in that order, which is another in every node. Categories of few rows are drawn to the middle of the
order (`SMOOTH`), as in LightGBM and scikit-learn, so that chance puts none of them first.

A gap is a category as any other. Bins that were joined (`told`) are told in the first one, and go with it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from colonnade.arrays import Floats, Words
from colonnade.trees.bins import BinGrid, Codes, Counts, Flags

SMOOTH = 10.0
"""What is added to sums of second derivatives where categories are put in order."""

MOST = 256  # categories of a column, as their numbers are bytes


@dataclass(frozen=True, eq=False)
class InOrder:
    """Histograms with the bins of columns of categories in the order of their gradients, node by node."""

    sums: Words
    usable: Flags  # [nodes, bins]: whether a split after this place parts two bins; of other columns `ends`
    bins: Counts  # [nodes, bins]: which bin stands in a place

    @staticmethod
    def of(
        sums: Words, grid: BinGrid, ends: Flags | None, parts: Callable[[Words], tuple[Floats, Floats]]
    ) -> InOrder:
        """Put histograms in order; `parts` are the G and H of words, and only bins that end one count."""
        there = np.ones(sums.shape, dtype=bool) if ends is None else ends
        order = np.repeat(np.arange(grid.total)[None], len(sums), axis=0)
        usable = there.copy()
        for column in np.flatnonzero(grid.sets).tolist():
            start, width = int(grid.start[column]), int(grid.width[column])
            here = slice(start, start + width)
            g, h = parts(sums[:, here])
            counts = there[:, here] & (h > 0)
            first = np.where(counts, g / (np.maximum(h, 0) + SMOOTH), np.inf)
            order[:, here] = start + np.argsort(first, axis=1, kind="stable")
            usable[:, here] = np.arange(width) < counts.sum(axis=1)[:, None] - 1
        return InOrder(np.take_along_axis(sums, order, axis=1), usable, order)

    def left(self, node: int, column: slice, place: int, heavier: bool, ends: Flags | None) -> Flags:
        """Return which bins of a column go left where a node is split after a place.

        Bins that no row of the node is known to have go with the first, where bins are joined, or with the
        heavier side.
        """
        bins = self.bins[node, column] - column.start
        sums = self.sums[node, column]
        found = np.zeros(len(bins), dtype=bool)
        found[bins[: place - column.start + 1]] = True
        if ends is not None:
            found[~ends[node, column]] = found[0]
        else:
            found[bins[sums == 0]] = heavier
        return found


def packed_sets(sets: Flags) -> Codes:
    """Return sets of bins, [splits, at most 256], as 32 bytes each."""
    wide = np.zeros((len(sets), MOST), dtype=bool)
    wide[:, : sets.shape[1]] = sets
    return np.packbits(wide, axis=1)


def unpacked_set(packed: Codes) -> Flags:
    """Return one set of bins, of 256, from its bytes."""
    return np.unpackbits(packed).view(np.bool_)
