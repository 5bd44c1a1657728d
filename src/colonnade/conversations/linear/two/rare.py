"""Which columns a party leaves out, so that no row hangs on them alone: leverage of at most a tenth.

h_i = x_i'(X'X)^-1 x_i is how much of its own fit a row is. A column with one row that is not like the others
has one of h_i = 1: its gradient is that row's theta, and through it label and score would be read. The limit
holds for combinations of columns as well, which a minimum of rows a column does not see. Leaving out one
column of a category in several is to join that category with the one that has no column.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from colonnade.arrays import Floats, Matrix

LIMIT = 0.1
SMALLEST = 1e-10  # of the largest eigenvalue: columns that others add up to have no direction of their own
STRETCH = 2**14  # rows at a time


def dense(X: Matrix, rows: slice, columns: NDArray[np.intp] | None = None) -> Floats:
    """Return some rows of some columns, in double precision."""
    part = X[rows] if columns is None else X[rows][:, columns]
    return np.asarray(part if isinstance(part, np.ndarray) else part.toarray(), dtype=np.float64)


def gram(X: Matrix, columns: NDArray[np.intp] | None = None) -> Floats:
    """Return X'X."""
    width = int(X.shape[1]) if columns is None else len(columns)
    total = np.zeros((width, width))
    for start in range(0, int(X.shape[0]), STRETCH):
        part = dense(X, slice(start, start + STRETCH), columns)
        total += part.T @ part
    return total


def steady(X: Matrix, limit: float = LIMIT) -> NDArray[np.intp]:
    """Return the places of columns that stay, so that every row's leverage is within the limit.

    Of the row that is furthest beyond it the column goes without which its leverage falls most; and again,
    until none is beyond.
    """
    left = np.flatnonzero(np.diag(gram(X)) > 0)
    while len(left):
        table = gram(X, left)
        scale = np.sqrt(np.diag(table))  # columns of any unit weigh alike
        values, vectors = np.linalg.eigh(table / np.outer(scale, scale))
        sound = values > SMALLEST * values[-1]
        roots = vectors[:, sound] / np.sqrt(values[sound])
        beyond = _beyond(X, left, roots / scale[:, None], limit)
        if beyond is None:
            break
        inverse = roots @ roots.T
        row = beyond[left] / scale
        gone = (inverse @ row) ** 2 / np.maximum(np.diag(inverse), SMALLEST)
        left = np.delete(left, int(gone.argmax()))
    return left


def _beyond(X: Matrix, left: NDArray[np.intp], roots: Floats, limit: float) -> Floats | None:
    """Return the row whose leverage is furthest beyond the limit; None if none is."""
    most, found = limit, None
    for start in range(0, int(X.shape[0]), STRETCH):
        part = dense(X, slice(start, start + STRETCH))
        leverage = ((part[:, left] @ roots) ** 2).sum(axis=1)
        at = int(leverage.argmax())
        if leverage[at] > most:
            most, found = float(leverage[at]), part[at]
    return found
