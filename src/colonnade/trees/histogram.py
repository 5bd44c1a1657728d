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
from colonnade.trees.frontier import Asked

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

    def sums(self, words: Words, asked: Asked) -> Words:
        """The sums of words for every slot and bin, [slots, bins].

        Words are one for every row, or one for every row and column.
        """
        total, width = self.grid.total, self.grid.columns
        found = np.zeros(asked.slots * total, dtype=np.uint64)
        if not total or not len(asked.rows):
            return found.reshape(asked.slots, total)
        starts = self.grid.start.astype(np.int32)
        slot = np.repeat(np.arange(asked.slots, dtype=np.int32) * np.int32(total), asked.counts)
        step = min(len(asked.rows), max(1, STRETCH // width))
        pointers = np.arange(0, step * width + 1, width, dtype=np.int32)
        ones = np.ones(step * width if words.ndim == 1 else 0, dtype=np.uint64)
        for begin in range(0, len(asked.rows), step):
            stretch = asked.rows[begin : begin + step]
            place = self.codes.take(stretch, axis=0) + starts
            place += slot[begin : begin + step, None]
            taken = words.take(stretch, axis=0)
            if words.ndim == 2:
                add_up(found, place.ravel(), taken.ravel())
                continue
            # a row is a column of the matrix, with a 1 in every place where it falls; sums are added up
            _sparsetools.csc_matvec(len(found), len(stretch), pointers, place.ravel(), ones, taken, found)
        return found.reshape(asked.slots, total)


def add_up(found: Words, places: NDArray[np.int32], words: Words) -> None:
    """Add every word to its place in `found`, modulo 2^64: a matrix of one column, times 1."""
    pointers = np.array([0, len(places)], dtype=np.int32)
    _sparsetools.csc_matvec(len(found), 1, pointers, places, words, np.ones(1, dtype=np.uint64), found)
