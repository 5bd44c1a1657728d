"""Columns as bins: every column is cut at quantiles of its training rows, and a value becomes a byte.

A party cuts its own columns by itself. A column with few different values is cut between any two of them; of
more, every bin has about as many rows. A gap (NaN) has the bin after all others, in columns whose training
rows had gaps. `BinGrid` is all that others learn of this: how many bins a column has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array

from colonnade.arrays import Floats, Matrix
from colonnade.trees.mapped_arrays import empty_array

MOST_BINS = 255  # one more, that of gaps, is a byte still
SETS = 2  # in place of a direction: a column of categories, whose bins have no order
SAMPLE = 200_000  # rows that quantiles are taken from

Codes = NDArray[np.uint8]
Flags = NDArray[np.bool_]
Counts = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class BinGrid:
    """The bins of some columns, side by side: of each column the ordered ones, then that of gaps if any."""

    ordered: Counts
    gaps: Flags
    rises: Counts  # whether scores may only rise with a column, 1, or only fall, -1, or both, 0; or `SETS`

    @cached_property
    def width(self) -> Counts:
        """How many bins every column has, that of gaps included."""
        return self.ordered + self.gaps

    @cached_property
    def start(self) -> Counts:
        """The place of every column's first bin."""
        return np.cumsum(self.width) - self.width

    @property
    def columns(self) -> int:
        return len(self.ordered)

    @cached_property
    def sets(self) -> Flags:
        """Which columns are categories: the bins have no order, and that of gaps is one of them."""
        sets: Flags = self.rises == SETS
        return sets

    @cached_property
    def directions(self) -> Counts:
        """How scores may change with every column; those of categories have no direction."""
        return np.where(self.sets, 0, self.rises)

    @cached_property
    def total(self) -> int:
        """How many bins there are in all."""
        return int(self.width.sum())

    @cached_property
    def column(self) -> Counts:
        """The column of every bin."""
        return np.repeat(np.arange(self.columns), self.width)

    def take(self, columns: Counts) -> BinGrid:
        """Return the bins of these columns alone."""
        return BinGrid(self.ordered[columns], self.gaps[columns], self.rises[columns])

    @staticmethod
    def joined(grids: Sequence[BinGrid]) -> BinGrid:
        """Return several parties' columns side by side."""
        none = np.zeros(0, dtype=np.int64)
        found = [BinGrid(none, none.astype(bool), none), *grids]
        return BinGrid(
            np.concatenate([g.ordered for g in found]),
            np.concatenate([g.gaps for g in found]),
            np.concatenate([g.rises for g in found]),
        )


@dataclass(frozen=True, eq=False)
class Cuts:
    """Where the columns of a party are cut: a value is in the first bin whose edge is not below it."""

    edges: tuple[Floats, ...]
    gaps: Flags  # which columns have a bin for gaps
    sets: Mapping[int, Counts] = field(default_factory=dict)  # of columns of categories, each number's bin

    @staticmethod
    def of(X: Matrix, most: int, seed: int = 0, categories: Sequence[int] = ()) -> Cuts:
        """Cut every column of these rows into at most this many bins, beside that of gaps.

        Those of `categories` are numbers of categories, each with a bin of its own.
        """
        n, width = (int(size) for size in X.shape)
        rows = np.arange(n)
        if n > SAMPLE:
            rows = np.sort(np.random.default_rng([seed, n]).choice(n, SAMPLE, replace=False))
        columns = _Columns(X)
        edges, gaps = [], np.zeros(width, dtype=bool)
        sets: dict[int, Counts] = {}
        for j in range(width):
            values = columns[j]
            gaps[j] = np.isnan(values).any()
            if j in categories:
                sets[j] = _bins_of_categories(values)
                edges.append(np.arange(1.0, sets[j].max(initial=0) + 1))
            else:
                edges.append(_edges(values[rows], most))
        return Cuts(tuple(edges), gaps, sets)

    @property
    def grid(self) -> BinGrid:
        """The bins, of columns with which scores may rise and fall."""
        ordered = np.array([len(edges) + 1 for edges in self.edges], dtype=np.int64)
        rises, gaps = np.zeros_like(ordered), self.gaps.copy()
        for j in self.sets:
            ordered[j] += gaps[j]
            rises[j], gaps[j] = SETS, False
        return BinGrid(ordered, gaps, rises)

    def codes(self, X: Matrix) -> Codes:
        """Return the bin of every value, [columns, rows]: a column lies in one piece."""
        columns = _Columns(X)
        found: Codes = empty_array((len(self.edges), int(X.shape[0])), np.uint8)
        for j, edges in enumerate(self.edges):
            values = columns[j]
            if j in self.sets:
                known = np.where(np.isnan(values), 0, values).astype(np.int64)
                codes = self.sets[j][np.minimum(known, len(self.sets[j]) - 1)]
            else:
                # a gap is beyond every edge: where the column has a bin for gaps, it comes next
                codes = np.searchsorted(edges, values, side="left")
            if self.gaps[j]:
                codes[np.isnan(values)] = len(edges) + 1
            found[j] = codes
        return found


def _bins_of_categories(values: Floats) -> Counts:
    """Return the bin of every category's number: the rarest first, and too many rare ones together."""
    counts = np.bincount(values[~np.isnan(values)].astype(np.int64), minlength=1)
    bins = np.empty(len(counts), dtype=np.int64)
    bins[np.argsort(counts, kind="stable")] = np.arange(len(counts))
    return np.maximum(bins - max(len(counts) - MOST_BINS, 0), 0)


class _Columns:
    """The columns of a matrix one by one, as dense arrays."""

    def __init__(self, X: Matrix) -> None:
        self.X = csc_array(X) if isinstance(X, csr_array) else X

    def __getitem__(self, j: int) -> Floats:
        X = self.X
        if not isinstance(X, csc_array):
            return np.ascontiguousarray(X[:, j])
        values: Floats = np.zeros(X.shape[0])
        part = slice(X.indptr[j], X.indptr[j + 1])
        values[X.indices[part]] = X.data[part]
        return values


def _edges(values: Floats, most: int) -> Floats:
    """Return the inner edges of one column's bins, each halfway between two values of the column."""
    distinct, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    if len(distinct) < 2:
        return np.zeros(0)
    last = np.arange(len(distinct) - 1)  # the last value of every bin but that of the largest values
    if len(distinct) > most:
        wanted = np.arange(1, most) * (counts.sum() / most)
        last = np.unique(np.searchsorted(np.cumsum(counts), wanted))
        last = last[last < len(distinct) - 1]
    low, high = distinct[last], distinct[last + 1]
    middle = low + (high - low) / 2
    return np.where(middle < high, middle, low)  # between neighbours among floats there is nothing
