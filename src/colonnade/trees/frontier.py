"""Which open node of a growing tree every row is in: alike at every party that needs to know it.

All open nodes are split together, a level at a time. Rows lie node after node in one array, so a level costs
what its rows cost. Of two siblings only the one with fewer rows is summed; the other's histogram is the
parent's less that. Children are numbered as their parents are, first all on the left, then all on the right.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from colonnade.arrays import Rows, Words
from colonnade.trees.bins import Counts, Flags

S = TypeVar("S", bound=np.generic)


@dataclass(frozen=True, eq=False)
class Pairs:
    """The pairs of siblings of which a histogram is needed: the parent, and whether the left one is summed.

    `place` is where the two children stand among the open nodes, -1 for one that is a leaf, [2, pairs].
    """

    parent: Counts
    left: Flags
    place: Counts


@dataclass(frozen=True, eq=False)
class HistogramRows:
    """The rows whose words are to be summed, slot after slot, and how many rows each slot has."""

    rows: Rows
    counts: Counts

    @property
    def slots(self) -> int:
        return len(self.counts)


@dataclass
class Frontier:
    """The open nodes of one tree. `sampled` are the rows that it learns from; all rows are followed.

    `summed` are the sampled rows of every node, or child of one, whose words are to be summed.
    """

    sampled: Flags
    rows: Rows = field(init=False)  # of the open nodes, node after node
    counts: Counts = field(init=False)  # how many each has
    summed: Counts = field(init=False)
    pairs: Pairs | None = None

    def __post_init__(self) -> None:
        self.rows = np.arange(len(self.sampled))
        self.counts = np.array([len(self.sampled)])
        self._all = bool(self.sampled.all())
        self.summed = self._learnt(self.rows, self.counts)
        self._parts: tuple[Rows, ...] = (self.rows,)  # the rows of what is summed

    @property
    def open(self) -> int:
        """How many nodes are open."""
        return len(self.counts)

    @property
    def asked(self) -> HistogramRows:
        """The rows whose words are to be summed; put together for who sums row by row."""
        rows = np.concatenate([self.rows[:0], *self._parts])
        return HistogramRows(rows if self._all else rows[self.sampled[rows]], self.summed)

    def parts(self, values: NDArray[S], nodes: Flags) -> Iterator[tuple[int, NDArray[S]]]:
        """Return the number of each of these nodes, and its part of the values of all open nodes' rows."""
        return parts_of(values, self.counts, nodes)

    def children(self, split: Flags, left: Flags) -> tuple[Rows, Counts]:
        """Return the rows of all children, child after child, and how many each has.

        `left` is the side of every row of the open nodes; that of a node which is not split means nothing.
        """
        rows, sides, counts = self.rows, left, self.counts
        if not split.all():
            rows, sides = _picked(rows, counts, split), _picked(sides, counts, split)
            counts = counts[split]
        went_left, went_right = np.flatnonzero(sides), np.flatnonzero(~sides)  # faster than masks
        found = np.empty_like(rows)
        rows.take(went_left, out=found[: len(went_left)], mode="clip")  # a mode that needs no copy
        rows.take(went_right, out=found[len(went_left) :], mode="clip")
        went = np.searchsorted(went_left, np.cumsum(counts))
        went[1:] -= went[:-1].copy()
        return found, np.concatenate([went, counts - went])

    def divide(self, split: Flags, left: Flags, stays: Flags) -> tuple[Rows, Counts]:
        """Split nodes and go on with the children that stay open; returns the rows of all children."""
        rows, counts = self.children(split, left)
        learnt = self._learnt(rows, counts)
        halves, stay = learnt.reshape(2, -1), stays.reshape(2, -1)
        wanted, small = stay.any(axis=0), halves[0] <= halves[1]
        number = np.where(stays, np.cumsum(stays) - 1, -1).reshape(2, -1)
        self.pairs = Pairs(np.flatnonzero(split)[wanted], small[wanted], number[:, wanted])
        places = np.arange(stays.size).reshape(2, -1)
        summed = np.where(small, places[0], places[1])[wanted]
        ends = np.cumsum(counts)
        starts = (ends - counts)[summed].tolist()
        self._parts = tuple(rows[a:b] for a, b in zip(starts, ends[summed].tolist(), strict=True))
        self.summed = learnt[summed]
        self.rows, self.counts = rows, counts
        if not stays.all():
            self.rows, self.counts = _picked(rows, counts, stays), counts[stays]
        return rows, counts

    def whole(self, parents: Words, sums: Words) -> Words:
        """Return the histograms of all open nodes, from those of the level above and the sums of every
        slot."""
        if self.pairs is None:
            return sums
        found = np.empty((self.open, sums.shape[1]), dtype=np.uint64)
        pairs, others = self.pairs, parents[self.pairs.parent] - sums
        for place, summed in ((pairs.place[0], pairs.left), (pairs.place[1], ~pairs.left)):
            for which, histograms in ((summed, sums), (~summed, others)):
                there = which & (place >= 0)
                found[place[there]] = histograms[there]
        return found

    def _learnt(self, rows: Rows, counts: Counts) -> Counts:
        """Return how many rows of each of some groups the tree learns from."""
        if self._all or not len(counts):
            return counts
        group = np.repeat(np.arange(len(counts)), counts)[self.sampled[rows]]
        return np.bincount(group, minlength=len(counts))


def parts_of(values: NDArray[S], counts: Counts, groups: Flags) -> Iterator[tuple[int, NDArray[S]]]:
    """Yield the number and the values of each of these groups, which lie one after another; no value is
    copied."""
    ends = np.cumsum(counts).tolist()
    for group in np.flatnonzero(groups).tolist():
        yield group, values[ends[group] - int(counts[group]) : ends[group]]


def _picked(values: NDArray[S], counts: Counts, groups: Flags) -> NDArray[S]:
    """Return the values of these groups: pieces of memory are copied several times as fast as by a mask."""
    return np.concatenate([values[:0], *(part for _, part in parts_of(values, counts, groups))])
