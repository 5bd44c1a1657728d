"""Products of rows of a table with words modulo 2^64: what blind runs compute most.

A table has numbers of 2, 4 or 8 bytes, and `rows` says which rows are meant. There are two ways to the same
words. `_words.c` reads every row once, where it lies, for all products; it is compiled when the package is
installed. Where no compiler was there, NumPy gathers the rows and multiplies them, which is slower;
`COMPILED` says which of the two it is, and so does every result.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from colonnade.arrays import Rows, Words

try:
    from colonnade.secure import _words
except ImportError:
    COMPILED = False
else:
    COMPILED = True

Table: TypeAlias = NDArray[np.int16] | NDArray[np.int32] | NDArray[np.int64] | Words

NARROW, FEW = 16, 2**17  # what of columns, and of words times columns, makes a product quicker than a sum
_NONE: Words = np.empty((0, 0), dtype=np.uint64)
_NO_WEIGHTS: Words = np.empty((0, 0, 0), dtype=np.uint64)
_NO_CUTS: Rows = np.zeros(1, dtype=np.int64)


def scores_of(table: Table, rows: Rows, vectors: Words) -> Words:
    """Return the products of rows and vectors: [vectors, rows].

    >>> table, five = np.array([[1], [2], [3]], dtype=np.int16), np.array([[5]], dtype=np.uint64)
    >>> scores_of(table, np.array([2, 0]), five)
    array([[15,  5]], dtype=uint64)
    """
    return products_of(table, rows, vectors, _NO_WEIGHTS, _NO_CUTS)[0]


def sums_of(table: Table, rows: Rows, weights: Words) -> Words:
    """Return the sums of rows, weighted: [vectors, columns].

    >>> table, weights = np.array([[1], [2], [3]], dtype=np.int16), np.array([[5, 1]], dtype=np.uint64)
    >>> sums_of(table, np.array([2, 0]), weights)
    array([[16]], dtype=uint64)
    """
    cuts = np.array((0, table.shape[1]))
    return products_of(table, rows, _NONE, weights[None], cuts)[1]


def products_of(table: Table, rows: Rows, vectors: Words, weights: Words, cuts: Rows) -> tuple[Words, Words]:
    """Return the products of rows and vectors, [vectors, rows], and the sums of rows, weighted: [vectors,
    columns].

    Columns lie in blocks, from each of `cuts` to the next, and every block has weights of its own:
    [blocks, vectors, rows].
    """
    scores = np.empty((len(vectors), len(rows)), dtype=np.uint64)
    sums = np.empty((weights.shape[1], table.shape[1]), dtype=np.uint64)
    if COMPILED:
        _words.products(table, rows, np.ascontiguousarray(vectors), scores, weights, sums, cuts)
    else:
        _gathered(table, rows, vectors, scores, weights, sums, cuts)
    return scores, sums


def _gathered(
    table: Table, rows: Rows, vectors: Words, scores: Words, weights: Words, sums: Words, cuts: Rows
) -> None:
    """Compute `_words.products` in NumPy."""
    X = table.take(rows, axis=0).astype(np.int64, copy=False).view(np.uint64)
    if len(vectors):
        scores[:] = vectors @ X.T if X.shape[1] <= NARROW else np.einsum("ij,kj->ki", X, vectors)
    for start, end, own in zip(cuts[:-1], cuts[1:], weights, strict=True):
        block = X[:, start:end]
        few = block.size * block.shape[1] <= FEW
        sums[:, start:end] = own @ block if few else np.einsum("ij,ki->kj", block, own)
