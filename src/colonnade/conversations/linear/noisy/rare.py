"""Which columns a party leaves out, so that no row hangs on them alone: leverage of at most a tenth.

h_i = x_i'(X'X)^-1 x_i is how much of its own fit a row is. A column with one row that is not like the others
has one of h_i = 1: its gradient is that row's theta, and through it label and score would be read. The limit
holds for combinations of columns as well, which a minimum of rows a column does not see. Leaving out one
column of a category in several is to join that category with the one that has no column.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from colonnade.arrays import Floats, Matrix

LIMIT = 0.1
FEW = 5.0  # times the mean leverage, where that is over a fiftieth
ALONE = 0.5  # from which a row is most of its own fit
SMALLEST = 1e-10  # of the largest eigenvalue: columns that others add up to have no direction of their own
AT_ONCE = 50  # columns of which one may go at a time
STRETCH = 2**14  # rows at a time


def dense(X: Matrix, rows: slice, columns: NDArray[np.intp] | None = None) -> Floats:
    """Return some rows of some columns, in double precision."""
    part = X[rows] if columns is None else X[rows][:, columns]
    return np.asarray(part if isinstance(part, np.ndarray) else part.toarray(), dtype=np.float64)


def stretches(X: Matrix, rows: slice, columns: NDArray[np.intp] | None = None) -> Iterator[Floats]:
    """Yield rows from `start` to `stop`, some thousand at a time, so that a copy of all is never there."""
    for start in range(rows.start, rows.stop, STRETCH):
        yield dense(X, slice(start, min(start + STRETCH, rows.stop)), columns)


def gram(X: Matrix, columns: NDArray[np.intp] | None = None) -> Floats:
    """Return X'X."""
    width = int(X.shape[1]) if columns is None else len(columns)
    total = np.zeros((width, width))
    for part in stretches(X, slice(0, int(X.shape[0])), columns):
        total += part.T @ part
    return total


def limit_for(rows: int, columns: int) -> float:
    """Return the most leverage of a row: a tenth, and more where rows are few for this number of columns.

    >>> limit_for(32_561, 61), limit_for(100, 4), limit_for(10, 8)
    (0.1, 0.2, 0.5)
    """
    return max(LIMIT, min(ALONE, FEW * columns / max(rows, 1)))


def steady(X: Matrix, limit: float | None = None) -> NDArray[np.intp]:
    """Return the places of columns that stay, so that every row's leverage is within the limit.

    Columns of which one row alone is more than that go first: no other column makes up for it. Then, of a
    row that is furthest beyond the limit, the column goes without which its leverage falls most; and again,
    until none is beyond. Rows that are most of their own fit say so for all of their columns at once.
    """
    table, largest = gram(X), np.zeros(X.shape[1])
    for stretch in stretches(X, slice(0, int(X.shape[0]))):
        np.maximum(largest, np.abs(stretch).max(axis=0, initial=0.0), out=largest)
    limit = limit_for(*X.shape) if limit is None else limit
    squares = np.diag(table)
    left = np.flatnonzero((squares > 0) & (largest**2 <= limit * squares))
    while len(left):
        part = table[np.ix_(left, left)]
        scale = np.sqrt(np.diag(part))  # columns of any unit weigh alike
        values, vectors = np.linalg.eigh(part / np.outer(scale, scale))
        sound = values > SMALLEST * values[-1]
        roots = vectors[:, sound] / np.sqrt(values[sound])
        rows = _beyond(X, left, roots / scale[:, None], limit)
        if not len(rows):
            break
        inverse = roots @ roots.T
        gone = (rows / scale @ inverse) ** 2 / np.maximum(np.diag(inverse), SMALLEST)
        left = np.delete(left, np.unique(gone.argmax(axis=1)))
    return left


def _beyond(X: Matrix, left: NDArray[np.intp], roots: Floats, limit: float) -> Floats:
    """Return the rows that are most of their own fit or, if there are none, those furthest beyond the limit:
    one, and of many columns one for fifty of them."""
    most, far, found = max(1, len(left) // AT_ONCE), np.zeros(0), np.zeros((0, len(left)))
    for part in stretches(X, slice(0, int(X.shape[0])), left):
        leverage = ((part @ roots) ** 2).sum(axis=1)
        beyond = leverage > limit
        far, found = np.append(far, leverage[beyond]), np.vstack([found, part[beyond]])
        kept = np.union1d(np.flatnonzero(far > max(limit, ALONE)), np.argsort(-far)[:most])
        far, found = far[kept], found[kept]
    alone = found[far > max(limit, ALONE)]
    return alone if len(alone) else found
