"""Sparse rows of a party: scores and gradients of a range of them, in the order they have or in another.

Training takes all rows in the order of a shuffle and needs no matrix for a batch. There are two ways to the
same numbers, to the last bit. `_rows.c`, compiled when the package is installed, moves rows into an order and
multiplies without loops over single rows, which pays where a row has few numbers. Where no compiler was
there, SciPy's kernels do both. All release the interpreter lock.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import _sparsetools, csr_array

from colonnade.arrays import Floats, Rows

try:
    from colonnade.models import _rows as compiled
except ImportError:
    COMPILED = False
else:
    COMPILED = True

ROOM = 4
"""Numbers for which there is room at the end of an array: that many are moved at once, needed or not."""

Pointers = NDArray[np.int64]
RowNumbers = NDArray[np.int32]
Columns = NDArray[np.uint16] | NDArray[np.int32]


class SparseRows:
    """CSR rows through SciPy's compiled kernels.

    They take absolute row pointers, so a range needs no new matrix; making one through the public
    interface costs about twenty times the arithmetic of a batch of 256 rows.
    """

    def __init__(self, X: csr_array) -> None:
        self._indptr = X.indptr
        self._indices = X.indices
        self._data = X.data
        self._width = int(X.shape[1])
        self._lasting: CompiledRows | None = None

    def in_order(self, order: Rows) -> SparseRows | FlatRows:
        """Return the rows in the given order. All of them are asked for again in others; a part of them is
        not."""
        if not COMPILED or len(order) < len(self._indptr) - 1 or self._data.dtype != np.float64:
            return self._gathered(order)
        if self._lasting is None:
            self._lasting = CompiledRows.made(self._indptr, self._indices, self._data, self._width)
        return self._lasting.in_order(order)

    def _gathered(self, order: Rows) -> SparseRows:
        """Return the rows in the given order; quicker than to index the matrix, which checks the order
        again."""
        rows = SparseRows.__new__(SparseRows)
        rows._width, rows._lasting = self._width, None
        rows._indptr = np.zeros(len(order) + 1, dtype=self._indptr.dtype)
        np.cumsum(np.diff(self._indptr)[order], out=rows._indptr[1:])
        rows._indices = np.empty(rows._indptr[-1], dtype=self._indices.dtype)
        rows._data = np.empty(rows._indptr[-1])
        chosen = order.astype(self._indices.dtype)
        _sparsetools.csr_row_index(
            len(chosen), chosen, self._indptr, self._indices, self._data, rows._indices, rows._data
        )
        return rows

    def scores(self, start: int, end: int, w: Floats) -> Floats:
        n, pointers = end - start, self._indptr[start : end + 1]
        if w.ndim == 1:
            out = np.zeros(n)
            _sparsetools.csr_matvec(n, self._width, pointers, self._indices, self._data, w, out)
            return out
        out = np.zeros((n, *w.shape[1:]))
        _sparsetools.csr_matvecs(
            n, self._width, w.shape[1], pointers, self._indices, self._data, w.ravel(), out.ravel()
        )
        return out

    def gradient(self, start: int, end: int, theta: Floats) -> Floats:
        n, pointers = end - start, self._indptr[start : end + 1]
        # rows of X are columns of X', so the same arrays read as X' in CSC form
        if theta.ndim == 1:
            out = np.zeros(self._width)
            _sparsetools.csc_matvec(self._width, n, pointers, self._indices, self._data, theta, out)
            return out
        out = np.zeros((self._width, *theta.shape[1:]))
        _sparsetools.csc_matvecs(
            self._width,
            n,
            theta.shape[1],
            pointers,
            self._indices,
            self._data,
            np.ascontiguousarray(theta).ravel(),
            out.ravel(),
        )
        return out

    def values(self, start: int, end: int) -> int:
        return int(self._indptr[end] - self._indptr[start])


@dataclass(frozen=True)
class CompiledRows:
    """All rows of a party as `_rows.c` reads them: where each begins, and column and value of every number.

    The last two have `ROOM` at their end. Where all values are one, as in columns that say yes or no, there
    are none.
    """

    pointers: Pointers
    columns: Columns
    numbers: Floats
    width: int

    @classmethod
    def made(
        cls, indptr: NDArray[np.integer], indices: NDArray[np.integer], data: Floats, width: int
    ) -> CompiledRows:
        """Return the rows of a CSR matrix."""
        count = int(indptr[-1])
        used = indices[:count]
        # the kernels trust these: they would read or write elsewhere
        if len(used) < count or (count and not 0 <= used.min() <= used.max() < width):
            raise ValueError("a sparse matrix names columns that it does not have")
        room = count + ROOM
        columns: Columns = np.zeros(room, np.uint16) if width <= 2**16 else np.zeros(room, np.int32)
        columns[:count] = used
        ones = bool((data[:count] == 1.0).all())
        numbers = np.zeros(0 if ones else room)
        if not ones:
            numbers[:count] = data[:count]
        return cls(indptr.astype(np.int64), columns, numbers, width)

    def in_order(self, order: Rows) -> FlatRows:
        """Return the rows in the given order, which may name some several times: those drawn with
        replacement."""
        lengths = np.diff(self.pointers)
        room = int(lengths.take(order, mode="clip").sum()) + ROOM  # rows that there are not are refused below
        pointers, rows = np.empty(len(order) + 1, np.int64), np.empty(room, np.int32)
        columns = np.empty(room, self.columns.dtype)
        numbers = np.empty(room if len(self.numbers) else 0)
        compiled.put_in_order(
            self.pointers, self.columns, self.numbers, order, pointers, rows, columns, numbers
        )
        return FlatRows(pointers, rows, columns, numbers, self.width)


class FlatRows:
    """Rows in an order, with the row of every number beside it, which lets `_rows.c` do without rows."""

    def __init__(
        self, pointers: Pointers, rows: RowNumbers, columns: Columns, numbers: Floats, width: int
    ) -> None:
        self._pointers = pointers
        self._table = compiled.Table(pointers, rows, columns, numbers, width)
        self._width = width

    def scores(self, start: int, end: int, w: Floats) -> Floats:
        out = np.empty((end - start, *w.shape[1:]))
        self._table.scores(np.ascontiguousarray(w), out, start, end)
        return out

    def gradient(self, start: int, end: int, theta: Floats) -> Floats:
        out = np.empty((self._width, *theta.shape[1:]))
        self._table.gradient(np.ascontiguousarray(theta), out, start, end)
        return out

    def descend(self, start: int, end: int, theta: Floats, w: Floats, step: float) -> None:
        self._table.descend(np.ascontiguousarray(theta), w, start, end, -step)

    def values(self, start: int, end: int) -> int:
        return int(self._pointers[end] - self._pointers[start])
