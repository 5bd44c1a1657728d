"""Histograms of all open nodes from what owners tell: the smaller sibling of two, its bins joined.

The larger one is the parent less the smaller one. What a joined bin of the smaller one has is spread over its
bins as the second derivatives of the parent are. Where no bins are joined that is exact.

The label holder knows which rows are in a node, and so what the bins of every column add up to. What they add
up to instead is noise, and each told bin has as much of it: that is taken off (`agreeing`). The noise of a
sum from the first bin on then falls again towards the last, where it would be largest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from colonnade.arrays import Floats, Words
from colonnade.trees.bins import BinGrid, Counts, Flags
from colonnade.trees.frontier import Frontier
from colonnade.trees.gradients import joined, parted
from colonnade.trees.told import told_in


@dataclass(frozen=True, eq=False)
class Told:
    """The sums of some nodes, [nodes, bins], and which bins end a joined one: others have no split."""

    sums: Words
    ends: Flags
    most: Flags  # the bins that have nearly all rows of their joined bin


def all_told(sums: Words) -> Told:
    """Return sums of which no bins are joined."""
    every = np.ones(sums.shape, dtype=bool)
    return Told(sums, every, every)


def beside(parts: Sequence[Told]) -> Told:
    """Return several parties' columns side by side."""
    names = ("sums", "ends", "most")
    return Told(*(np.concatenate([getattr(part, name) for part in parts], axis=1) for name in names))


def of_open_nodes(frontier: Frontier, before: Told, told: Told, grid: BinGrid) -> Told:
    """Return the histograms of all open nodes, from those of the level above and what was told of every
    slot."""
    pairs = frontier.pairs
    if pairs is None:
        return told
    parents = before.sums[pairs.parent]
    others = parents - _spread(parents, told, grid)
    sums = np.empty((frontier.open, grid.total), dtype=np.uint64)
    ends = np.empty(sums.shape, dtype=bool)
    for place, summed in ((pairs.place[0], pairs.left), (pairs.place[1], ~pairs.left)):
        small, large = summed & (place >= 0), ~summed & (place >= 0)
        sums[place[small]], ends[place[small]] = told.sums[small], told.ends[small]
        sums[place[large]], ends[place[large]] = others[large], before.ends[pairs.parent[large]]
    return Told(sums, ends, ends)


def agreeing(told: Told, totals: Words, grid: BinGrid) -> Told:
    """Return the sums of open nodes so that the told bins of every column add up to the node's total."""
    if not grid.columns:
        return told
    bins = told.ends.astype(np.int64)
    whole = np.add.reduceat(bins, grid.start, axis=1)
    up_to = np.cumsum(bins, axis=1) - (np.cumsum(whole, axis=1) - whole)[:, grid.column]
    found = []
    for part, total in zip(parted(told.sums, signed=True), parted(totals, signed=True), strict=True):
        off = total[:, None] - np.add.reduceat(part, grid.start, axis=1)
        each = (off / np.maximum(whole, 1))[:, grid.column]
        # whole numbers whose sum is `off`
        found.append(part + _rounded(each * up_to) - _rounded(each * (up_to - bins)))
    return Told(joined(*found), told.ends, told.most)


def _spread(parents: Words, told: Told, grid: BinGrid) -> Words:
    """Return what was told of joined bins, spread over their bins as the parents are."""
    place = told_in(told.ends, grid)
    weight = np.maximum(parted(parents, signed=True)[1], 0).astype(np.float64)
    flat = (place + np.arange(len(place))[:, None] * grid.total).ravel()
    whole = np.bincount(flat, weights=weight.ravel(), minlength=flat.size)[flat].reshape(place.shape)
    own = (place == np.arange(grid.total)).astype(np.float64)
    share = np.where(whole > 0, weight / np.maximum(whole, 1), own)
    in_one = np.bincount(flat, weights=told.most.ravel(), minlength=flat.size)[flat].reshape(place.shape) > 0
    share = np.where(in_one, told.most, share)
    g, h = (
        _rounded(np.take_along_axis(part, place, axis=1) * share) for part in parted(told.sums, signed=True)
    )
    return joined(g, h)


def _rounded(values: Floats) -> Counts:
    whole: Counts = np.rint(values).astype(np.int64)
    return whole
