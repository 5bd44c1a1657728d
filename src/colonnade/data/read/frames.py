"""Columns that are in memory already: arrays, sparse matrices and data frames become what a file becomes.

Frames (pandas, polars, pyarrow, and all else that speaks Arrow) go through the same conversion as Parquet
files; none of these libraries is needed for that. A column that its frame calls categorical stays so, also
if its values are numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from colonnade.arrays import Matrix
from colonnade.data.read.dialect import Dialect
from colonnade.data.read.formats import column_of
from colonnade.data.read.recognise import Recognised, recognise
from colonnade.data.table import (
    RawTable,
    Reading,
    dense_if_full,
    first_place,
    int32_indices,
    stack,
    stored_values,
)
from colonnade.errors import DataError

USUAL = Dialect(decimal=".")  # how numbers that are text are written, in memory


class FrameColumns(NamedTuple):
    """All columns of a data set, and the names of those that it calls categorical."""

    raw: RawTable
    categorical: tuple[str, ...] = ()


def is_frame(X: Any) -> bool:
    """Return whether this is a data frame: something with named columns that it gives away as Arrow's."""
    return hasattr(X, "__arrow_c_stream__") or (hasattr(X, "columns") and hasattr(X, "dtypes"))


def as_table(X: Any, name: str = "X") -> Any:
    """Return what speaks Arrow as a pyarrow table, as a stream can be read once only; anything else as it is.

    Frames of pandas stay: they have kinds of columns that Arrow has not.
    """
    return _arrow(X, name) if hasattr(X, "__arrow_c_stream__") and not hasattr(X, "iloc") else X


def columns_of(X: Any, name: str = "X", dates: dict[str, str] | None = None) -> FrameColumns:
    """Return the columns of an array, a sparse matrix or a data frame; `name` stands in error texts.

    `dates` are the columns of dates in training, where this is for a model that was trained before.
    """
    if is_frame(X):
        return _from_frame(X, name, replace(USUAL, dates=dates))
    names = tuple(str(c) for c in X.columns) if hasattr(X, "columns") else None
    values = _sparse(X) if issparse(X) else _array(X, name)
    if values.ndim != 2 or 0 in values.shape:
        raise DataError(f"{name} has shape {values.shape}; it needs rows and columns")
    names = names or tuple(f"x{j}" for j in range(values.shape[1]))
    if values.dtype == object:
        dialect = replace(USUAL, dates=dates)
        read = {c: _parsed(c, values[:, j], dialect) for j, c in enumerate(names)}
        return FrameColumns(_read(name, read, len(values)))
    infinite = first_place(values, np.isinf(stored_values(values)))
    if infinite is not None:
        row, column = infinite
        raise DataError(f"{name}: column '{names[column]}', row {row + 1} is infinite; correct it")
    return FrameColumns(RawTable(name, names, values))


def _sparse(X: Any) -> Matrix:
    if X.ndim != 2:
        raise DataError(f"X has shape {X.shape}; it needs rows and columns")
    return dense_if_full(int32_indices(csr_array(X, dtype=np.float64)))


def _array(X: Any, name: str) -> NDArray[Any]:
    """Return the values as float64, or as objects where some are not numbers."""
    try:
        values = np.asarray(X)
    except ValueError as problem:
        raise DataError(f"{name} is not a table ({problem}); every row needs as many values") from None
    if values.dtype.kind in "OUSMm":
        return values.astype(object)
    return np.asarray(values, dtype=np.float64, order="C")


def _read(name: str, columns: dict[str, Recognised], rows: int) -> RawTable:
    """Return one table of columns that were recognised one by one, and what was done to them."""
    reading = Reading(
        said=tuple(each.said for each in columns.values() if each.said),
        warned=tuple(each.warned for each in columns.values() if each.warned),
        dates={c: each.date for c, each in columns.items() if each.date},
    )
    values = stack([each.values for each in columns.values()], rows)
    return RawTable(name, tuple(columns), values, reading=reading)


def _parsed(name: str, values: NDArray[Any], dialect: Dialect) -> Recognised:
    """Return a column of Python objects: numbers, a gap is NaN, or what text means (`recognise`)."""
    gaps = np.array([value is None or value != value for value in values], dtype=bool)
    numbers = np.full(len(values), np.nan)
    try:
        numbers[~gaps] = values[~gaps].astype(np.float64)
    except OverflowError:
        raise DataError(
            f"column '{name}' has a whole number of more than 308 digits; give it as text"
        ) from None
    except (TypeError, ValueError):
        texts = [None if gap else str(v) for v, gap in zip(values, gaps, strict=True)]
        return recognise(name, texts, dialect)
    return Recognised(numbers)


def _from_frame(X: Any, name: str, dialect: Dialect) -> FrameColumns:
    """Return the columns of a data frame, by way of Arrow."""
    import pyarrow as pa

    table = _arrow(X, name)
    names: list[str] = table.column_names
    if not names or not table.num_rows:
        raise DataError(f"{name} has shape ({table.num_rows}, {len(names)}); it needs rows and columns")
    declared = tuple(c for c in names if pa.types.is_dictionary(table[c].type))
    read = {c: column_of(name, c, table[c], dialect, c in declared) for c in names}
    return FrameColumns(_read(name, read, table.num_rows), declared)


def _arrow(X: Any, name: str) -> Any:
    """Return a frame as a pyarrow table."""
    import pyarrow as pa

    if hasattr(X, "iloc"):
        _refuse_twice(X.columns, name)
    try:  # what Arrow has laid out stays where it is
        table = _from_pandas(X) if hasattr(X, "iloc") else pa.table(X)
    except (TypeError, ValueError, pa.ArrowException) as problem:
        raise DataError(
            f"{name}: a frame that cannot be read ({problem}); give numbers, text, dates"
        ) from None
    _refuse_twice(table.column_names, name)
    return table


def _refuse_twice(columns: Iterable[object], name: str) -> None:
    """Refuse a table of which two columns share a name."""
    seen: set[str] = set()
    for column in map(str, columns):
        if column in seen:
            raise DataError(f"{name}: two columns are named '{column}'; rename one")
        seen.add(column)


def _from_pandas(X: Any) -> Any:
    """Return a frame of pandas as a pyarrow table, without its index."""
    import pyarrow as pa

    X = X.copy(deep=False)  # whose columns may be replaced; they are few that are
    for name, kind in zip(X.columns, X.dtypes, strict=True):
        if str(kind).startswith("Sparse["):
            X[name] = X[name].astype(kind.subtype)
        elif _of_intervals(kind):  # what cutting a column makes: each is known by its text
            X[name] = X[name].cat.rename_categories(str)
    try:
        return pa.Table.from_pandas(X, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):  # a number of Python's may be any size
        # a column of pandas may hold anything: what has no type of its own is text
        for name in X.select_dtypes(object):
            X[name] = X[name].map(str, na_action="ignore")
        return pa.Table.from_pandas(X, preserve_index=False)


def _of_intervals(kind: Any) -> bool:
    """Return whether a kind of pandas's columns is categories that are intervals."""
    return str(getattr(getattr(kind, "categories", None), "dtype", "")).startswith("interval")
