"""Columns that should be looked at: those that count or name the rows, and those that give the label away.

Such a column is kept, because only its owner can tell; a warning names it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from colonnade.arrays import Floats
from colonnade.data.categories import codes_in
from colonnade.data.recognise import numbers_of
from colonnade.data.table import RawTable

FEWEST = 30  # rows: among fewer, whole numbers that all differ are no surprise
COPY = 0.995  # of the label's spread that one column alone explains, or of pairs of rows it puts in order
MOST_CLASSES = 50
MOST_COLUMNS = 2000  # of a wide table only the first are looked at
SAMPLE = 20_000  # rows that are looked at first


def like_ids(raw: RawTable, columns: Sequence[str]) -> Iterator[str]:
    """A sentence for every number column with whole numbers that all differ."""
    if raw.sparse or raw.rows < FEWEST:
        return
    for c in columns[:MOST_COLUMNS]:
        values = _numbers(raw, c)
        if c in raw.reading.dates or not np.array_equal(values, np.floor(values)):  # NaN is not equal either
            continue
        if len(np.unique(values)) == len(values):
            yield f"column '{c}' has its own whole number in every row, like an id or an index; drop it if so"


def like_labels(
    raw: RawTable, numbers: Sequence[str], categories: Mapping[str, tuple[str, ...]]
) -> Iterator[str]:
    """A sentence for every column that tells the label almost alone, where labels are held as numbers."""
    if raw.y is None or raw.sparse or raw.rows < FEWEST or raw.y.dtype == object:
        return
    y = raw.y.astype(np.float64)
    classes, step = np.unique(y), -(-raw.rows // SAMPLE)
    for c in (*numbers, *categories)[:MOST_COLUMNS]:
        values = (
            codes_in(raw.column(c), categories[c]).astype(np.float64) if c in categories else _numbers(raw, c)
        )
        ordered = c not in categories
        # a copy is one among some of the rows, too
        seems = _explains(values[::step], y[::step], classes, ordered=ordered)
        if seems and (step == 1 or _explains(values, y, classes, ordered=ordered)):
            yield f"column '{c}' tells the label almost by itself; drop it if it is a copy of it"


def _explains(values: Floats, y: Floats, classes: Floats, *, ordered: bool) -> bool:
    """Whether a column's values tell (nearly) every row's label."""
    there = ~np.isnan(values)
    values, y = values[there], y[there]
    if len(values) < FEWEST or len(np.unique(values)) < 2 or len(np.unique(y)) < 2:
        return False
    if len(classes) == 2 and ordered:
        return _order(values, y > classes.min()) > COPY
    if len(classes) <= MOST_CLASSES and len(np.unique(values)) <= MOST_CLASSES:
        # the share of rows that have the commonest label of their value
        table = np.zeros((len(np.unique(values)), len(classes)))
        np.add.at(table, (np.searchsorted(np.unique(values), values), np.searchsorted(classes, y)), 1)
        base, told = table.sum(axis=0).max(), table.max(axis=1).sum()
        return bool(told - base > COPY * (len(y) - base))
    return bool(ordered and abs(np.corrcoef(values, y)[0, 1]) > COPY)


def _order(values: Floats, positive: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> float:
    """The part of pairs of rows with different labels that the values put in order, whichever way round."""
    _, place, rows = np.unique(values, return_inverse=True, return_counts=True)
    ranks, n = (np.cumsum(rows) - (rows - 1) / 2)[place], int(positive.sum())  # ties share their middle rank
    area = (ranks[positive].sum() - n * (n + 1) / 2) / (n * (len(values) - n))
    return float(max(area, 1 - area))


def _numbers(raw: RawTable, column: str) -> Floats:
    """A number column, also if its numbers are text."""
    values = raw.column(column)
    parsed = numbers_of(values) if values.dtype == object else values
    return np.asarray(parsed, dtype=np.float64)
