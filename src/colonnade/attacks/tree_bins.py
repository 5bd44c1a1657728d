"""The others' bins row by row: which single row, or which two, make the sum of a small bin.

The label holder knows the word of every row, g and h as whole numbers, and which rows are in a node. A bin of
the node with one row has that row's word for its sum, one with two rows the sum of two words. Few words are
alike, so most such sums have one solution. A row that is found is found for good: its bin is the same in
every tree, and its word comes off all sums after that, which makes other bins small.

The larger of two siblings is not told, and follows: the parent less the smaller one.

Sees: what the label holder says and hears in clear text, and the job. Where labels are blind the label holder
reads the same histograms, bit for bit, and also knows how many rows a bin has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from colonnade.arrays import Rows, Words
from colonnade.attacks.case import BinGuess, Case
from colonnade.attacks.tree_columns import TreeSums, trees_of
from colonnade.trees.estimate import Told, of_open_nodes

SINGLES, PAIRS = 2000, 200  # the most rows of a node in which one row, and two, are sought
PASSES = 2  # over all trees: what later trees tell makes bins of earlier ones small

Found = NDArray[np.int16]


def bins_from_small_sums(case: Case) -> BinGuess:
    """Return the bin of every row and column of others that follows from sums of one or two rows."""
    found: dict[str, Found] = {}
    for _ in range(PASSES):
        for tree in trees_of(case):
            for who, grid in tree.grids.items():
                found.setdefault(who, np.full((case.rows, grid.columns), -1, dtype=np.int16))
            for rows, sums in _nodes(tree):
                _read(tree, rows, sums, found)
    return BinGuess(found)


def _nodes(tree: TreeSums) -> Iterator[tuple[Rows, Mapping[str, Words]]]:
    """Yield the rows of every open node of a tree, and the sums of its bins at every owner."""
    before: dict[str, Told] = {}
    for frontier, told in tree.levels:
        before = {
            who: of_open_nodes(frontier, before.get(who, each), each, tree.grids[who])
            for who, each in told.items()
        }
        ends = np.cumsum(frontier.counts)
        for node, (end, count) in enumerate(zip(ends.tolist(), frontier.counts.tolist(), strict=True)):
            rows = frontier.rows[end - count : end]
            yield rows[tree.sampled[rows]], {who: each.sums[node] for who, each in before.items()}


def _read(tree: TreeSums, rows: Rows, sums: Mapping[str, Words], found: dict[str, Found]) -> None:
    """Write down the bins of single rows and pairs whose words make a sum of this node."""
    if len(rows) > SINGLES:
        return
    for who, grid in tree.grids.items():
        for column in range(grid.columns):
            known = found[who][rows, column]
            start, width = int(grid.start[column]), int(grid.width[column])
            left = sums[who][start : start + width].copy()
            there = known >= 0
            np.subtract.at(left, known[there].astype(np.int64), tree.words[rows[there]])
            bins, unknown = np.flatnonzero(left), rows[~there]
            if len(bins) and len(unknown):
                for place, some in _solutions(left[bins], tree.words[unknown]):
                    found[who][unknown[some], column] = bins[place]


def _solutions(wanted: Words, words: Words) -> Iterator[tuple[int, list[int]]]:
    """Yield the place of every sum that one row, or else two, can make in one way alone; and these rows."""
    order = np.argsort(words, kind="stable")
    ranked = words[order]
    first, last = np.searchsorted(ranked, wanted, "left"), np.searchsorted(ranked, wanted, "right")
    for place in np.flatnonzero(last - first == 1).tolist():
        yield place, [int(order[first[place]])]
    if len(words) > PAIRS:
        return
    i, j = np.triu_indices(len(words), 1)
    pairs = words[i] + words[j]
    by = np.argsort(pairs, kind="stable")
    ranked = pairs[by]
    low, high = np.searchsorted(ranked, wanted, "left"), np.searchsorted(ranked, wanted, "right")
    for place in np.flatnonzero((last == first) & (high - low == 1)).tolist():
        pair = by[low[place]]
        yield place, [int(i[pair]), int(j[pair])]
