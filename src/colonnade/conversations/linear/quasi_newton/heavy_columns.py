"""Curvature that a sample of rows cannot know: that of columns in which a few rows outweigh all others.

A quasi-Newton step trusts the curvature that it has seen on a sample. Where a column is nearly constant but
for a few rows far away, the sample holds none of these; H takes the column for flat, and the first batch with
such a row throws the weights off. Each party can see that in its own columns alone: for these it adds what a
batch with the worst row can have at most, and steps along them are no longer than first-order ones. All other
columns are left as they are.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from colonnade.arrays import Floats, Matrix, Rows


def hidden_curvature(X: Matrix, sample: Rows, batch: int, smoothness: float) -> Floats:
    """Return, for every column, the curvature that a batch's worst row adds to it; 0 for columns that are not
    heavy.

    A column is heavy if its worst row has more curvature in a batch than the whole block has on the sample.

    >>> X = np.array([[1.0, 0.0], [-1.0, 0.1], [1.0, 0.0], [-1.0, 90.0]])
    >>> hidden_curvature(X, np.array([0, 1, 2]), batch=2, smoothness=0.25).tolist()
    [0.0, 1012.5]
    """
    hidden = np.zeros(int(X.shape[1]))
    if not np.isfinite(smoothness):  # such a loss has no bound to add
        return hidden
    squares = X.multiply(X).tocsr() if isinstance(X, csr_array) else X**2
    worst = squares.max(axis=0)
    worst = worst if isinstance(worst, np.ndarray) else worst.toarray().ravel()
    heavy = np.flatnonzero(worst / batch > float(squares[sample].sum()) / max(len(sample), 1))
    if len(heavy):
        far = np.abs(X[:, heavy].toarray() if isinstance(X, csr_array) else X[:, heavy])
        # x x' is at most diag(|x_j| sum_k |x_k|)
        hidden[heavy] = smoothness * (far * far.sum(axis=1, keepdims=True)).max(axis=0) / batch
    return hidden
