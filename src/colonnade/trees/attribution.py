"""Shapley values of columns in boosted trees, path-dependent: TreeSHAP of Lundberg et al. (2020), exactly.

A coalition of columns is known of a row, the others are not. Where a split's column is not known the row goes
both ways, as the cover of the two children says (the sum of second derivatives of training rows there). A
leaf's part of a coalition's value is a product: of every column on the way to it, whether the row goes there
if the column is known, and the part of the cover that does if not. So Shapley values are sums over leaves of
coefficients of small polynomials. Rows differ at a leaf by which of its columns lead there alone, and each
such pattern is computed once.

Only sides are needed: on which side of every split the rows are, and which column a split is of.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import factorial

import numpy as np
from numpy.typing import NDArray

from colonnade.arrays import Floats
from colonnade.trees.bins import Counts, Flags
from colonnade.trees.tree import LEAF, Forest, Tree

TABLED = 10  # columns of a way up to which all patterns are tabled, and not those of the rows alone


@dataclass(frozen=True, eq=False)
class Way:
    """The way to one leaf: its score, and of every column on it the part of the cover and the rows that go
    there."""

    value: float
    columns: tuple[int, ...]
    parts: Floats
    goes: Flags  # [columns, rows]


def tree_shapley(
    forest: Forest, left: Mapping[int, Flags], columns: Mapping[int, Sequence[int]], rows: int, count: int
) -> tuple[Floats, Floats]:
    """Return the score where no column is known, [classes], and every column's value, [rows, columns,
    classes].

    `left` has the sides of all rows in every party's splits, `columns` the column of every split, one of
    `count`.
    """
    base = forest.base.astype(np.float64).copy()
    found = np.zeros((rows, count, len(base)))
    for tree, kind in zip(forest.trees, forest.kind.tolist(), strict=True):
        for way in ways(tree, left, columns, rows):
            base[kind] += way.value * float(way.parts.prod())
            if len(way.columns):
                found[:, way.columns, kind] += way.value * _of_rows(way)
    return base, found


def ways(
    tree: Tree, left: Mapping[int, Flags], columns: Mapping[int, Sequence[int]], rows: int
) -> Iterator[Way]:
    """Yield the way to every leaf of a tree."""
    start: dict[int, tuple[float, Flags]] = {}
    under_way = [(0, start)]
    while under_way:
        node, met = under_way.pop()
        party = int(tree.party[node])
        if party == LEAF:
            goes = np.array([each for _, each in met.values()]).reshape(len(met), rows)
            yield Way(float(tree.value[node]), tuple(met), np.array([part for part, _ in met.values()]), goes)
            continue
        split = int(tree.split[node])
        column, there = columns[party][split], left[party][split]
        children = int(tree.left[node]), int(tree.right[node])
        cover = np.maximum([tree.cover[child] for child in children], 0.0)
        parts = cover / cover.sum() if cover.sum() > 0 else np.array([0.5, 0.5])
        for child, part, goes in zip(children, parts.tolist(), (there, ~there), strict=True):
            before, so_far = met.get(column, (1.0, np.ones(rows, dtype=bool)))
            under_way.append((child, {**met, column: (before * part, so_far & goes)}))


def _of_rows(way: Way) -> Floats:
    """Return the Shapley values of a way's columns for a leaf of 1, [rows, columns]."""
    d = len(way.columns)
    codes: NDArray[np.int64] = (1 << np.arange(d)) @ way.goes.astype(np.int64)
    patterns = np.arange(2**d)
    if d > TABLED:
        patterns, codes = np.unique(codes, return_inverse=True)
    known = (patterns[:, None] >> np.arange(d) & 1).astype(np.float64)
    found: Floats = _of_patterns(known, way.parts)[codes]
    return found


def _of_patterns(known: Floats, parts: Floats) -> Floats:
    """Return the same of patterns: `known` is 1 where a column that is known leads to the leaf, else 0."""
    count, d = known.shape
    orders = np.array([factorial(k) * factorial(d - 1 - k) / factorial(d) for k in range(d)])
    found = np.empty((count, d))
    for i in range(d):
        polynomial = np.zeros((count, d))
        polynomial[:, 0] = 1.0
        for j in range(d):
            if j != i:
                raised = polynomial[:, :-1] * known[:, j, None]
                polynomial *= parts[j]
                polynomial[:, 1:] += raised
        found[:, i] = (known[:, i] - parts[i]) * (polynomial @ orders)
    return found


def numbers_of(columns: Counts, sources: Sequence[int]) -> list[int]:
    """Return the raw column of every split, from that of every prepared one."""
    return [sources[column] for column in columns.tolist()]
