"""Histograms: the sums of rows' words in every bin of every column, for some groups of rows at once.

A sparse product does it: a matrix with a 1 where a row falls into a bin, times the words. It is SciPy's
compiled loop, one pass over rows and columns with no Python in it, exact modulo 2^64. `numpy.bincount` adds
floating-point numbers, g and h apart, and takes longer; numba would be faster, but every party would have to
load a compiler. Rows go through it in stretches whose places stay in the processor's cache.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import _sparsetools

from colonnade.arrays import Words
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
        total, width = self.grid.total, self.grid.columns
        found = np.zeros(slots * total, dtype=np.uint64)
        rows = np.flatnonzero(slot >= 0) if total else np.zeros(0, dtype=np.int64)
        step = max(1, STRETCH // max(1, width))
        pointers = np.arange(0, step * width + 1, max(1, width), dtype=np.int32)
        ones = np.ones(step * width, dtype=np.uint64)
        for begin in range(0, len(rows), step):
            stretch = rows[begin : begin + step]
            place = self.codes[stretch].astype(np.int32)
            place += self.grid.start.astype(np.int32)
            place += (slot[stretch] * np.int32(total))[:, None]
            # a row is a column of the matrix, with a 1 in every place where it falls; sums are added up
            _sparsetools.csc_matvec(
                len(found), len(stretch), pointers, place.ravel(), ones, words[stretch], found
            )
        return found.reshape(slots, total)
