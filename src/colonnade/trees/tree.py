"""Trees as plain arrays, and how rows find their leaf.

Who holds the labels keeps the shape of all trees, the scores of their leaves, and of every split whose it is
and which number it has there. What a split compares, a column and a threshold, is known to its owner alone
(`Splits`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from colonnade.arrays import Arrays, Floats, Matrix
from colonnade.trees.bins import Counts, Flags

LEAF = -1


@dataclass(frozen=True, eq=False)
class Splits:
    """A party's own splits of all trees: rows up to the threshold go left; and so do gaps, or they do not.

    A split of categories has no threshold, and a set of their numbers that go left.
    """

    column: Counts
    threshold: Floats
    gaps_left: Flags
    sets: Mapping[int, Counts] = field(default_factory=dict)

    @property
    def count(self) -> int:
        return len(self.column)

    def left(self, X: Matrix) -> Flags:
        """Return which rows go left in every split, [splits, rows]."""
        found = np.empty((self.count, X.shape[0]), dtype=bool)
        for column in np.unique(self.column).tolist():
            values = np.asarray(X[:, [column]].todense() if not isinstance(X, np.ndarray) else X[:, column])
            values = values.ravel()
            which = np.flatnonzero(self.column == column)
            found[which] = values <= self.threshold[which, None]
            for split in [split for split in which.tolist() if split in self.sets]:
                found[split] = np.isin(values, self.sets[split])
            gaps = np.isnan(values)
            if gaps.any():
                found[np.ix_(which, gaps)] = self.gaps_left[which, None]
        return found

    def arrays(self) -> Arrays:
        """Return the same as named arrays."""
        sets = {}
        if self.sets:
            sizes = np.zeros(self.count, dtype=np.int64)
            sizes[list(self.sets)] = [len(each) for each in self.sets.values()]
            there = np.isin(np.arange(self.count), list(self.sets))
            values = [self.sets[split] for split in sorted(self.sets)]
            sets = {"splits.set": np.where(there, sizes, -1), "splits.categories": np.concatenate(values)}
        return {
            "splits.column": self.column,
            "splits.threshold": self.threshold,
            "splits.gaps_left": self.gaps_left.astype(np.uint8),
            **sets,
        }

    @staticmethod
    def from_arrays(stored: Arrays) -> Splits:
        """Return the splits in a stored share."""
        gaps_left = stored["splits.gaps_left"].astype(bool)
        sets: dict[int, Counts] = {}
        if "splits.set" in stored:  # version 0.2 has none
            which = np.flatnonzero(stored["splits.set"] >= 0)
            ends = np.cumsum(stored["splits.set"][which])[:-1]
            sets = dict(zip(which.tolist(), np.split(stored["splits.categories"], ends), strict=True))
        return Splits(stored["splits.column"], stored["splits.threshold"], gaps_left, sets)


@dataclass
class OwnSplits:
    """A party's splits while trees grow."""

    column: list[int] = field(default_factory=list)
    threshold: list[float] = field(default_factory=list)
    gaps_left: list[bool] = field(default_factory=list)
    sets: dict[int, Counts] = field(default_factory=dict)  # of splits of categories: which go left

    def add(self, column: int, threshold: float, gaps_left: bool, left: Counts | None = None) -> None:
        if left is not None:
            self.sets[len(self.column)] = left
        self.column.append(column)
        self.threshold.append(threshold)
        self.gaps_left.append(gaps_left)

    def first(self, count: int) -> Splits:
        """Return the first `count` splits."""
        return Splits(
            np.array(self.column[:count], dtype=np.int64),
            np.array(self.threshold[:count], dtype=np.float64),
            np.array(self.gaps_left[:count], dtype=bool),
            {split: left for split, left in self.sets.items() if split < count},
        )


@dataclass(frozen=True, eq=False)
class Tree:
    """One tree: every node has a party and a number of its split there, or is a leaf; a root is node 0.

    `value` is the score of a node if it were a leaf, learning rate included; `gain` is what its split gained,
    and `cover` the sum of second derivatives of its rows.
    """

    party: NDArray[np.int64]
    split: NDArray[np.int64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    value: Floats
    gain: Floats
    cover: Floats


NODE: dict[str, type[np.generic]] = {
    **dict.fromkeys(("party", "split", "left", "right"), np.int64),
    **dict.fromkeys(("value", "gain", "cover"), np.float64),
}
"""What a tree says of every node, and the kind of numbers."""


@dataclass(frozen=True, eq=False)
class Forest:
    """All trees of a model, and the class of each; `base` is the score of a row before any of them."""

    base: Floats  # one number per class
    trees: tuple[Tree, ...]
    kind: Counts

    def scores(self, left: Mapping[int, Flags], rows: int) -> Floats:
        """Return the scores of rows, [rows, classes], from the sides of all rows in every party's splits."""
        z = np.repeat(self.base[None], rows, axis=0)
        for tree, kind in zip(self.trees, self.kind.tolist(), strict=True):
            z[:, kind] += tree.value[leaves(tree, left, rows)]
        return z

    def splits_of(self, party: int) -> int:
        """Return how many splits a party has in these trees."""
        return sum(int((tree.party == party).sum()) for tree in self.trees)

    def part_of(self, party: int, *, first: bool) -> Forest:
        """Return the trees of one party, where every tree has splits of one party alone.

        `first` is the party that has the base and trees without a split.
        """
        whose = {party, LEAF} if first else {party}
        mine = [t for t, tree in enumerate(self.trees) if int(tree.party[0]) in whose]
        base = self.base if first else np.zeros_like(self.base)
        return Forest(base, tuple(self.trees[t] for t in mine), self.kind[mine])

    def arrays(self) -> Arrays:
        """Return the same as named arrays: the nodes of all trees one after another, and how many each tree
        has."""
        sizes = np.array([len(tree.party) for tree in self.trees], dtype=np.int64)
        stored: Arrays = {"tree.nodes": sizes, "tree.kind": self.kind, "tree.base": self.base}
        for name, kind in NODE.items():
            parts = [getattr(tree, name) for tree in self.trees]
            stored[f"tree.{name}"] = np.concatenate(parts) if parts else np.zeros(0, dtype=kind)
        return stored

    @staticmethod
    def from_arrays(stored: Arrays) -> Forest:
        """Return the trees in a stored share."""
        count, ends = len(stored["tree.nodes"]), np.cumsum(stored["tree.nodes"])[:-1]
        parts = {name: np.split(stored[f"tree.{name}"], ends) for name in NODE}
        trees = tuple(Tree(**{name: parts[name][t] for name in NODE}) for t in range(count))
        return Forest(stored["tree.base"], trees, stored["tree.kind"])


def leaves(tree: Tree, left: Mapping[int, Flags], rows: int) -> Counts:
    """Return the leaf of every row; `left` has the sides of all rows in every party's splits, [splits,
    rows]."""
    at = np.zeros(rows, dtype=np.int64)
    for node in range(len(tree.party)):  # a child comes after its parent
        party = int(tree.party[node])
        if party == LEAF:
            continue
        here = np.flatnonzero(at == node)
        goes_left = left[party][int(tree.split[node])][here]
        at[here] = np.where(goes_left, tree.left[node], tree.right[node])
    return at
