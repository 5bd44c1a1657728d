"""One party's columns as a linear model: scores of a range of rows, and the gradient they give.

Training reads rows in the order of a shuffle, so a block is shuffled once per epoch and a batch is a
contiguous range of it. Nothing is gathered or copied per batch: a dense range is a view, and a sparse
range (`sparse`) is a slice over the same data. All kernels release the interpreter lock.

Dense rows are taken `SHARD` at a time, and gradients of shards are added in their order: no matter which
process computes which shard, one worker or many, the sum is the same to the last bit. Columns may be single
precision and lie in a file; a shard is made double when it is used, and arithmetic is double throughout.
"""

from __future__ import annotations

import itertools
import mmap
from typing import Protocol

import numpy as np
from scipy.sparse import csr_array

from colonnade.arrays import Floats, Matrix, Rows
from colonnade.models.sparse import FlatRows, SparseRows

SHARD = 2**12
"""Rows of a dense block that one product takes."""

STRETCH = 2**18
"""Rows that are looked at together where all are."""


class RowKernels(Protocol):
    """A block's rows in some order; scores may be one per row or one per row and class."""

    def scores(self, start: int, end: int, w: Floats) -> Floats:
        """Return X[start:end] w."""
        ...

    def gradient(self, start: int, end: int, theta: Floats) -> Floats:
        """Return X[start:end]' theta."""
        ...

    def values(self, start: int, end: int) -> int:
        """Return how many stored numbers the range has, all of which a product reads."""
        ...


class DenseRows:
    """Rows of a plain array, where a range is a view."""

    def __init__(self, X: Floats) -> None:
        self._X = X

    def scores(self, start: int, end: int, w: Floats) -> Floats:
        cuts = _cuts(start, end)
        if len(cuts) < 3:
            few: Floats = self._X[start:end] @ w
            return few
        scores = np.empty((end - start, *w.shape[1:]))
        for first, last in itertools.pairwise(cuts):
            np.matmul(self._X[first:last], w, out=scores[first - start : last - start])
        let_go(self._X)
        return scores

    def gradient(self, start: int, end: int, theta: Floats) -> Floats:
        cuts = _cuts(start, end)
        gradient: Floats = self._X[start : cuts[1]].T @ theta[: cuts[1] - start]
        for first, last in itertools.pairwise(cuts[1:]):
            gradient += self._X[first:last].T @ theta[first - start : last - start]
        if len(cuts) > 2:
            let_go(self._X)
        return gradient

    def values(self, start: int, end: int) -> int:
        return (end - start) * int(self._X.shape[1])


def _cuts(start: int, end: int) -> list[int]:
    """Return where a range is cut into shards, both its ends included; shards begin at multiples of `SHARD`.

    >>> _cuts(4000, 9000), _cuts(5, 7)
    ([4000, 4096, 8192, 9000], [5, 7])
    """
    return [start, *range((start // SHARD + 1) * SHARD, end, SHARD), end]


def descend(rows: RowKernels, start: int, end: int, theta: Floats, w: Floats, step: float) -> None:
    """Step in place: w -= step X[start:end]' theta."""
    if isinstance(rows, FlatRows) and w.flags.c_contiguous:
        rows.descend(start, end, theta, w, step)
    else:
        w -= step * rows.gradient(start, end, theta)


def rows_of(X: Matrix, order: Rows | None = None) -> RowKernels:
    """Return the rows of a block, in the given order."""
    if isinstance(X, np.ndarray):
        return DenseRows(X if order is None else X.take(order, axis=0))  # half the time of X[order]
    return SparseRows(X) if order is None else SparseRows(X).in_order(order)


def let_go(X: Floats) -> None:
    """Let go of the memory of columns that lie in a file: what is needed again is read again."""
    mapped = getattr(X, "_mmap", None)
    if isinstance(mapped, mmap.mmap):
        mapped.madvise(mmap.MADV_DONTNEED)


def longest_row(X: Matrix) -> float:
    """Return the largest ||x_i||^2 of all rows."""
    rows = int(X.shape[0])
    parts = [squared_norms(X[first : first + STRETCH]) for first in range(0, rows, STRETCH)]
    return max((float(part.max()) for part in parts), default=0.0)


def squared_norms(X: Matrix) -> Floats:
    """Return ||x_i||^2 of every row."""
    if isinstance(X, np.ndarray):
        norms: Floats = np.einsum("ij,ij->i", X, X, dtype=np.float64)
        let_go(X)
        return norms
    squared = SparseRows(csr_array((X.data * X.data, X.indices, X.indptr), shape=X.shape))
    return squared.scores(0, int(X.shape[0]), np.ones(int(X.shape[1])))
