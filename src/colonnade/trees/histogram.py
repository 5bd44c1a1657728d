"""Histograms: the sums of rows' words in every bin of every column, for some groups of rows at once.

A sparse product does it: a matrix of one column with the words where their rows fall, times 1. It is SciPy's
compiled loop, exact modulo 2^64. `numpy.bincount` adds floating-point numbers, g and h apart, and takes
longer; numba would be faster, but every party would have to load a compiler. Columns go through it one after
another, each from a piece of memory that stays in the processor's cache.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import _sparsetools

from colonnade.arrays import Rows, Words
from colonnade.trees.bins import BinGrid, Codes, Counts
from colonnade.trees.frontier import HistogramRows

Places = NDArray[np.int32]
Adder = Callable[[Codes, Places, Rows, Places, Words, int], Words]
"""Who adds up: `add_columns`, or workers that do the same for parts of the rows."""


@dataclass(frozen=True, eq=False)
class Histogrammer:
    """A party's columns as bins, and their histograms."""

    codes: Codes  # [columns, rows]
    grid: BinGrid
    adder: Adder = field(default_factory=lambda: add_columns)

    def take(self, columns: Counts) -> Histogrammer:
        """Return the same with these columns alone."""
        if len(columns) == self.grid.columns:
            return self
        return Histogrammer(self.codes[columns], self.grid.take(columns), self.adder)

    def sums(self, words: Words, asked: HistogramRows) -> Words:
        """Return the sums of words, one for every row, for every slot and bin, [slots, bins]."""
        total, starts = self.grid.total, self.grid.start.astype(np.int32)
        slot = np.repeat(np.arange(asked.slots, dtype=np.int32) * np.int32(total), asked.counts)
        found = self.adder(self.codes, starts, asked.rows, slot, words.take(asked.rows), asked.slots * total)
        return found.reshape(asked.slots, total)


def add_columns(codes: Codes, starts: Places, rows: Rows, slot: Places, words: Words, bins: int) -> Words:
    """Return the words of some rows, added up in as many bins, of all columns.

    A column's bins begin at its start, and those of a row's group at the row's slot.
    """
    found = np.zeros(bins, dtype=np.uint64)
    every = len(rows) == codes.shape[1] and bool((rows[1:] > rows[:-1]).all())  # as in the root of a tree
    for column, start in enumerate(starts.tolist()):
        code = codes[column] if every else codes[column].take(rows)
        add_up(found[start:], code + slot, words)
    return found


def add_up(found: Words, places: NDArray[np.int32], words: Words) -> None:
    """Add every word to its place in `found`, modulo 2^64."""
    pointers = np.array([0, len(places)], dtype=np.int32)
    _sparsetools.csc_matvec(len(found), 1, pointers, places, words, _ONE, found)


_ONE = np.ones(1, dtype=np.uint64)
