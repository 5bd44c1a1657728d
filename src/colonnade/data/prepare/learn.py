"""Learning a `Preparation` from training rows: column by column, with a sentence for all that was done.

A sentence names columns and counts of the party whose columns they are, and nothing of anybody else's.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.sparse import csr_array

from colonnade.arrays import Floats, Matrix
from colonnade.data.prepare import scaling
from colonnade.data.prepare.categories import MISSING, OTHER, Counted
from colonnade.data.prepare.prepare import Missing, Numbers, Preparation, Rare, refuse_gaps, refuse_missing
from colonnade.data.prepare.scaling import Scale, Tails
from colonnade.data.prepare.suspects import (
    counts_rows,
    like_codes,
    like_gaps,
    like_ids,
    like_labels,
    odd_spellings,
)
from colonnade.data.table import RawTable, count, some
from colonnade.job.writing import text


@dataclass
class _Findings:
    """What is learnt on the way, and told at the end."""

    categories: dict[str, tuple[str, ...]] = field(default_factory=dict)
    numbers: list[str] = field(default_factory=list)
    gaps: dict[str, int] = field(default_factory=dict)  # of number columns
    constant: set[str] = field(default_factory=set)  # asked for every column, of which there may be many
    joined: dict[str, int] = field(default_factory=dict)  # how many rare values became one
    ids: dict[str, int] = field(default_factory=dict)  # text columns left out, and their different values
    index: bool = False  # a column that numbers the rows was left out
    outliers: dict[str, int] = field(default_factory=dict)
    tails: Tails = "cap"  # what became of them


def learn(
    raw: RawTable,
    scale: Scale | float,
    tails: Tails,
    categorical: tuple[str, ...],
    missing: Missing,
    rare: Rare,
    intercept: bool,
) -> Preparation:
    """Return the preparation of these training rows; the options were checked."""
    found = _Findings()
    _sort_out(found, raw, categorical, missing, rare)
    numbers = _learn_numbers(found, raw, scale, tails, missing)
    drop = scale == "auto"
    if drop:
        found.categories = {c: v for c, v in found.categories.items() if c not in found.constant}
    marked = found.gaps if missing == "auto" else {}
    if raw.columns and not (numbers.names or found.categories or marked):
        numbers = _column_of_zeros(found, raw, numbers)
    return Preparation(
        columns=raw.columns,
        missing=missing,
        intercept=intercept,
        sparse=raw.sparse,
        numbers=numbers,
        categories=found.categories,
        gaps=tuple(c for c in raw.columns if c in found.gaps) if missing == "auto" else (),
        constant=tuple(c for c in raw.columns if c in found.constant),
        dates={c: raw.reading.dates[c] for c in numbers.names if c in raw.reading.dates},
        decimal=raw.reading.decimal,
        sentences={
            "done": (*raw.reading.said, *_sentences(found, raw, scale, missing)),
            "warnings": (*raw.reading.warned, *_warnings(found, raw)),
        },
    )


def widths(raw: RawTable, categorical: tuple[str, ...] = (), rare: Rare = "auto") -> tuple[int, ...]:
    """Return how many columns each column becomes when it is prepared; a column that is left out counts as
    one.

    >>> towns = np.array(["Ulm", "Bonn"], dtype=object)
    >>> widths(RawTable("people", ("age", "town"), (np.array([31.0, 42.0]), towns)))
    (1, 2)
    """
    if raw.sparse or not (categorical or isinstance(raw.values, tuple)):
        return (1,) * len(raw.columns)
    found = _Findings()
    _sort_out(found, raw, categorical, "auto", rare)
    return tuple(max(1, len(found.categories.get(c, ()))) for c in raw.columns)


def _sort_out(
    found: _Findings, raw: RawTable, categorical: tuple[str, ...], missing: Missing, rare: Rare
) -> None:
    """Decide which columns are numbers, which become categories, and which are neither."""
    for c in raw.columns:
        plain = raw.sparse or not (c in categorical or c == "" or isinstance(raw.values, tuple))
        values = None if plain else raw.column(c)
        if values is None or (c not in categorical and values.dtype != object):
            if c == "" and values is not None and counts_rows(values):  # what tables are saved with
                found.index = True
            else:
                found.numbers.append(c)
            continue
        counted = Counted.of(values)
        if c not in categorical and counted.are_ids():
            found.ids[c] = len(counted.names)
            continue
        if missing == "error":
            refuse_missing(raw, c)
        few = set(counted.rare(rare))
        names = tuple(name for name in counted.names if name not in few)
        names += (OTHER,) if few else ()
        names += (MISSING,) if counted.gaps and missing == "auto" else ()
        if few:
            found.joined[c] = len(few)
        if len(names) < 2:
            found.constant.add(c)
        found.categories[c] = names


def _learn_numbers(
    found: _Findings, raw: RawTable, scale: Scale | float, tails: Tails, missing: Missing
) -> Numbers:
    """Return what fills the gaps of number columns, what becomes of their outliers, and what scales them."""
    names = found.numbers
    X = scaling.numbers(raw, names, raw.reading.dates)
    if missing == "error":
        refuse_gaps(raw, names, X)
    found.gaps = _gaps(X, names) if missing in ("auto", "keep") else {}
    low = high = bend = np.zeros(0)
    if scale == "auto" and tails == "keep" and not isinstance(X, csr_array):
        low, high = scaling.far(X)
    elif scale == "auto" and not isinstance(X, csr_array):
        low, high, apart = scaling.caps(X, scaling.BENT_TAIL if tails == "bend" else scaling.TAIL)
        bend = apart if tails == "bend" else bend
        beyond = scaling.outliers(X, low, high)
        found.outliers = {c: int(n) for c, n in zip(names, beyond, strict=True) if n}
        found.tails = tails
        scaling.tame(X, low, high, apart if tails == "bend" else None)
    fill = np.zeros(len(names)) if missing in ("error", "zero") else scaling.means(X)
    scaling.fill_gaps(X, fill)
    how: Scale | float = scale
    if scale == "auto":
        how = "maxabs" if raw.sparse else "zscore"
    shift, divisor, flat = scaling.statistics(X, how, raw, names)
    kept = found.gaps if missing == "keep" else {}  # there a gap is a value, too
    found.constant |= {c for c, one_value in zip(names, flat, strict=True) if one_value and c not in kept}
    keep = ~flat if scale == "auto" else np.ones(len(names), dtype=bool)
    return Numbers(
        tuple(c for c, kept in zip(names, keep, strict=True) if kept),
        *(_plain(part, keep) for part in (fill, shift, divisor)),
        *(_plain(part, keep) for part in (low, high, bend) if len(part)),
    )


def _column_of_zeros(found: _Findings, raw: RawTable, numbers: Numbers) -> Numbers:
    """Keep the first column as zeros where nothing is left: every party takes part in every sum."""
    first = raw.columns[0]
    found.constant.add(first)
    if raw.sparse:
        return Numbers((first,), (0.0,), (0.0,), (1.0,))
    found.categories[first] = (OTHER,)
    return numbers


def _plain(values: Floats, keep: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> tuple[float, ...]:
    return tuple(values[keep].tolist())


def _gaps(X: Matrix, names: list[str]) -> dict[str, int]:
    """Return the number columns with gaps, and how many; not those of a sparse file, nor those without any
    value."""
    if isinstance(X, csr_array):
        return {}
    gaps = np.isnan(X).sum(axis=0)
    return {c: int(n) for c, n in zip(names, gaps, strict=True) if 0 < n < len(X)}


def _sentences(found: _Findings, raw: RawTable, scale: Scale | float, missing: Missing) -> list[str]:
    """Return what was done, in words."""
    said = []
    numbers = [c for c in found.numbers if c not in found.constant]
    if scale == "auto" and numbers and raw.sparse:
        said.append(f"{count(len(numbers), 'sparse column')} divided by the largest value")
    elif scale == "auto" and numbers:
        said.append(f"{count(len(numbers), 'number column')} scaled to mean 0 and deviation 1")
    if found.outliers:
        done = "capped" if found.tails == "cap" else "drawn nearer"
        said.append(f"{count(sum(found.outliers.values()), 'outlier')} {done} in {_counted(found.outliers)}")
    if found.gaps:
        marked = "filled with the mean and marked in a column of their own" if missing == "auto" else "kept"
        said.append(f"{count(sum(found.gaps.values()), 'gap')} {marked}: {_counted(found.gaps)}")
    made = {c: len(names) for c, names in found.categories.items() if c not in found.constant}
    if made and missing == "keep":
        said.append(f"{count(len(made), 'column')} of categories numbered: {_counted(made)}")
    elif made:
        said.append(
            f"{count(len(made), 'column')} of categories became {count(sum(made.values()), 'column')}: "
            f"{_counted(made)}"
        )
    if found.joined:
        said.append(
            f"{count(sum(found.joined.values()), 'rare value')} joined into {OTHER}: {_counted(found.joined)}"
        )
    if found.constant:
        what = "left out" if scale == "auto" else "set to 0"
        said.append(f"{count(len(found.constant), 'constant column')} {what}: {some(sorted(found.constant))}")
    if found.ids:
        said.append(f"{count(len(found.ids), 'text column')} left out: {some(found.ids)}")
    if found.index:
        said.append("1 column without a name, which numbers the rows, left out")
    return said


def _warnings(found: _Findings, raw: RawTable) -> list[str]:
    """Return what the owner should look at."""
    left_out = [_left_out(c, different, raw) for c, different in found.ids.items()]
    numbers = [c for c in found.numbers if c not in found.constant]
    return [
        *left_out,
        *odd_spellings(found.categories),
        *like_ids(raw, numbers),
        *like_gaps(raw, numbers),
        *like_codes(raw, numbers),
        *like_labels(raw, numbers, found.categories),
    ]


def _left_out(column: str, different: int, raw: RawTable) -> str:
    """Return why a text column is left out, and how to keep it."""
    named = f"column '{column}'"
    if any(said.startswith(named) for said in raw.reading.warned):  # it was told why it is text
        return f"{named} is left out: as text it has {different:,} different values"
    return (
        f"{named} has {different:,} different texts in {raw.rows:,} rows, like an id or free text: it is "
        f"left out; to keep it as categories say categorical = [{text(column)}]"
    )


def _counted(columns: dict[str, int]) -> str:
    """Return columns with a number each, the first few."""
    return some(f"{c} ({n:,})" for c, n in columns.items())
