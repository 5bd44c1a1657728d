"""Growing one tree, where the labels are: which nodes are split, by whose column, and what a leaf scores.

It asks for histograms of the open nodes, decides, and asks which rows went left, level by level; where the
histograms and the sides come from is no business of it. The same code grows trees over many parties' columns
and over pooled ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from colonnade.arrays import Floats, Rows, Words
from colonnade.job import Trees
from colonnade.trees.bins import BinGrid, Codes, Counts, Flags
from colonnade.trees.estimate import Told, agreeing, of_open_nodes
from colonnade.trees.frontier import Frontier, parts_of
from colonnade.trees.gradients import Lesson
from colonnade.trees.splits import Best, Bounds, SplitScorer
from colonnade.trees.tree import LEAF, NODE, Tree


@dataclass(frozen=True, eq=False)
class TreeColumns:
    """The columns that a tree may use, in the order of parties: whose they are, and which of its own."""

    grid: BinGrid
    party: Counts
    own: Counts
    grids: list[BinGrid]  # the bins of every party

    @staticmethod
    def of(grids: Sequence[BinGrid], chosen: Sequence[Counts]) -> TreeColumns:
        """Return the columns of a tree, from every party's bins and the columns of each that take part."""
        party = [np.full(len(columns), number, dtype=np.int64) for number, columns in enumerate(chosen)]
        taken = [grid.take(columns) for grid, columns in zip(grids, chosen, strict=True)]
        return TreeColumns(BinGrid.joined(taken), np.concatenate(party), np.concatenate(chosen), taken)


@dataclass(frozen=True, eq=False)
class Level:
    """What becomes of the open nodes: the party that splits each, LEAF for none, and how.

    `column` is one of the party's own, `bin` the last that goes left. `stays` says of every child, first
    those on the left of all nodes that are split, then those on the right, whether it stays open.
    """

    party: Counts
    column: Counts
    bin: Counts
    gaps_left: Flags
    stays: Flags
    sets: Codes | None = None  # of columns of categories: which bins go left (`sets.packed_sets`)

    @staticmethod
    def none() -> Level:
        """Return a level in which the one open node becomes a leaf."""
        zero, no = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=bool)
        return Level(zero + LEAF, zero, zero, no, no[:0])

    @property
    def split(self) -> Flags:
        split: Flags = self.party != LEAF
        return split

    def others(self, party: int) -> list[int]:
        """Return the parties that split nodes, but for one."""
        return sorted(set(self.party.tolist()) - {LEAF, party})

    @property
    def last(self) -> bool:
        """Whether no node is open after this level."""
        return not self.stays.any()


@dataclass
class _Nodes:
    """The nodes of a tree so far."""

    party: list[int] = field(default_factory=list)
    split: list[int] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    right: list[int] = field(default_factory=list)
    value: list[float] = field(default_factory=list)
    gain: list[float] = field(default_factory=list)
    cover: list[float] = field(default_factory=list)

    def add(self, values: Floats, covers: Floats) -> list[int]:
        """Add leaves, which may be split later. Returns their numbers."""
        first, count = len(self.value), len(values)
        for numbers in (self.party, self.split, self.left, self.right):
            numbers += [LEAF] * count
        self.value += values.tolist()
        self.gain += [0.0] * count
        self.cover += covers.tolist()
        return list(range(first, first + count))

    def tree(self) -> Tree:
        """Return all nodes as arrays."""
        return Tree(**{name: np.array(getattr(self, name), dtype=kind) for name, kind in NODE.items()})


class Growth:
    """One tree while it grows."""

    def __init__(self, rules: Trees, columns: TreeColumns, lesson: Lesson, sampled: Flags) -> None:
        self.rules, self.columns, self.lesson = rules, columns, lesson
        words = lesson.words
        self.scorer = SplitScorer(rules, lesson.units)
        self.leaf_scorer = SplitScorer(rules, lesson.fine_units)
        self.frontier = Frontier(sampled)
        self.histograms = np.zeros((0, columns.grid.total), dtype=np.uint64)
        self.ends: Flags | None = None  # which bins of every open node have a split, where some are joined
        self.totals: Words = np.array([words[sampled].sum(dtype=np.uint64)], dtype=np.uint64)
        self.at = np.zeros(len(words), dtype=np.int64)  # the node of every row
        self.depth, self.leaves = 0, 1
        self._nodes = _Nodes()
        # only where scores may only rise or fall with some column
        self._bounds = (np.array([-np.inf]), np.array([np.inf])) if columns.grid.directions.any() else None
        self._open = self._added(self.totals, self._bounds)
        self.allowed: int | None = None  # the one party whose columns the tree may use

    @property
    def open(self) -> bool:
        """Whether there is a node that could be split."""
        return bool(self._open)

    def decide(self, told: Told, splits: list[int]) -> Level:
        """Decide on all open nodes from the sums of every slot; `splits` counts every party's, here too."""
        grid = self.columns.grid
        if not self.rules.bits:
            self.histograms = self.frontier.whole(self.histograms, told.sums)
        else:
            before = told if self.ends is None else Told(self.histograms, self.ends, self.ends)
            found = agreeing(of_open_nodes(self.frontier, before, told, grid), self.totals, grid)
            self.histograms, self.ends = found.sums, found.ends
        usable = np.ones(grid.columns, dtype=bool)
        if self.allowed is not None:
            usable = self.columns.party == self.allowed
        best = self.scorer.best(self.histograms, self.totals, grid, usable, self._bounds, self.ends)
        split = self._chosen(best)
        column = grid.column[best.bin[split]]
        self.depth += 1
        self.leaves += int(split.sum())
        level = Level(
            party=_spread(split, self.columns.party[column], LEAF),
            column=_spread(split, self.columns.own[column], 0),
            bin=_spread(split, best.bin[split] - grid.start[column], 0),
            gaps_left=best.gaps_left & split,
            stays=np.zeros(0, dtype=bool),
            sets=best.sets,
        )
        return self._branched(level, best, splits, grid.directions[column])

    def divide(self, level: Level, left: Flags) -> None:
        """Take in which rows went left; where a row is needs to be known only once its node is a leaf."""
        for k, rows in self.frontier.parts(self.frontier.rows, ~level.split):
            self.at[rows] = self._divided[k]
        rows, counts = self.frontier.divide(level.split, left, level.stays)
        for k, part in parts_of(rows, counts, ~level.stays):
            self.at[part] = self._children[k]
        if self.ends is not None:
            self._score(level, rows, counts)

    def finish(self) -> Tree:
        """Return the tree."""
        return self._nodes.tree()

    def _score(self, level: Level, rows: Rows, counts: Counts) -> None:
        """Score the children by their own rows, as histograms that were told are not exact.

        A child without a row, which an owner may make of one with few, scores as its parent does.
        """
        self.totals = _added_up(self.lesson.words, rows, counts, self.frontier.sampled)[level.stays]
        sums = _added_up(self.lesson.fine, rows, counts, self.frontier.sampled)
        values = self.rules.learning_rate * self.leaf_scorer.weight(sums, self._child_bounds)
        covers = self.leaf_scorer.cover(sums)
        nodes, parents = self._nodes, np.tile(self._divided[level.split], 2)
        for k, (child, parent) in enumerate(zip(self._children.tolist(), parents.tolist(), strict=True)):
            nodes.value[child] = float(values[k]) if counts[k] else nodes.value[parent]
            nodes.cover[child] = float(covers[k])

    def _chosen(self, best: Best) -> Flags:
        """Return which nodes are split: all that gain by it or, where leaves run out, those that gain
        most."""
        split = np.isfinite(best.gain)
        room = self.rules.max_leaves - self.leaves
        if self.rules.max_leaves and split.sum() > room:
            first = np.argsort(-best.gain, kind="stable")[:room]
            split = split & np.isin(np.arange(len(split)), first)
        return split

    def _branched(self, level: Level, best: Best, splits: list[int], rises: Counts) -> Level:
        """Return the level with its children among the nodes; `splits` are counted."""
        nodes, split = self._nodes, level.split
        where: Rows = np.flatnonzero(split)
        sums = np.concatenate([best.left[where], self.totals[where] - best.left[where]])
        bounds = self._halved(where, sums, rises)
        children = self._added(sums, bounds)
        for k, node in enumerate(where.tolist()):
            parent, party = self._open[node], int(level.party[node])
            nodes.party[parent], nodes.split[parent] = party, splits[party]
            nodes.left[parent], nodes.right[parent] = children[k], children[len(where) + k]
            nodes.gain[parent] = float(best.gain[node])
            splits[party] += 1
        stays = self._stay(sums)
        self._divided, self._children = (
            np.array(self._open, dtype=np.int64),
            np.array(children, dtype=np.int64),
        )
        self._child_bounds = bounds
        self._open = self._children[stays].tolist()
        self.totals = sums[stays]
        self._bounds = None if bounds is None else (bounds[0][stays], bounds[1][stays])
        return replace(level, stays=stays)

    def _halved(self, where: Rows, sums: Words, rises: Counts) -> Bounds | None:
        """Return the bounds of the children of some nodes; columns with which scores rise or fall part
        them."""
        if self._bounds is None:
            return None
        low, high = (np.tile(bound[where], 2) for bound in self._bounds)
        middle = np.tile(self.scorer.weight(sums, (low, high)).reshape(2, -1).mean(axis=0), 2)
        upper = np.concatenate([-rises, rises])  # the right child has the higher scores where they rise
        return np.where(upper > 0, middle, low), np.where(upper < 0, middle, high)

    def _stay(self, sums: Words) -> Flags:
        """Return which new nodes could be split once more."""
        full = self.rules.max_leaves and self.leaves >= self.rules.max_leaves
        if self.depth >= self.rules.max_depth or full:
            return np.zeros(len(sums), dtype=bool)
        heavy: Flags = self.scorer.cover(sums) >= 2 * self.rules.least_weight
        return heavy

    def _added(self, sums: Words, bounds: Bounds | None) -> list[int]:
        """Add nodes with these sums."""
        values = self.rules.learning_rate * self.scorer.weight(sums, bounds)
        return self._nodes.add(values, self.scorer.cover(sums))


def _added_up(words: Words, rows: Rows, counts: Counts, sampled: Flags) -> Words:
    """Return the sums of the words of groups of rows, which lie one after another; of sampled rows alone."""
    running = np.concatenate(
        [[np.uint64(0)], np.cumsum(np.where(sampled[rows], words[rows], 0), dtype=np.uint64)]
    )
    ends = np.cumsum(counts)
    sums: Words = running[ends] - running[ends - counts]
    return sums


def _spread(where: Flags, values: Counts, rest: int) -> Counts:
    """Return values at the given places, `rest` at the others."""
    found = np.full(len(where), rest, dtype=np.int64)
    found[where] = values
    return found
