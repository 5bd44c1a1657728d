"""Histograms: the sums of rows' words in every bin of every column, for some groups of rows at once.

A sparse product does it: a matrix with a 1 where a row falls into a bin, times the words. It is SciPy's
compiled loop, one pass over rows and columns with no Python in it, exact modulo 2^64, where `numpy.bincount`
would add floating-point numbers, g and h apart, and a compiler of its own (numba) would have to be loaded by
every party. Rows go through it in stretches whose indices stay in the processor's cache.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array

from colonnade.arrays import Rows, Words
from colonnade.trees.bins import Codes, Counts, Grid

STRETCH = 2**17  # entries of a stretch of rows


@dataclass(frozen=True, eq=False)
class Histogrammer:
    """A party's columns as bins, and their histograms."""

    codes: Codes  # [rows, columns]
    grid: Grid

    def take(self, columns: Counts) -> Histogrammer:
        """The same with these columns alone."""
        if len(columns) == self.grid.columns:
            return self
        return Histogrammer(np.ascontiguousarray(self.codes[:, columns]), self.grid.take(columns))

    def sums(self, words: Words, slot: NDArray[np.int32], slots: int) -> Words:
        """The sums of words for every slot and bin, [slots, bins]; `slot` is that of every row, or -1."""
        total, rows = self.grid.total, np.flatnonzero(slot >= 0)
        found = np.zeros(slots * total, dtype=np.uint64)
        if not total:
            return found.reshape(slots, total)
        step = max(1, STRETCH // self.grid.columns)
        for begin in range(0, len(rows), step):
            stretch = rows[begin : begin + step]
            found += self._summed(stretch, words[stretch], slot[stretch], slots * total)
        return found.reshape(slots, total)

    def _summed(self, rows: Rows, words: Words, slot: NDArray[np.int32], places: int) -> Words:
        """The sums of some rows in all places: a slot's bins after another's."""
        place = self.codes[rows].astype(np.int32)
        place += self.grid.start.astype(np.int32)
        place += (slot * np.int32(self.grid.total))[:, None]
        matrix = csc_array((places, len(rows)), dtype=np.uint64)
        # set like this nothing is checked again: a check takes longer than the product
        matrix.indices, matrix.data = place.ravel(), np.ones(place.size, dtype=np.uint64)
        matrix.indptr = np.arange(0, place.size + 1, self.grid.columns, dtype=np.int32)
        sums: Words = matrix @ words
        return sums
