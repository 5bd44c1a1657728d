"""Tables: what a file holds, and what training needs.

A `RawTable` is a file as it was read: numbers, text, gaps. A `Table` is its final form: finite float64
numbers only. `Preparation` turns one into the other. Wide sparse data (LIBSVM) stays sparse from the
file to the model; it is never made dense.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from colonnade.arrays import Floats, Matrix, Rows
from colonnade.errors import DataError, suggest
from colonnade.losses import with_weights

Column: TypeAlias = Floats | NDArray[np.object_]  # numbers, a gap is NaN; or text, a gap is ""
# One matrix when every column is a number (pixels stay bytes), else one array per column.
Values: TypeAlias = "Matrix | NDArray[np.uint8] | tuple[Column, ...]"


INTERCEPT = "(intercept)"  # the name of a column of ones, whose weight is never penalised


@dataclass(frozen=True, eq=False)
class Table:
    """One party's columns in their final numeric form.

    A passive party's `y` is None, and so is its `weight`: how much every row counts, 1 on average over the
    training rows; None where all count alike.
    """

    name: str
    columns: tuple[str, ...]
    X: Matrix
    y: Floats | None = None
    ids: NDArray[np.str_] | None = None
    weight: Floats | None = None
    categories: tuple[int, ...] = ()  # the places of columns whose numbers are those of categories

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self.X.shape[0])

    @property
    def width(self) -> int:
        """The number of columns."""
        return int(self.X.shape[1])

    @property
    def labels(self) -> Floats | None:
        """The labels, with the weights of the rows beside them if they have some (`losses.with_weights`)."""
        return None if self.y is None else with_weights(self.y, self.weight)

    @property
    def free(self) -> tuple[int, ...]:
        """The places of columns whose weights are not penalised: that of the intercept, if it is here."""
        return tuple(place for place, column in enumerate(self.columns) if column == INTERCEPT)

    def take(self, rows: Rows) -> Table:
        """Return the given rows, in the given order."""
        return replace(
            self,
            X=self.X[rows],
            y=_pick(self.y, rows),
            ids=_pick(self.ids, rows),
            weight=_pick(self.weight, rows),
        )


@dataclass(frozen=True)
class Reading:
    """What reading a file did to it, in words for its owner: beyond taking numbers and text as they stand.

    `left_out` counts rows by the reason why they were left out. `dates` are the columns of dates, which
    became days, with the pattern that they were written in, and `decimal` is the mark in its numbers where
    that was said or seen. `digest` is a hash of what was read, by which a change is noticed.
    """

    said: tuple[str, ...] = ()
    warned: tuple[str, ...] = ()
    left_out: dict[str, int] = field(default_factory=dict)
    dates: dict[str, str] = field(default_factory=dict)
    decimal: str | None = None
    digest: str = ""

    def and_left_out(self, rows: int, why: str, remark: str = "") -> Reading:
        """Return the same, with some more rows left out."""
        if not rows:
            return self
        said = f"{count(rows, 'row')} left out: {why}{remark}"
        left_out = {**self.left_out, why: self.left_out.get(why, 0) + rows}
        return replace(self, said=(*self.said, said), left_out=left_out)


@dataclass(frozen=True, eq=False)
class RawTable:
    """A file as read: its columns, and the ids and labels of its rows where it has some.

    `origin` remembers where in the file a row came from, so that an error found after rows were picked
    still names the row to look up.
    """

    name: str
    columns: tuple[str, ...]
    values: Values
    ids: NDArray[np.str_] | None = None
    y: Column | None = None
    origin: Rows | None = field(default=None, repr=False)
    weight: Floats | None = field(default=None, repr=False)
    reading: Reading = field(default_factory=Reading, repr=False)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(self.values[0]) if isinstance(self.values, tuple) else int(self.values.shape[0])

    @property
    def sparse(self) -> bool:
        """Whether the columns are one sparse matrix."""
        return bool(issparse(self.values))

    def warned(self, sentences: Iterable[str]) -> RawTable:
        """Return the same, with more for its owner to look at."""
        return replace(self, reading=replace(self.reading, warned=(*self.reading.warned, *sentences)))

    def hashed(self, digest: str) -> RawTable:
        """Return the same, with the hash of what was read."""
        return replace(self, reading=replace(self.reading, digest=digest))

    def row_number(self, row: int) -> int:
        """Return the number that this row has in the file, counted from 1."""
        return row_number(row, self.origin)

    def positions(self, columns: Sequence[str]) -> list[int]:
        """Return the places of the named columns in the table, counted from 0."""
        place = self._place
        for c in columns:
            if c not in place:
                raise DataError(f"{self.name}: no column '{c}'; {suggest(c, self.columns)}")
        return [place[c] for c in columns]

    @cached_property
    def _place(self) -> dict[str, int]:
        """The places of all columns: asked for column by column, of which there may be thousands."""
        return {c: j for j, c in enumerate(self.columns)}

    def has(self, column: str) -> bool:
        """Return whether there is a column of this name."""
        return column in self._place

    def column(self, name: str) -> Column:
        """Return one column's values: float64, or text."""
        (j,) = self.positions([name])
        if isinstance(self.values, tuple):
            return self.values[j]
        if isinstance(self.values, csr_array):
            return np.asarray(self.values[:, [j]].toarray().ravel(), dtype=np.float64)
        return np.asarray(self.values[:, j], dtype=np.float64)

    def select(self, columns: Sequence[str] | Sequence[int]) -> RawTable:
        """Return the given columns, by name or by position."""
        names = [c for c in columns if isinstance(c, str)]
        where = self.positions(names) if names else [int(c) for c in columns]
        chosen = tuple(self.columns[j] for j in where)
        values: Values
        if not where:
            values = np.empty((self.rows, 0))
        elif isinstance(self.values, tuple):
            values = stack([self.values[j] for j in where], self.rows)
        else:
            values = self.values[:, where]
            values = values if self.sparse else np.ascontiguousarray(values)
        return replace(self, columns=chosen, values=values)

    def take(self, rows: Rows) -> RawTable:
        """Return the given rows, in the given order."""
        values = self.values
        return replace(
            self,
            values=tuple(c[rows] for c in values) if isinstance(values, tuple) else values[rows],
            ids=_pick(self.ids, rows),
            y=_pick(self.y, rows),
            weight=_pick(self.weight, rows),
            origin=np.asarray(rows, dtype=np.int64) if self.origin is None else self.origin[rows],
        )


def count(number: int, thing: str) -> str:
    """Return a number of things, in words.

    >>> count(1, "row"), count(1200, "row"), count(3, "category")
    ('1 row', '1,200 rows', '3 categories')
    """
    if number == 1:
        return f"1 {thing}"
    return f"{number:,} {thing.removesuffix('y') + 'ies' if thing.endswith('ry') else thing + 's'}"


def some(names: Iterable[str], most: int = 6) -> str:
    """Return the first few names, for a sentence."""
    shown = list(names)
    return ", ".join(shown[:most]) + (", ..." if len(shown) > most else "")


def row_number(row: int, origin: Rows | None) -> int:
    """Return the number of a row in its file, counted from 1. `origin` is that of its `RawTable`."""
    return 1 + (row if origin is None else int(origin[row]))


def different(column: Any) -> tuple[list[str], Rows]:
    """Return the different texts of a pyarrow column, gaps as "", and which of them every row has.

    As in the functions below, pyarrow's own way to NumPy or Python would import pandas where it is installed.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    empty = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(bytes(8)), pa.py_buffer(b"")])[0]
    texts = pc.fill_null(column.cast(pa.string()), empty)
    coded = (texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts).dictionary_encode()
    return coded.dictionary.to_pylist(), whole_numbers_of(coded.indices)


def array_of(values: NDArray[Any]) -> Any:
    """Return a pyarrow column of numbers, or of texts."""
    import pyarrow as pa

    if values.dtype.kind not in "OU":
        buffers = [None, pa.py_buffer(np.ascontiguousarray(values))]
        return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), buffers)
    if values.dtype.kind == "U" and values.size and is_ascii(values):
        lengths = np.strings.str_len(values)
        letters = np.ascontiguousarray(values).view(np.uint32).reshape(len(values), -1).astype(np.uint8)
        written = letters[np.arange(letters.shape[1]) < lengths[:, None]].tobytes()
    else:
        texts = [str(text).encode() for text in values]
        lengths, written = np.array([len(text) for text in texts]), b"".join(texts)
    ends = np.zeros(len(values) + 1, dtype=np.int64)
    np.cumsum(lengths, out=ends[1:])
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(written)]
    return pa.Array.from_buffers(pa.large_string(), len(values), buffers)


def is_ascii(texts: NDArray[np.str_]) -> bool:
    """Return whether all letters of these texts are in ASCII; not so where there are no letters."""
    if not texts.dtype.itemsize:
        return False
    return int(np.ascontiguousarray(texts).view(np.uint32).max(initial=0)) < 128


def whole_numbers_of(column: Any) -> Rows:
    """Return a pyarrow array of int32 without gaps."""
    here = slice(column.offset, column.offset + len(column))
    return np.frombuffer(column.buffers()[1] or b"", dtype=np.int32)[here].astype(np.int64)


def numbers_of(column: Any) -> Floats:
    """Return a pyarrow column of float64, gaps as NaN."""
    array = column.combine_chunks()
    here = slice(array.offset, array.offset + len(array))
    known, data = array.buffers()
    if data is None:
        return np.full(len(array), np.nan)
    numbers: Floats = np.frombuffer(data, dtype=np.float64)[here].copy()
    if known is not None:
        bits = np.unpackbits(np.frombuffer(known, dtype=np.uint8), bitorder="little")
        numbers[bits[here] == 0] = np.nan
    return numbers


def stack(columns: Sequence[Column], rows: int) -> Values:
    """Return one matrix when all columns are numbers (or there are none), else one array per column."""
    if any(c.dtype == object for c in columns):
        return tuple(columns)
    X = np.empty((rows, len(columns)))
    for j, column in enumerate(columns):
        X[:, j] = column
    return X


def int32_indices(X: csr_array) -> csr_array:
    """Return the same matrix with 32-bit indices, unless it holds too much for them."""
    if max(X.nnz, *X.shape) > np.iinfo(np.int32).max:
        return X
    return csr_array((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape)


def dense_if_full(X: csr_array) -> Matrix:
    """Return a sparse matrix as an array if it is smaller so: 12 bytes a stored value are more than 8 a
    cell."""
    full = 3 * X.nnz > 2 * X.shape[0] * X.shape[1]
    return np.asarray(X.toarray(), dtype=np.float64) if full else X


def first_place(X: Matrix, bad: NDArray[np.bool_]) -> tuple[int, int] | None:
    """Return the row and column of the first value that is bad, or None if none is.

    `bad` has one entry per cell of a dense matrix, and one per stored value of a sparse one.
    """
    if not bad.any():
        return None
    k = int(bad.argmax())
    if isinstance(X, csr_array):
        return int(np.searchsorted(X.indptr, k, side="right")) - 1, int(X.indices[k])
    row, column = divmod(k, int(X.shape[1]))
    return row, column


def stored_values(X: Matrix) -> Floats:
    """Return the numbers that a matrix holds in memory: all cells, or what a sparse one stores."""
    numbers: Floats = X.data if isinstance(X, csr_array) else X
    return numbers


def as_numbers(values: Column) -> Floats:
    """Return numbers as they are: the same array, single or double, not a copy; anything else as double."""
    return cast(Floats, values) if values.dtype.kind == "f" else values.astype(np.float64)


def _pick(values: Any, rows: Rows) -> Any:
    return None if values is None else values[rows]
