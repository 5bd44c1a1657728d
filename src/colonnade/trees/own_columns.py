"""One party's columns while trees grow: their bins, their histograms, and the splits that fell on them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from colonnade.arrays import Matrix, Words
from colonnade.errors import JobError, MalformedMessage
from colonnade.state import Declared
from colonnade.trees.bins import Counts, Cuts, Flags
from colonnade.trees.boosting import Sampling
from colonnade.trees.estimate import Told, all_told
from colonnade.trees.frontier import Frontier
from colonnade.trees.grow import Level
from colonnade.trees.histogram import Adder, Histogrammer, add_columns
from colonnade.trees.sets import unpacked_set
from colonnade.trees.told import CoinNoise, Floors, added_up, mostly, standing, told_in
from colonnade.trees.tree import OwnSplits


class OwnColumns:
    """What one party does with its columns, whose names are its own; `party` is its place among all.

    `adder` adds up its histograms. `exact` are columns of who reads the histograms, to whom nothing is told.
    """

    STATE = Declared(kept=("splits",), remade=("chosen", "columns"))

    def __init__(
        self,
        X: Matrix,
        sampling: Sampling,
        party: int,
        names: Sequence[str] = (),
        adder: Adder = add_columns,
        *,
        categories: Sequence[int] = (),
        exact: bool = False,
    ) -> None:
        self.party, self.sampling = party, sampling
        sets = categories if sampling.rules.categories == "sets" else ()
        self.cuts = Cuts.of(X, sampling.rules.max_bin, sampling.seed, sets)
        self.grid = self.cuts.grid
        for column, name in enumerate(names):
            if direction := sampling.rules.monotone_constraints.get(name, 0):
                if column in sets:
                    raise JobError(
                        f"trees.monotone_constraints: {name} is a column of categories, which have no order; "
                        "drop it, or set trees.categories = 'numbers'"
                    )
                self.grid.rises[column] = direction
        self.all = Histogrammer(self.cuts.codes(X), self.grid, adder)
        self.chosen, self.columns = self.all, np.arange(self.grid.columns)  # that take part in a tree
        # a split of all numbers from all gaps has no edge above it
        self._edges = [[*edges.tolist(), np.inf] for edges in self.cuts.edges]
        self.splits = OwnSplits()
        self.floors = None if exact else Floors.of(sampling.rules)
        if self.floors is not None:
            self._noise = CoinNoise(self.all.codes, sampling.seed, self.floors.noise)

    def begin(self, tree: int) -> Counts:
        """Choose the columns that take part in a tree."""
        self.columns = self.sampling.columns_of(tree, self.party, self.grid.columns)
        self.chosen = self.all.take(self.columns)
        return self.columns

    @property
    def chosen_bins(self) -> Counts:
        """The places of the bins of columns that take part in a tree, among all."""
        return np.flatnonzero(np.isin(self.grid.column, self.columns))

    def sums(self, words: Words, frontier: Frontier) -> Words:
        """Return the histograms that the frontier asks for, [slots, bins]."""
        return self.chosen.sums(words, frontier.asked)

    def counts(self, frontier: Frontier) -> Counts:
        """Return how many rows there are in every slot and bin that the frontier asks for."""
        ones = np.ones(len(frontier.sampled), dtype=np.uint64)
        return self.sums(ones, frontier).view(np.int64)

    def told(self, sums: Words, counts: Counts, tree: int, depth: int) -> Told:
        """Return what is told of these sums, of which `counts` has the rows: joined bins, with noise."""
        if self.floors is None:
            return all_told(sums)
        ends, most, place = self.joined_bins(counts)
        found = added_up(sums, place)
        found[ends] += self.noise(tree, depth, int(ends.sum()))
        return Told(found, ends, most)

    def joined_bins(self, counts: Counts) -> tuple[Flags, Flags, Counts]:
        """Return which bins end a joined one, which have nearly all of its rows, and where each is told."""
        if self.floors is None:
            raise RuntimeError("bins are joined where there are floors")
        grid = self.chosen.grid
        ends = standing(counts, grid, self.floors)
        place = told_in(ends, grid)
        return ends, mostly(counts, place), place

    def noise(self, tree: int, depth: int, count: int) -> Words:
        """Return the noise of as many sums of a level."""
        return self._noise.words(tree, depth, count)

    def left(self, level: Level, frontier: Frontier) -> Flags:
        """Return which rows of the nodes that this party splits go left, node after node; notes the
        splits."""
        mine = level.party == self.party
        self._check(level, mine)
        sides = [np.zeros(0, dtype=bool)]
        parts = frontier.parts(frontier.rows, mine)
        how = (each[mine].tolist() for each in (level.column, level.bin, level.gaps_left))
        for (node, rows), column, last, gaps_left in zip(parts, *how, strict=True):
            code = self.all.codes[column].take(rows)
            if self.grid.sets[column]:
                left = self._split_set(column, level, node, gaps_left)[code]
            else:
                self.splits.add(column, self._edges[column][last], gaps_left)
                left = code <= last
                if gaps_left and self.grid.gaps[column]:
                    left |= code == self.grid.ordered[column]
            if (
                self.floors is not None
                and min(each := (int(left.sum()), int((~left).sum()))) < self.floors.bin_rows
            ):
                left[:] = each[0] > each[1]  # which few rows differ is not told
            sides.append(left)
        return np.concatenate(sides)

    def _split_set(self, column: int, level: Level, node: int, gaps_left: bool) -> Flags:
        """Note a split of categories; returns which bins go left."""
        if level.sets is None:
            raise MalformedMessage("a split of categories without a set of them")
        left, bins = unpacked_set(level.sets[node]), self.cuts.sets[column]
        if self.cuts.gaps[column]:
            gaps_left = bool(left[self.grid.ordered[column] - 1])
        self.splits.add(column, np.nan, gaps_left, np.flatnonzero(left[bins]))
        return left

    def _check(self, level: Level, mine: Flags) -> None:
        """Refuse splits of columns or bins that are not there."""
        column, last = level.column[mine], level.bin[mine]
        if ((column < 0) | (column >= self.grid.columns)).any():
            raise MalformedMessage("a split of a column that is not there")
        if ((last < 0) | (last >= self.grid.ordered[column])).any():
            raise MalformedMessage("a split after a bin that is not there")


def joined_sides(sides: Sequence[tuple[int, Flags]], level: Level, frontier: Frontier) -> Flags:
    """Return the side of every row of the open nodes, from what each party said of its nodes, by its
    place."""
    left = np.zeros(len(frontier.rows), dtype=bool)
    for party, flags in sides:
        taken = 0
        for _, part in frontier.parts(left, level.party == party):
            part[:] = flags[taken : taken + len(part)]
            taken += len(part)
    return left
