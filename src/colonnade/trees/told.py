"""What an owner tells of its histograms: no nodes of few rows, no bins of few rows, and no exact sum.

Who knows the words of all rows finds the row that made the sum of a bin with one row, and the two of a bin
with two. So an owner of columns tells less than it has:

- of a node with fewer than `node_rows` rows nothing of a column but its total, which is known anyway;
- in other nodes it joins neighbouring bins until each has `bin_rows` rows;
- to every sum it adds noise about as large as `noise` times the largest word of a row.

The larger of two siblings is never told: it is estimated as the parent less the smaller one, which is spread
over joined bins as the parent is (`estimate`). That leaves choices of splits nearly as good, and leaves are
scored by their own rows, not by histograms (`grow`).

Who knows what a node has in all needs no sum of a column's first joined bin: what would be told of it follows
from the others and the noise of all of them.

Noise follows from the owner's own columns, so that a run can be repeated, and repeating it tells nothing new.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from colonnade.arrays import Words
from colonnade.job import Trees
from colonnade.trees.bins import BinGrid, Codes, Counts, Flags
from colonnade.trees.gradients import joined, most_of

NEARLY = 0.8  # the part of a joined bin's rows from which one bin is said to have them


@dataclass(frozen=True)
class Floors:
    """The fewest rows of a bin and of a node of which sums are told, and the noise of a sum."""

    bin_rows: int
    node_rows: int
    noise: float  # its standard deviation, in whole numbers

    @staticmethod
    def of(rules: Trees) -> Floors | None:
        """Return the floors of a job; None where histograms are told as they are."""
        if not rules.bits:
            return None
        return Floors(rules.bin_rows, rules.node_rows, rules.noise * most_of(rules.bits))


def standing(counts: Counts, grid: BinGrid, floors: Floors) -> Flags:
    """Return which bins end a joined bin, from the rows of every slot and bin, [slots, bins].

    The last ordered bin of a column always does. Gaps stand alone or are told with the last ordered bin.
    Bins of categories stand alone or are told with the first.
    """
    start, ordered, shape = grid.start, grid.ordered, (len(counts), grid.columns)
    ends = np.zeros(counts.shape, dtype=bool)
    running, last = (
        np.zeros(shape, dtype=np.int64),
        np.full(shape, -1),
    )  # the last bin that ended a joined one
    for place in range(int(ordered.max(initial=0))):
        columns = np.flatnonzero(ordered > place)
        bins = (start + place)[columns]
        running[:, columns] += counts[:, bins]
        full = running[:, columns] >= floors.bin_rows
        ends[:, bins] = full
        running[:, columns] *= ~full
        last[:, columns] = np.where(full, bins, last[:, columns])
    final, gaps = start + ordered - 1, (start + ordered)[grid.gaps]
    # what is left at the end of a column is too little for a bin of its own: it joins the one before
    few = (last >= 0) & (last != final)
    ends[np.nonzero(few)[0], last[few]] = False
    ends[:, gaps] = (counts[:, gaps] >= floors.bin_rows) & (last >= 0)[:, grid.gaps]
    if grid.columns:
        ends[counts[:, : grid.width[0]].sum(axis=1) < floors.node_rows] = False
    ends[:, final] = True
    for column in np.flatnonzero(grid.sets).tolist():
        here = slice(int(start[column]), int(start[column] + ordered[column]))
        ends[:, here] = _sets_standing(counts[:, here], floors)
    return ends


def _sets_standing(counts: Counts, floors: Floors) -> Flags:
    """Return which bins of a column of categories stand alone; all others are told in the first."""
    alone = counts >= floors.bin_rows
    alone[:, 0] = False
    few = np.where(alone, 0, counts).sum(axis=1) < floors.bin_rows
    smallest = np.where(alone, counts, np.iinfo(np.int64).max).argmin(axis=1)
    alone[few, smallest[few]] = False
    alone[counts.sum(axis=1) < floors.node_rows] = False
    alone[:, 0] = True
    return alone


def told_in(ends: Flags, grid: BinGrid) -> Counts:
    """Return the bin in whose place every bin is told, [slots, bins]: the next that ends a joined one."""
    places = np.where(ends, np.arange(grid.total), grid.total)
    found = np.minimum.accumulate(places[:, ::-1], axis=1)[:, ::-1].copy()
    gaps = (grid.start + grid.ordered)[grid.gaps]
    found[:, gaps] = np.where(ends[:, gaps], gaps, gaps - 1)
    sets = np.flatnonzero(grid.sets[grid.column])
    found[:, sets] = np.where(ends[:, sets], sets, grid.start[grid.column[sets]])
    return found


def mostly(counts: Counts, place: Counts) -> Flags:
    """Return the bins that have nearly all rows of their joined bin, [slots, bins]."""
    flat = (place + np.arange(len(place))[:, None] * place.shape[1]).ravel()
    whole = np.bincount(flat, weights=counts.ravel(), minlength=flat.size)[flat].reshape(place.shape)
    most: Flags = counts > NEARLY * whole
    return most


def added_up(sums: Words, place: Counts) -> Words:
    """Return the sums of joined bins, each in its place, and 0 in all others."""
    found = np.zeros(sums.size, dtype=np.uint64)
    flat = place + np.arange(len(sums))[:, None] * sums.shape[1]
    np.add.at(found, flat.ravel(), sums.ravel())
    return found.reshape(sums.shape)


def first_told(place: Counts, grid: BinGrid) -> Counts:
    """Return where the first joined bin of every column is told, [slots, columns]; its first bin is in it."""
    found: Counts = place[:, grid.start]
    return found


def without(ends: Flags, first: Counts) -> Flags:
    """Return which bins end a joined one that is not the first of its column."""
    found = ends.copy()
    np.put_along_axis(found, first, False, axis=1)
    return found


def by_column(words: Words, grid: BinGrid) -> Words:
    """Return the sums of all bins of every column, [slots, columns]."""
    found: Words = np.add.reduceat(words, grid.start, axis=1)
    return found


def with_first(told: Words, first: Counts, whole: Words, grid: BinGrid) -> Words:
    """Return told sums with those of first joined bins, in whose places the noise of their columns stands.

    `whole` is what every slot has in all.

    >>> grid = BinGrid(np.array([3]), np.array([False]), np.array([0]))
    >>> told, whole = np.array([[7, 20, 30]], dtype=np.uint64), np.array([100], dtype=np.uint64)
    >>> with_first(told, np.array([[0]]), whole, grid)
    array([[57, 20, 30]], dtype=uint64)
    """
    noise, found = np.take_along_axis(told, first, axis=1), told.copy()
    np.put_along_axis(found, first, whole[:, None] + noise + noise - by_column(told, grid), axis=1)
    return found


class CoinNoise:
    """Whole numbers around 0, as many heads of as many coins less their mean; alike for the same columns."""

    def __init__(self, codes: Codes, seed: int, deviation: float) -> None:
        self.coins = 64 * round(4 * deviation**2 / 64)
        digest = hashlib.blake2b(str((seed, codes.shape)).encode())
        for column in codes:
            digest.update(np.ascontiguousarray(column).data)
        self._key = digest.digest()

    def words(self, tree: int, depth: int, count: int) -> Words:
        """Return noise for as many words of g and h."""
        if not self.coins or not count:
            return np.zeros(count, dtype=np.uint64)
        made = hashlib.shake_256(self._key + tree.to_bytes(8, "big") + depth.to_bytes(8, "big"))
        coins = np.frombuffer(made.digest(2 * count * self.coins // 8), dtype=np.uint64)
        heads = np.bitwise_count(coins).reshape(2, count, -1).sum(axis=2, dtype=np.int64)
        g, h = heads - self.coins // 2
        return joined(g, h)
