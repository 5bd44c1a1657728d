"""What should be looked at: columns that count or name the rows or give the label away, and odd labels.

Such columns and labels are kept, because only their owner can tell; a warning names them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from colonnade.arrays import Floats
from colonnade.data.prepare.categories import Counted, codes_in
from colonnade.data.prepare.labels import Labels
from colonnade.data.read.recognise import numbers_of
from colonnade.data.table import Column, RawTable, some

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
        if c not in raw.reading.dates and counts_rows(_numbers(raw, c)):
            yield f"column '{c}' has its own whole number in every row, like an id or an index; drop it if so"


def counts_rows(values: Column) -> bool:
    """Return whether these are whole numbers that all differ."""
    if values.dtype == object or not np.array_equal(values, np.floor(values)):  # NaN is not equal either
        return False
    return len(np.unique(values)) == len(values)


def odd_labels(labels: Labels, y: Column) -> Iterator[str]:
    """A sentence for classes that differ in case alone, and one for classes of a single row.

    >>> given = np.array([*["yes", "no"] * 20, "Yes", "yess"], dtype=object)
    >>> for sentence in odd_labels(Labels.fit(given, "multiclass"), given):
    ...     print(sentence)
    labels Yes, yes differ in case alone; write them alike if they mean the same
    label yess is in one row of 42; correct it if it is a typing error
    """
    if labels.task == "regression" or len(y) < FEWEST:
        return
    counted = Counted.of(y)
    twice = _alike(counted.names)
    for names in twice:
        yield f"labels {some(names)} differ in case alone; write them alike if they mean the same"
    told = {name for names in twice for name in names}
    alone = [n for n, rows in zip(counted.names, counted.rows, strict=True) if rows == 1 and n not in told]
    if len(alone) == 1:
        yield f"label {alone[0]} is in one row of {len(y):,}; correct it if it is a typing error"
    elif alone:
        each = "are in one row each; correct them if they are typing errors"
        yield f"labels {some(alone)} {each}"


def odd_spellings(categories: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    """A sentence for every column of categories of which some differ in case or blanks alone.

    >>> list(odd_spellings({"town": ("Rom", "ULM", "Ulm")}))
    ["column 'town' has values that differ in case alone (ULM, Ulm); write them alike if they mean the same"]
    """
    for column, names in list(categories.items())[:MOST_COLUMNS]:
        if twice := _alike(names):
            shown = some([name for each in twice for name in each])
            yield (
                f"column '{column}' has values that differ in case alone ({shown}); write them alike if they "
                "mean the same"
            )


def _alike(names: Sequence[str]) -> list[list[str]]:
    """Return the names that differ in case or blanks alone, together."""
    alike: dict[str, list[str]] = {}
    for name in names:
        alike.setdefault(" ".join(name.casefold().split()), []).append(name)
    return [each for each in alike.values() if len(each) > 1]


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
    """Return whether a column's values tell (nearly) every row's label."""
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
    """Return the part of pairs of rows with different labels that the values put in order, whichever way
    round."""
    _, place, rows = np.unique(values, return_inverse=True, return_counts=True)
    ranks, n = (np.cumsum(rows) - (rows - 1) / 2)[place], int(positive.sum())  # ties share their middle rank
    area = (ranks[positive].sum() - n * (n + 1) / 2) / (n * (len(values) - n))
    return float(max(area, 1 - area))


def _numbers(raw: RawTable, column: str) -> Floats:
    """Return a number column, also if its numbers are text."""
    values = raw.column(column)
    parsed = numbers_of(values) if values.dtype == object else values
    return np.asarray(parsed, dtype=np.float64)
