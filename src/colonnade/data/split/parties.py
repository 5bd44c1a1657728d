"""Several parties' columns in one process: what the Python front trains on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from colonnade.data.prepare import learn
from colonnade.data.read.frames import FrameColumns, columns_of
from colonnade.data.split.assign import label_holders
from colonnade.data.split.split import Split, check_holders, split_by_count, split_by_name
from colonnade.data.table import RawTable
from colonnade.errors import DataError, DataWarning, warn


@dataclass(frozen=True, eq=False)
class Parties:
    """Every party's columns as they were given, for a federation in one process.

    Only the active parties' tables carry y. `parties[rows]` has some rows of all tables, so that
    scikit-learn's cross-validation can split it.
    """

    tables: dict[str, RawTable]
    active: tuple[str, ...]
    columns: Split
    categorical: tuple[str, ...] = ()  # columns that are categories though they may look like numbers

    @property
    def rows(self) -> int:
        """The number of rows, the same at every party."""
        return next(iter(self.tables.values())).rows

    @property
    def shape(self) -> tuple[int, int]:
        """Rows, and columns of all parties together."""
        return self.rows, sum(len(table.columns) for table in self.tables.values())

    @property
    def y(self) -> NDArray[Any] | None:
        """The labels as they were given, or None if nobody holds any."""
        return self.tables[self.active[0]].y

    @property
    def dates(self) -> dict[str, str]:
        """The columns of dates, by the pattern that they were written in."""
        return {c: how for table in self.tables.values() for c, how in table.reading.dates.items()}

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, rows: Any) -> Parties:
        """Return some rows: a number, a slice, a mask or places, as for a NumPy array."""
        chosen = rows[0] if isinstance(rows, tuple) else rows  # an array's [rows, ...] means the same
        picked = np.atleast_1d(np.arange(self.rows)[chosen])
        return replace(self, tables={party: table.take(picked) for party, table in self.tables.items()})


def split_columns(
    X: Any,
    y: Any = None,
    parties: int = 8,
    active: int | Sequence[str] | None = None,
    seed: int = 0,
    like: Parties | None = None,
    columns: Mapping[str, Sequence[str | int]] | None = None,
) -> Parties:
    """Split one data set's columns over parties; the first `active` of them (3, if not told) hold the label.

    X is an array, a sparse matrix or a data frame (pandas, polars, pyarrow) with numbers, text, dates and
    gaps. `columns` says who holds what by name ("x0", "x1", ... unless X is a data frame) or by place.
    `active` may also name those that hold the label. `like` repeats an earlier split, for test data.

    >>> parties = split_columns([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], [1, -1], parties=3, active=1)
    >>> [(name, table.values.ravel().tolist(), table.y is None) for name, table in parties.tables.items()]
    [('party-0', [3.0, 6.0], False), ('party-1', [1.0, 4.0], True), ('party-2', [2.0, 5.0], True)]
    >>> len(parties[[True, False]])
    1
    """
    dates = None if like is None else like.dates
    found = columns_of(X, dates=dates)
    if like is not None:
        split = split_by_name(found.raw.columns, {p: table.columns for p, table in like.tables.items()})
        return dealt(found, split, like.active, labels_of(y, found.raw.rows))
    split = dealer(found, parties, columns, seed)
    count = min(3, len(split)) if active is None else active
    holders = label_holders(tuple(split), count if isinstance(count, int) else list(count))
    return dealt(found, split, holders, labels_of(y, found.raw.rows))


def dealer(
    found: FrameColumns, parties: int, columns: Mapping[str, Sequence[str | int]] | None, seed: int
) -> Split:
    """Return who holds which columns: as `columns` says by name or place, or about as many each by chance."""
    names = found.raw.columns
    if columns is None:
        return split_by_count(names, parties, seed, learn.widths(found.raw, found.categorical))
    if not isinstance(columns, Mapping):
        raise DataError(f"columns = {_short(columns)}: say who holds which, {EXAMPLE}")
    for party, held in columns.items():
        if isinstance(held, str) or not isinstance(held, Iterable):
            raise DataError(f"columns: {party!r} holds {_short(held)}; give a list, {EXAMPLE}")
    held_by = {str(p): [_name(c, names) for c in held] for p, held in columns.items()}
    split = split_by_name(names, held_by, partly=True)
    if left := sorted(set(range(len(names))) - {place for places in split.values() for place in places}):
        which = ", ".join(names[j] for j in left[:MOST_NAMED]) + (", ..." if len(left) > MOST_NAMED else "")
        warn(f"columns of X that nobody holds are left out: {which}", DataWarning)
    return split


EXAMPLE = 'as in {"bank": ["age", "income"], "shop": ["visits"]}'
MOST_NAMED = 8


def _short(value: object) -> str:
    """Return a value as Python writes it, or its beginning."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def dealt(found: FrameColumns, split: Split, holders: tuple[str, ...], y: NDArray[Any] | None) -> Parties:
    """Return every party's own columns, and the labels at those that hold them."""
    check_holders({party: len(places) for party, places in split.items()}, holders[0])
    tables = {
        party: replace(found.raw.select(places), name=party, y=y if party in holders else None)
        for party, places in split.items()
    }
    return Parties(tables, holders, split, found.categorical)


def labels_of(y: Any, rows: int) -> NDArray[Any] | None:
    """Return labels as an array of their own values: numbers, all of them finite, or text."""
    if y is None:
        return None
    values = np.asarray(y)
    if values.shape != (rows,):
        raise DataError(f"y has shape {values.shape} where X has {rows} rows")
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise DataError(f"y: the label of row {int((~np.isfinite(values)).argmax()) + 1} is NaN or infinite")
    if values.dtype == object and not all(isinstance(v, int | float | np.number) for v in values):
        return values.astype(str).astype(object)
    return values


def _name(column: str | int, names: Sequence[str]) -> str:
    """Return a column's name, also where its place is given."""
    if isinstance(column, str):
        return column
    if not isinstance(column, Integral):
        raise DataError(f"columns: {_short(column)} is neither a column's name nor its place")
    column = int(column)
    if not -len(names) <= column < len(names):
        raise DataError(f"column {column}: there are {len(names)} columns, the first is 0")
    return names[column]
