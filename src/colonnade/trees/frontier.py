"""Which open node of a growing tree every row is in: alike at every party that needs to know it.

All open nodes are split together, a level at a time. Rows lie node after node in one array, so a level costs
what its rows cost. Of two siblings only the one with fewer rows is summed; the other's histogram is the
parent's less that. Children are numbered as their parents are, first all on the left, then all on the right.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
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
class Asked:
    """The rows whose words are to be summed, slot after slot, and how many rows each slot has."""

    rows: Rows
    counts: Counts

    @property
    def slots(self) -> int:
        return len(self.counts)


@dataclass
class Frontier:
    """The open nodes of one tree. `sampled` are the rows that it learns from; all rows are followed."""

    sampled: Flags
    rows: Rows = field(init=False)  # of the open nodes, node after node
    counts: Counts = field(init=False)  # how many each has
    asked: Asked = field(init=False)
    pairs: Pairs | None = None

    def __post_init__(self) -> None:
        self.rows = np.arange(len(self.sampled))
        self.counts = np.array([len(self.sampled)])
        self._all = bool(self.sampled.all())
        self.asked = self._sampled(self.rows, self.counts)

    @property
    def open(self) -> int:
        """How many nodes are open."""
        return len(self.counts)

    def parts(self, values: NDArray[S], nodes: Flags) -> Iterator[tuple[int, NDArray[S]]]:
        """The number of each of these nodes, and its part of the values of all open nodes' rows."""
        return parts_of(values, self.counts, nodes)

    def children(self, split: Flags, left: Flags) -> tuple[Rows, Counts]:
        """The rows of all children, child after child, and how many each has.

        `left` is the side of every row of the open nodes; that of a node which is not split means nothing.
        """
        rows, sides, counts = self.rows, left, self.counts
        if not split.all():
            rows, sides = _picked(rows, counts, split), _picked(sides, counts, split)
            counts = counts[split]
        ends = np.cumsum(counts).tolist()
        went = np.array([np.count_nonzero(sides[a:b]) for a, b in pairwise([0, *ends])], dtype=np.int64)
        order = np.concatenate([np.flatnonzero(sides), np.flatnonzero(~sides)])  # faster than masks
        return rows.take(order), np.concatenate([went, counts - went])

    def divide(self, split: Flags, left: Flags, stays: Flags) -> tuple[Rows, Counts]:
        """Split nodes and go on with the children that stay open; returns the rows of all children."""
        rows, counts = self.children(split, left)
        learnt = self._sampled(rows, counts).counts
        halves, stay = learnt.reshape(2, -1), stays.reshape(2, -1)
        wanted, small = stay.any(axis=0), halves[0] <= halves[1]
        number = np.where(stays, np.cumsum(stays) - 1, -1).reshape(2, -1)
        self.pairs = Pairs(np.flatnonzero(split)[wanted], small[wanted], number[:, wanted])
        places = np.arange(stays.size).reshape(2, -1)
        summed = np.where(small, places[0], places[1])[wanted]
        ends = np.cumsum(counts)
        parts = [rows[ends[child] - counts[child] : ends[child]] for child in summed.tolist()]
        self.asked = self._sampled(np.concatenate([rows[:0], *parts]), counts[summed])
        self.rows, self.counts = rows, counts
        if not stays.all():
            self.rows, self.counts = _picked(rows, counts, stays), counts[stays]
        return rows, counts

    def whole(self, parents: Words, sums: Words) -> Words:
        """The histograms of all open nodes, from those of the level above and the sums of every slot."""
        if self.pairs is None:
            return sums
        found = np.empty((self.open, sums.shape[1]), dtype=np.uint64)
        pairs, others = self.pairs, parents[self.pairs.parent] - sums
        for place, summed in ((pairs.place[0], pairs.left), (pairs.place[1], ~pairs.left)):
            for which, histograms in ((summed, sums), (~summed, others)):
                there = which & (place >= 0)
                found[place[there]] = histograms[there]
        return found

    def _sampled(self, rows: Rows, counts: Counts) -> Asked:
        """Those of some rows that the tree learns from."""
        if self._all or not len(counts):
            return Asked(rows, counts)
        learnt = self.sampled[rows]
        group = np.repeat(np.arange(len(counts)), counts)[learnt]
        return Asked(rows[learnt], np.bincount(group, minlength=len(counts)))


def parts_of(values: NDArray[S], counts: Counts, groups: Flags) -> Iterator[tuple[int, NDArray[S]]]:
    """The number and the values of each of these groups, which lie one after another; no value is copied."""
    ends = np.cumsum(counts).tolist()
    for group in np.flatnonzero(groups).tolist():
        yield group, values[ends[group] - int(counts[group]) : ends[group]]


def _picked(values: NDArray[S], counts: Counts, groups: Flags) -> NDArray[S]:
    """The values of these groups: pieces of memory are copied several times as fast as by a mask."""
    return np.concatenate([values[:0], *(part for _, part in parts_of(values, counts, groups))])
