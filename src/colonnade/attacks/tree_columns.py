"""The others' columns from their histograms, which the label holder is sent for every node of every tree.

A sum over a bin of a node is a linear equation: the label holder knows g and h of every row and which
rows are in the node, and does not know which of them are in the bin. Added up over the bins of a column,
each times its number, one equation is left: the sum of g times the number of the row's bin. Every node of
every tree gives two, one of g and one of h. With as many as there are rows they have one solution; with
fewer the shortest one is taken, which is near the truth in as many directions as there are equations.

Sees: what the label holder says and hears in clear text, and the job. Where labels are blind the label holder
reads the same histograms, bit for bit; the transcript alone does not show them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from colonnade.arrays import Floats, Words
from colonnade.attacks.case import Case, ColumnGuess
from colonnade.conversations.boost.wire import flags_of, grid_of, level_of, tag_for, told_of
from colonnade.messages import Bins, Divide, Gradients, Histograms, Joined, Sides
from colonnade.trees.bins import BinGrid, Flags
from colonnade.trees.boosting import Sampling
from colonnade.trees.estimate import Told, all_told
from colonnade.trees.frontier import Frontier
from colonnade.trees.gradients import parted, unpacked
from colonnade.trees.own_columns import joined_sides
from colonnade.trees.told import Floors

EQUATIONS = 1000  # at most: a matrix of all rows for each


@dataclass(frozen=True, eq=False)
class TreeSums:
    """What the label holder knows of one tree: every row's word, and the sums of every level by owner."""

    grids: Mapping[str, BinGrid]
    sampled: Flags
    words: Words  # of all rows, 0 where the tree did not learn from one
    noise: float | None  # of every sum, in whole numbers; None: sums are exact
    levels: Iterator[tuple[Frontier, Mapping[str, Told]]]


def columns_from_histograms(case: Case) -> ColumnGuess:
    """Return the shortest solution of what all histograms say of every row's bins."""
    asked: list[Floats] = []
    told: dict[str, list[Floats]] = {}
    noise = 0.0
    for tree in trees_of(case):
        for frontier, sums in tree.levels:
            asked += list(_factors(tree.words, frontier))
            for party, each in sums.items():
                told.setdefault(party, []).extend(
                    _numbered(each.sums, tree.grids[party], signed=tree.noise is not None)
                )
        noise = (
            16 * case.plan.settings.trees.max_bin * (tree.noise or 0.0) ** 2
        )  # of an equation, beside a bin number's
        if len(asked) >= EQUATIONS:
            break
    A = np.array(asked)
    length = np.linalg.norm(A, axis=1)
    A, length = A[length > 0] / length[length > 0, None], length[length > 0]
    gram = A @ A.T + np.diag(1e-6 + noise / length**2)
    found = {}
    for party, rows in told.items():
        right = np.array(rows)[: len(asked)][np.linalg.norm(np.array(asked), axis=1) > 0] / length[:, None]
        found[party] = A.T @ np.linalg.solve(gram, right)
    return ColumnGuess(np.arange(case.rows), found)


def trees_of(case: Case) -> Iterator[TreeSums]:
    """Yield what was told of every tree."""
    said, heard = case.transcript.said, case.transcript.heard
    grids = {who: grid_of(m, who) for who, m in heard if isinstance(m, Bins)}
    histograms = {(who, m.tag): m for who, m in heard if isinstance(m, Histograms | Joined)}
    words = {m.tag: m.words for _, m in said if isinstance(m, Gradients) and m.words.size}
    sampling = Sampling(case.plan.settings.trees, case.plan.seed, case.rows)
    floors = Floors.of(sampling.rules)
    for tree in range(len(words)):
        sampled = sampling.rows_of(tree)
        whole = np.zeros(case.rows, dtype=np.uint64)
        whole[sampled] = unpacked(words[tag_for(tree)])
        levels = (
            (frontier, {who: _told(histograms[who, tag], frontier, grid) for who, grid in grids.items()})
            for tag, frontier in _levels(case, tree, sampled)
        )
        yield TreeSums(grids, sampled, whole, None if floors is None else floors.noise, levels)


def _told(message: Histograms | Joined, frontier: Frontier, grid: BinGrid) -> Told:
    """Return the sums of a level that one owner told."""
    if isinstance(message, Joined):
        return told_of(message, len(frontier.summed), grid)
    return all_told(message.sums)


def _factors(words: Words, frontier: Frontier) -> Floats:
    """Return g, and then h, of the rows of every slot, 0 for all others."""
    asked = frontier.asked
    slots, rows = asked.slots, asked.rows
    found = np.zeros((2, slots, len(words)))
    slot = np.repeat(np.arange(slots), asked.counts)
    found[0, slot, rows], found[1, slot, rows] = parted(words[rows])
    return found.reshape(2 * slots, -1)


def _numbered(sums: Words, grid: BinGrid, *, signed: bool) -> list[Floats]:
    """Return the sums of every slot and column over bins, each times its number: of g, and then of h."""
    number = np.arange(grid.total) - grid.start[grid.column]
    both = [
        np.add.reduceat(part * number, grid.start, axis=1).astype(np.float64)
        for part in parted(sums, signed=signed)
    ]
    return [row for part in both for row in part]


def _levels(case: Case, tree: int, sampled: np.ndarray) -> Iterator[tuple[int, Frontier]]:
    """Yield the tag and the frontier of every level of a tree whose histograms were sent."""
    said = {m.tag: m for _, m in case.transcript.said if isinstance(m, Divide)}
    sides = {(who, m.tag): m for who, m in case.transcript.heard if isinstance(m, Sides)}
    sides |= {(case.party, m.tag): m for _, m in case.transcript.said if isinstance(m, Sides)}
    frontier, depth = Frontier(sampled), 0
    while (tag := tag_for(tree, depth)) in said:
        yield tag, frontier
        level = level_of(said[tag], frontier)
        if level.last:
            return
        heard = []
        for party in np.unique(level.party[level.split]).tolist():
            rows = int(frontier.counts[level.party == party].sum())
            heard.append((party, flags_of(sides[case.plan.parties[party], tag].left, rows)))
        frontier.divide(level.split, joined_sides(heard, level, frontier), level.stays)
        depth += 1
