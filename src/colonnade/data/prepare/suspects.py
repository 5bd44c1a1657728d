"""What should be looked at: columns that count or name the rows or give the label away, and odd labels.

Such columns and labels are kept, because only their owner can tell; a warning names them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from colonnade.arrays import Floats, Rows
from colonnade.data.prepare.categories import Counted
from colonnade.data.prepare.labels import Labels, category_names, guessed_task
from colonnade.data.read.recognise import numbers_of
from colonnade.data.table import Column, RawTable, count, some
from colonnade.job.writing import key_text, value_text

FEWEST = 30  # rows: among fewer, whole numbers that all differ are no surprise
COPY = 0.995  # of the label's spread that one column alone explains, or of pairs of rows it puts in order
MOST_CLASSES = 50
MOST_COLUMNS = 2000  # of a wide table only the first are looked at
SAMPLE = 5_000  # rows that are looked at first
FEW_VALUES = 5  # of a column or a label: among no more different ones none stands out
CODES = frozenset(
    ["zip", "zipcode", "plz", "postal", "postcode", "code", "codes", "sic", "naics", "icd", "fips"]
)


def like_ids(raw: RawTable, columns: Sequence[str]) -> Iterator[str]:
    """Yield a sentence for every number column with whole numbers that all differ."""
    if raw.sparse or raw.rows < FEWEST:
        return
    for c in columns[:MOST_COLUMNS]:
        if c not in raw.reading.dates and counts_rows(_numbers(raw, c)):
            yield f"column '{c}' has its own whole number in every row, like an id or an index; drop it if so"


def like_gaps(raw: RawTable, columns: Sequence[str]) -> Iterator[str]:
    """Yield a sentence for every number column whose least or greatest value looks like a gap.

    >>> rent = np.array([*range(1000, 3000, 20), *[99999999] * 5], dtype=float)
    >>> print(*like_gaps(RawTable("people", ("rent",), rent[:, None]), ["rent"]))
    column 'rent' has 99999999 in 5 rows, far from all others; for a gap say na_values.rent = [99999999]
    """
    if raw.sparse or raw.rows < FEWEST:
        return
    for c in columns[:MOST_COLUMNS]:
        numbers = _numbers(raw, c)
        values, rows = np.unique(numbers[~np.isnan(numbers)], return_counts=True)
        spikes = [k for k in (0, len(values) - 1) if len(values) > FEW_VALUES and _spike(values, rows, k)]
        if spikes:
            shown = [_as_written(values[k], c in raw.reading.dates) for k in spikes]
            where = count(int(rows[spikes].sum()), "row")
            yield (
                f"column '{c}' has {' and '.join(map(str, shown))} in {where}, far from all others; "
                f"for a gap say na_values.{key_text(c)} = {value_text(shown)}"
            )


def _spike(values: Floats, rows: Rows, k: int) -> bool:
    """Return whether an outermost value is in several rows and far from all values between both ends."""
    inner, value = values[1:-1], values[k]
    apart, spread = abs(value - inner[0 if k == 0 else -1]), inner[-1] - inner[0]
    nines = set(f"{abs(value):.0f}") == {"9"}
    alone = nines and value < -9 and inner[0] >= 0  # the only negative number
    return bool(rows[k] >= max(3, rows.sum() / 500) and (alone or apart > spread * (0.5 if nines else 3)))


def _as_written(value: float, date: bool) -> str | int | float:
    """Return a value as a job file would declare it."""
    if date:
        return str(np.datetime64(int(value), "D"))
    return int(value) if value == int(value) else value


def like_codes(raw: RawTable, columns: Sequence[str]) -> Iterator[str]:
    """Yield a sentence for all columns of whole numbers whose names say that they are codes.

    >>> zips = np.array([10115, 80331, 20095] * 20, dtype=float)
    >>> print(*like_codes(RawTable("people", ("homeZip",), zips[:, None]), ["homeZip"]))
    column 'homeZip' has whole numbers that may be codes; if so say categorical = ["homeZip"]
    """
    if raw.sparse or raw.rows < FEWEST:
        return
    found = []
    for c in columns[:MOST_COLUMNS]:
        words = set(re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", c).lower()))
        if not words & CODES or c in raw.reading.dates:
            continue
        values = _numbers(raw, c)
        values = values[~np.isnan(values)]
        whole = len(values) > 0 and np.array_equal(values, np.floor(values))
        if whole and 2 < len(np.unique(values)) <= len(values) / 2:
            found.append(c)
    if found:
        named = f"column '{found[0]}' has" if len(found) == 1 else f"columns {some(found)} have"
        yield f"{named} whole numbers that may be codes; if so say categorical = {value_text(found)}"


def before_a_job(raw: RawTable, columns: Sequence[str], label: Column | None) -> Iterator[str]:
    """Yield a sentence for all in a file that a job should say: gaps, codes and counts written as numbers."""
    numbers = [] if raw.sparse else [c for c in columns if raw.column(c).dtype != object]
    yield from like_gaps(raw, numbers)
    yield from like_codes(raw, numbers)
    if label is not None and label.dtype != object:
        label = label[~np.isnan(label.astype(np.float64))]
        if len(label) and guessed_task(label, "the label") == "multiclass":
            yield from like_counts(Labels("multiclass", category_names(label)), label)


def counts_rows(values: Column) -> bool:
    """Return whether these are whole numbers that all differ."""
    if values.dtype == object or not np.array_equal(values, np.floor(values)):  # NaN is not equal either
        return False
    return len(np.unique(values)) == len(values)


def like_counts(labels: Labels, y: Column) -> Iterator[str]:
    """Yield a sentence where classes that nobody declared are whole numbers from 0 or 1 on.

    >>> [sentence[:60] for sentence in like_counts(Labels("multiclass", tuple("012345")), np.arange(6.0))]
    ['the label has whole numbers from 0 to 5, taken for 6 classes']
    """
    if labels.task != "multiclass" or y.dtype == object or len(labels.classes) <= FEW_VALUES:
        return
    values = np.unique(y.astype(np.float64))
    if values[0] in (0, 1) and np.array_equal(values, values[0] + np.arange(len(values))):
        yield (
            f"the label has whole numbers from {values[0]:.0f} to {values[-1]:.0f}, taken for {len(values)} "
            'classes; in [train] say loss = "poisson" if it counts something, "squared" if it is a number, '
            '"softmax" if it is a class'
        )


def odd_labels(labels: Labels, y: Column) -> Iterator[str]:
    """Yield a sentence for classes that differ in case alone, and one for classes of a single row.

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
    """Yield a sentence for every column of categories of which some differ in case or blanks alone.

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


def like_labels(raw: RawTable, numbers: Sequence[str], categories: Collection[str]) -> Iterator[str]:
    """Yield a sentence for every column that tells the label almost alone, where labels are held as
    numbers."""
    if raw.y is None or raw.sparse or raw.rows < FEWEST or raw.y.dtype == object:
        return
    y = raw.y.astype(np.float64)
    classes, step = np.unique(y), -(-raw.rows // SAMPLE)
    some_rows = np.argsort(y, kind="stable")[::step]  # of every label its part
    for c in (*numbers, *categories)[:MOST_COLUMNS]:
        values = _words(raw.column(c)) if c in categories else _numbers(raw, c)
        ordered = c not in categories
        # a copy is one among some of the rows, too
        seems = _explains(values[some_rows], y[some_rows], classes, ordered=ordered)
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
    known = np.unique(values)
    if len(classes) <= MOST_CLASSES and (not ordered or len(known) <= MOST_CLASSES):
        table = np.zeros((len(known), len(classes)))
        np.add.at(table, (np.searchsorted(known, values), np.searchsorted(classes, y)), 1)
        return _told_by_others(table)
    return bool(ordered and abs(np.corrcoef(values, y)[0, 1]) > COPY)


def _told_by_others(table: Floats) -> bool:
    """Return whether the other rows of a value tell nearly every row's label; `table` counts rows by value
    and label.

    A value of one row tells nothing, so a name that every row has for itself is no copy of the label.
    """
    table = table[table.sum(axis=1) > 1]
    rows, base = table.sum(), table.sum(axis=0).max(initial=0)
    if rows < FEWEST or rows == base:
        return False
    told = 0.0
    for label in range(table.shape[1]):
        others = table.copy()
        others[:, label] -= 1
        most = np.delete(others, label, axis=1).max(axis=1, initial=0)
        told += table[others[:, label] > most, label].sum()
    return bool(told - base > COPY * (rows - base))


def _order(values: Floats, positive: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> float:
    """Return the part of pairs of rows with different labels that the values put in order, in either
    direction."""
    _, place, rows = np.unique(values, return_inverse=True, return_counts=True)
    ranks, n = (np.cumsum(rows) - (rows - 1) / 2)[place], int(positive.sum())  # ties share their middle rank
    area = (ranks[positive].sum() - n * (n + 1) / 2) / (n * (len(values) - n))
    return float(max(area, 1 - area))


def _words(column: Column) -> Floats:
    """Return the values of a column of categories as the numbers of different ones, rare ones among them."""
    rows = column.tolist()
    place = {value: float(k) for k, value in enumerate(dict.fromkeys(rows))}
    return np.fromiter(map(place.__getitem__, rows), dtype=np.float64, count=len(rows))


def _numbers(raw: RawTable, column: str) -> Floats:
    """Return a number column, also if its numbers are text."""
    values = raw.column(column)
    parsed = numbers_of(values) if values.dtype == object else values
    return np.asarray(parsed, dtype=np.float64)
