"""Sums over rows that are known by their way alone: the bin of every row, and the side it took on each level.

Where words are hidden, a column's rows lie in an order of its own, so they cannot be followed node by node as
a `Frontier` does. Nothing is looked up here either: a row's key is its bin plus the number of its way times
the number of bins, and on every level all keys of rows that go left grow by the same. Words are added up by
key, in all nodes at once, and the nodes that are asked for are picked from the few sums.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from colonnade.arrays import Numbers, Words
from colonnade.trees.bins import Counts
from colonnade.trees.frontier import Pairs
from colonnade.trees.grow import Level
from colonnade.trees.histogram import add_up

PIECE = 2**15  # rows that are added up at once, as what is made of their keys stays in the cache
FEW = 2**15  # sums that a processor has at hand: with more, ways that ended are forgotten


class RowPaths:
    """The rows of some columns, each in its own order: `codes` are their bins, `bins` how many there are."""

    def __init__(self, codes: Sequence[Numbers], bins: Counts) -> None:
        self.bins = bins
        self.keys: list[Numbers] = [each.astype(self._kind(1)) for each in codes]
        self.count = 1  # of ways
        self.open = np.zeros(1, dtype=np.int64)  # the way of every open node
        self.asked = self.open  # and of every node whose sums are wanted

    def sums(self, words: Iterable[Words]) -> Words:
        """Return the sums of words, column by column, for every node that is asked for and every bin."""
        found, end = np.empty((len(self.asked), int(self.bins.sum())), dtype=np.uint64), 0
        for keys, bins, each in zip(self.keys, self.bins.tolist(), words, strict=True):
            sums = np.zeros(self.count * bins, dtype=np.uint64)
            for start in range(0, len(keys), PIECE):
                part = slice(start, start + PIECE)
                add_up(sums, keys[part].astype(np.int32), each[part])
            begin, end = end, end + bins
            found[:, begin:end] = sums.reshape(self.count, bins).take(self.asked, axis=0)
        return found

    def counts(self) -> Counts:
        """Return how many rows there are for every node that is asked for and every bin."""
        return self.sums(np.ones(len(keys), dtype=np.uint64) for keys in self.keys).view(np.int64)

    def divide(self, level: Level, pairs: Pairs) -> None:
        """Hear how the open nodes are divided, and whose sums are asked for next; `turn` must follow."""
        self.asked = self.open[pairs.parent] + np.where(pairs.left, self.count, 0)
        parents = self.open[level.split]
        self.open = np.concatenate([parents + self.count, parents])[level.stays]

    def turn(self, left: Iterable[Numbers]) -> None:
        """Take in which rows go left, 0 or 1, column by column."""
        kind = self._kind(2 * self.count)
        for j, (bins, sides) in enumerate(zip(self.bins.tolist(), left, strict=True)):
            self.keys[j] = keys = self.keys[j].astype(kind, copy=False)
            np.add(keys, np.multiply(sides, self.count * bins, dtype=kind), out=keys)
        self.count *= 2
        if self.count > 2 * len(self.open) + 2 and self.count * self.bins.max(initial=0) > FEW:
            self._forget()

    def _kind(self, ways: int) -> type[np.uint16] | type[np.int32]:
        """Return the smallest type of numbers that keys of this many paths fit into."""
        return np.uint16 if ways * self.bins.max(initial=0) <= 2**16 else np.int32

    def _forget(self) -> None:
        """Number the paths that are open or asked for again; all others become one."""
        kept = np.union1d(self.open, self.asked)
        number = np.full(self.count, len(kept))
        number[kept] = np.arange(len(kept))
        for keys, bins in zip(self.keys, self.bins.tolist(), strict=True):
            shift = ((number - np.arange(self.count)) * bins).astype(keys.dtype)  # down too, modulo 2^16
            np.add(keys, shift.take(np.floor_divide(keys, bins)), out=keys)
        self.open, self.asked, self.count = number[self.open], number[self.asked], len(kept) + 1
