"""Which open node of a growing tree every row is in: alike at every party that needs to know it.

All open nodes are split together, a level at a time. Of two siblings only the one with fewer rows is summed;
the other's histogram is the parent's less that.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from colonnade.arrays import Rows, Words
from colonnade.trees.bins import Flags

Places = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Pairs:
    """The pairs of siblings of which a histogram is needed: the parent of each, and the side that is summed.

    `place` is where the two children stand among the open nodes, -1 for one that is a leaf, [pairs, 2].
    """

    parent: Places
    side: Places
    place: Places


@dataclass
class Frontier:
    """The open nodes of one tree. `sampled` are the rows that it learns from; all rows are followed."""

    sampled: Flags
    open: int = 1
    place: Places = field(init=False)  # the open node of every row, -1 in a leaf
    slot: Places = field(init=False)  # the sum that a row belongs to, -1: none
    slots: int = 1
    pairs: Pairs | None = None

    def __post_init__(self) -> None:
        self.place = np.zeros(len(self.sampled), dtype=np.int32)
        self.slot = np.where(self.sampled, 0, -1).astype(np.int32)

    def rows(self, nodes: Flags) -> Rows:
        """The rows of these open nodes, in order."""
        return np.flatnonzero(np.append(nodes, False)[self.place])

    def divide(self, split: Flags, left: Flags, stays: Flags) -> Places:
        """Split nodes: `left` is the side of every row in them, `stays` says which children are open.

        Children are numbered two by two, those on the left even; returns every row's, -1 where its node
        was not split.
        """
        rank = np.append(np.where(split, np.cumsum(split) - 1, -1), -1).astype(np.int32)[self.place]
        child = np.where(rank >= 0, 2 * rank + ~left, -1).astype(np.int32)
        children = stays.reshape(-1, 2)
        counts = np.bincount(child[self.sampled & (child >= 0)], minlength=stays.size).reshape(-1, 2)
        wanted = children.any(axis=1)
        side = (counts[:, 1] < counts[:, 0]).astype(np.int32)  # of equals the left one
        number = np.append(np.where(stays, np.cumsum(stays) - 1, -1), -1).astype(np.int32)
        slot = np.full(stays.size + 1, -1, dtype=np.int32)
        slot[2 * np.flatnonzero(wanted) + side[wanted]] = np.arange(int(wanted.sum()))
        parents = np.flatnonzero(split).astype(np.int32)
        self.pairs = Pairs(parents[wanted], side[wanted], number[:-1].reshape(-1, 2)[wanted])
        self.slot = np.where(self.sampled, slot[child], -1).astype(np.int32)
        self.place, self.open, self.slots = number[child], int(stays.sum()), int(wanted.sum())
        return child

    def whole(self, parents: Words, sums: Words) -> Words:
        """The histograms of all open nodes, from those of the level above and the sums of every slot."""
        if self.pairs is None:
            return sums
        found = np.empty((self.open, sums.shape[1]), dtype=np.uint64)
        pairs, others = self.pairs, parents[self.pairs.parent] - sums
        for side in (0, 1):
            place, summed = pairs.place[:, side], pairs.side == side
            found[place[summed & (place >= 0)]] = sums[summed & (place >= 0)]
            found[place[~summed & (place >= 0)]] = others[~summed & (place >= 0)]
        return found
