"""The first matrix of L-BFGS from a party's own columns: H_0 = M^-1/2, where M = c X'X / n + the penalty.

Parties that share one H over all blocks need not agree on H_0: each block may be measured in a metric of its
own, and nobody is told which. A party counts its vectors in coordinates in which its own H_0 is 1: with
H_0 = C C, weights are C v, and a gradient g of the weights is C g. Inner products over all blocks are then
those of the metric that all H_0 make together.

M^-1 would be Newton's, were the other blocks not there. Its first steps are the quickest and its last ones
slow: directions that lie across blocks, and that only the penalty holds, become as long as any other. The
root is halfway between that and 1 (docs/algorithms/lbfgs.md has figures of all three).

Of a wide block only the diagonal of M is taken, and correlations are those of a sample of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from colonnade.arrays import Floats, Matrix, Rows
from colonnade.models.linear import SHARD, let_go

WIDEST = 512
"""Columns up to which correlations are used: their price grows with the cube."""

ROWS_A_COLUMN = 20  # of the sample
FLOOR = 3e-3  # of the mean eigenvalue: what is below counts as this
POWER = 0.5  # of M^-1


@dataclass(frozen=True, eq=False)
class OwnMetric:
    """C of one block, whose square is H_0: a matrix or, where the block is wide, its diagonal."""

    root: Floats

    def of(self, v: Floats) -> Floats:
        """Return C v: weights of coordinates v, or the gradient of coordinates where v is that of weights.

        >>> OwnMetric(np.array([1.0, 2.0])).of(np.array([3.0, 4.0])).tolist()
        [3.0, 8.0]
        """
        if self.root.ndim == 2:
            turned: Floats = self.root @ v
            return turned
        return (self.root * v.T).T

    def back(self, w: Floats) -> Floats:
        """Return the coordinates of weights w.

        >>> OwnMetric(np.array([1.0, 2.0])).back(np.array([3.0, 8.0])).tolist()
        [3.0, 4.0]
        """
        if self.root.ndim == 2:
            return np.asarray(np.linalg.solve(self.root, w), dtype=np.float64)
        return (w.T / self.root).T


def first_matrix(X: Matrix, curvature: float, penalty: Floats) -> OwnMetric:
    """Return the first matrix of a block; `penalty` is the curvature of the penalty by each weight.

    >>> X = np.array([[1.0, 0.0], [0.0, 4.0], [1.0, 0.0], [0.0, 4.0]])
    >>> first_matrix(X, 2.0, np.zeros(2)).root.round(3).tolist()
    [[1.0, 0.0], [0.0, 0.5]]
    """
    rows, columns = map(int, X.shape)
    second = curvature * _squares(X) / rows
    diagonal = second + penalty
    if columns > WIDEST or not second.any():
        return OwnMetric(_root(diagonal, float(diagonal.mean())))
    M = np.sqrt(np.outer(second, second)) * _correlations(X, _sample(rows, ROWS_A_COLUMN * columns))
    np.fill_diagonal(M, diagonal)
    values, vectors = np.linalg.eigh(M)
    return OwnMetric((vectors * _root(values, float(diagonal.mean()))) @ vectors.T)


def _root(values: Floats, mean: float) -> Floats:
    """Return what takes the place of these eigenvalues in C."""
    lengths: Floats = np.maximum(values, FLOOR * mean) ** (-POWER / 2) if mean > 0 else np.ones(len(values))
    return lengths


def _sample(rows: int, most: int) -> Rows:
    """Return at most this many rows at equal distances."""
    return np.arange(rows) if rows <= most else np.linspace(0, rows - 1, most).astype(np.int64)


def _squares(X: Matrix) -> Floats:
    """Return the sum of squares of every column."""
    if isinstance(X, np.ndarray):
        squares: Floats = np.einsum("ij,ij->j", X, X, dtype=np.float64)
        let_go(X)
        return squares
    of_each = np.bincount(X.indices, X.data.astype(np.float64) ** 2, minlength=int(X.shape[1]))
    return of_each.astype(np.float64)


def _correlations(X: Matrix, rows: Rows) -> Floats:
    """Return the columns' inner products over some rows, were all of length 1; nobody's mean is taken off."""
    width = int(X.shape[1])
    products = np.zeros((width, width))
    for first in range(0, len(rows), SHARD):
        part = X[rows[first : first + SHARD]]
        dense = np.asarray(part if isinstance(part, np.ndarray) else part.toarray(), dtype=np.float64)
        products += dense.T @ dense
    if isinstance(X, np.ndarray):
        let_go(X)
    lengths = np.sqrt(products.diagonal())
    lengths[lengths == 0] = 1.0
    correlations: Floats = products / lengths / lengths[:, None]
    return correlations
