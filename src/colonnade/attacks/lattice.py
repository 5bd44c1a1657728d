"""The others' columns from exact totals: short vectors of a lattice.

In a blind run scores are whole numbers: columns and weights in fixed point, and their products exact. What a
few measurements tell of some rows spans a space; the whole-numbered vectors in it are a lattice, and the
columns are among its shortest vectors, since fixed-point columns are small numbers. Lattice reduction
(Lenstra, Lenstra, Lovasz 1982) finds them, for any distribution; a column need not be discrete. If
owners turn their columns by a secret rotation before they round them, the short vectors are turned columns.

The lattice of a space is the lattice of all that is orthogonal to what is orthogonal to it (Nguyen and Stern
1997); both steps are one reduction each, of as many vectors as rows are looked at.

Sees: the totals of measurements that one party gets, and the job.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from scipy.linalg import qr

from colonnade.arrays import Floats, Numbers, Rows
from colonnade.attacks.case import Case, UnnamedColumns
from colonnade.attacks.subspace import FAINT, exact

MOST = 10  # columns beyond which it takes too long here
MORE = 3  # rows that are looked at for every column
HEAVY = 2**80  # what a vector pays for each unit that it is not orthogonal

Vectors = list[list[int]]


def columns_from_exact_totals(case: Case) -> UnnamedColumns:
    """Return the shortest vectors of the lattice that measurements span, as columns of all rows."""
    others = sum(width for party, width in case.widths.items() if party != case.party)
    told = [row for words in exact(case) for row in words]
    if others > MOST or len(told) < others:
        return UnnamedColumns(np.zeros((case.rows, 0)))
    return UnnamedColumns(short_columns(independent(np.array(told).T)))


def independent(Z: Numbers) -> Numbers:
    """Return as many of these columns as the space has dimensions, those first that say most."""
    lengths = np.linalg.norm(Z.astype(np.float64), axis=0)
    _, r, order = qr(Z[:, lengths > 0] / lengths[lengths > 0], mode="economic", pivoting=True)
    sizes = np.abs(np.diag(r))
    return Z[:, lengths > 0][:, order[: int((sizes > FAINT * sizes[0]).sum())]]


def short_columns(Z: Numbers) -> Floats:
    """Return as many short vectors in the space of these whole-numbered columns as it has dimensions."""
    n, rank = Z.shape
    scale = np.abs(Z).max(axis=0).astype(np.float64)
    rows = telling(Z / scale, min(n, MORE * rank))
    part = [[int(value) for value in Z[row]] for row in rows]
    basis = np.array(shortest(orthogonal(orthogonal(part, len(part) - rank), rank)), dtype=np.float64)
    # every vector of the space is known from its values at the rows that were looked at
    factors = np.linalg.lstsq(Z[rows] / scale, basis.T, rcond=None)[0]
    found: Floats = (Z / scale) @ factors
    return found


def telling(Z: Floats, count: int) -> Rows:
    """Return rows that differ most from one another: there columns are long, and least alike."""
    left = np.arange(len(Z))
    chosen: list[int] = []
    while len(chosen) < count:
        order = qr(Z[left].T, mode="r", pivoting=True)[1][: min(Z.shape[1], count - len(chosen))]
        chosen += left[order].tolist()
        left = np.delete(left, order)
    return np.sort(chosen)


def orthogonal(columns: Vectors, count: int) -> Vectors:
    """Return a reduced basis, given as rows of `count` columns, of what is orthogonal to all these columns.

    `columns` has one row for every coordinate. The result has one row for every coordinate, too.

    >>> basis = np.array(orthogonal([[1], [1], [0]], 2))
    >>> np.abs(basis).tolist(), (np.array([1, 1, 0]) @ basis).tolist()
    ([[0, 1], [0, 1], [1, 0]], [0, 0])
    """
    size = len(columns)
    weighted = [
        [HEAVY * value for value in row] + [int(i == j) for j in range(size)] for i, row in enumerate(columns)
    ]
    width = len(columns[0])
    kernel = [row[width:] for row in reduced(weighted) if not any(row[:width])]
    if len(kernel) != count:
        raise ArithmeticError(f"{len(kernel)} vectors are orthogonal, {count} were due")
    return [list(values) for values in zip(*kernel, strict=True)]


def shortest(columns: Vectors) -> Vectors:
    """Return the shortest independent vectors among small combinations of a basis, whose vectors are
    columns."""
    basis = np.array(columns, dtype=object).T
    rank, reach = len(basis), 1 if len(basis) > 7 else 2
    factors = np.array(list(product(range(-reach, reach + 1), repeat=rank)), dtype=np.int64)
    floats = basis.astype(np.float64)
    lengths = np.sum((factors @ floats) ** 2, axis=1)
    chosen: list[list[int]] = []
    for at in np.argsort(lengths, kind="stable")[1:]:  # the first is zero
        candidate = [*chosen, factors[at].tolist()]
        if np.linalg.matrix_rank(np.array(candidate)) == len(candidate):
            chosen = candidate
        if len(chosen) == rank:
            break
    return [[int(value) for value in row] for row in np.array(chosen, dtype=object) @ basis]


def reduced(vectors: Vectors) -> Vectors:
    """Return the LLL-reduced basis of a lattice, in whole numbers throughout (Cohen 1993, Algorithm
    2.6.7)."""
    b = [list(vector) for vector in vectors]
    state = _Integral(b)
    k = 1
    while k < len(b):
        state.size_reduce(k, k - 1)
        if state.swaps(k):
            k = max(1, k - 1)
            continue
        for j in range(k - 2, -1, -1):
            state.size_reduce(k, j)
        k += 1
    return b


class _Integral:
    """Gram-Schmidt coefficients times the determinants that make them whole: d and lambda."""

    def __init__(self, b: Vectors) -> None:
        self.b, count = b, len(b)
        self.d = [1] + [0] * count
        self.lam = [[0] * count for _ in range(count)]
        for i in range(count):
            for j in range(i + 1):
                u = _dot(b[i], b[j])
                for k in range(j):
                    u = (self.d[k + 1] * u - self.lam[i][k] * self.lam[j][k]) // self.d[k]
                if j < i:
                    self.lam[i][j] = u
                else:
                    self.d[i + 1] = u

    def size_reduce(self, k: int, j: int) -> None:
        """Take from vector k as much of vector j as it has."""
        lam, d = self.lam[k], self.d[j + 1]
        if 2 * abs(lam[j]) <= d:
            return
        q = (2 * lam[j] + d) // (2 * d)
        self.b[k] = [one - q * other for one, other in zip(self.b[k], self.b[j], strict=True)]
        lam[j] -= q * d
        for i in range(j):
            lam[i] -= q * self.lam[j][i]

    def swaps(self, k: int) -> bool:
        """Swap vectors k and k - 1 if they are in the wrong order (Lovasz's condition with 3/4)."""
        d, lam, b = self.d, self.lam, self.b
        m = lam[k][k - 1]
        if 4 * (d[k + 1] * d[k - 1] + m * m) >= 3 * d[k] * d[k]:
            return False
        b[k], b[k - 1] = b[k - 1], b[k]
        for j in range(k - 1):
            lam[k][j], lam[k - 1][j] = lam[k - 1][j], lam[k][j]
        new = (d[k - 1] * d[k + 1] + m * m) // d[k]
        for i in range(k + 1, len(b)):
            t = lam[i][k]
            lam[i][k] = (d[k + 1] * lam[i][k - 1] - m * t) // d[k]
            lam[i][k - 1] = (new * t + m * lam[i][k]) // d[k + 1]
        d[k] = new
        return True


def _dot(one: list[int], other: list[int]) -> int:
    return sum(x * y for x, y in zip(one, other, strict=True))
