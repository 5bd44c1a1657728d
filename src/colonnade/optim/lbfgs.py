"""Stochastic damped L-BFGS (AsySQN, Algorithm 1), with every inner product in one table.

A direction H v is a combination of v, the differences s_i of the weights and the differences y_i of the
gradients. Its coefficients need only inner products among these vectors. A party that works on its own
block computes them itself; parties that share one H over all blocks keep their parts of the vectors to
themselves and add up the inner products, which are plain numbers (vector-free L-BFGS).

Damping (Eq. 1-2 of the paper, with one H_0 in both places) keeps H positive: y is pulled towards
H_0^-1 s whenever s'y < 0.3 s' H_0^-1 s.

H_0 must not be larger than the steepest direction that the pairs leave to it allows, or steps along that
direction grow from one to the next. Where the steepest directions are known they are `pinned`: they are
pairs that never drop out, and the curvature below them is the scale of H_0. Where they are not, the scale
is the newest pair's, bounded: delta keeps it from below, and from above it may not exceed what first-order
steps are known to survive, relaxed a little with every pair, because the pairs take the steepest
directions out of its hands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property

import numpy as np

from colonnade.arrays import Floats


@dataclass(frozen=True, eq=False)
class Inverse:
    """The approximate inverse Hessian H that some pairs (s, y) define.

    `vectors` are s_1, y_1, s_2, y_2, ... of one block, a row each; `products` are their inner products over
    all blocks that share the table; H_0 is 1 / gamma.
    """

    vectors: Floats
    products: Floats
    gamma: float

    def dots(self, *others: Floats) -> Floats:
        """Return this block's part of the inner products of all vectors with `others`.

        A row for every stored vector and then for each of the others, a column for each of the others.
        """
        new = np.array(others).reshape(len(others), -1)
        known = self.vectors.reshape(len(self.vectors), new.shape[1])
        # in two products: one of all vectors in a row would copy those that are known, at every step
        return np.concatenate([known @ new.T, new @ new.T])

    def direction(self, v: Floats, products: Floats) -> Floats:
        """Return H v; `products` are the inner products of the stored vectors with v, over all blocks."""
        scaled: Floats = v / self.gamma
        if not len(products):
            return scaled
        return scaled + (self.coefficients(products) @ self.vectors).reshape(v.shape)

    def coefficients(self, products: Floats) -> Floats:
        """Return the c_j in H v = v / gamma + sum_j c_j vector_j: the two-loop recursion on coefficients.

        Each of the two loops is a triangular system, whose matrix holds the products of every s with the y
        that came after it.
        """
        R, D, YY = self._systems
        dtrsv = _dtrsv()
        c = np.empty(len(products))
        alpha = dtrsv(R, products[::2])  # newest pair first
        c[1::2] = alpha / -self.gamma
        c[::2] = dtrsv(R, D * alpha + (YY @ alpha - products[1::2]) / self.gamma, trans=1)
        return c

    def measures(self, products: Floats, squared_length: float) -> tuple[float, float]:
        """Return v'Hv and |Hv|^2 over all blocks, from the products as in `direction` and |v|^2."""
        plain = squared_length / self.gamma
        if not len(products):
            return plain, plain / self.gamma
        c = self.coefficients(products)
        along = float(c @ products)
        return plain + along, (plain + 2 * along) / self.gamma + float(c @ self.products @ c)

    @cached_property
    def _systems(self) -> tuple[Floats, Floats, Floats]:
        SY, YY = self.products[::2, 1::2], self.products[1::2, 1::2]
        return np.asfortranarray(np.triu(SY)), SY.diagonal().copy(), YY.copy()


def _no_pairs() -> Inverse:
    return Inverse(np.zeros((0, 0)), np.zeros((0, 0)), 1.0)


@dataclass(eq=False)
class LimitedMemory:
    """The last `memory` pairs (s, y) of one block, with the table of their inner products."""

    memory: int
    delta: float
    pinned: int = field(default=0, init=False)  # the first pairs, which stay
    # replaced, never changed: a reference that is kept stays the H of that moment
    inverse: Inverse = field(default_factory=_no_pairs, init=False)

    @property
    def vectors(self) -> Floats:
        return self.inverse.vectors

    @property
    def products(self) -> Floats:
        return self.inverse.products

    @property
    def gamma(self) -> float:
        return self.inverse.gamma

    @property
    def pairs(self) -> int:
        return len(self.vectors) // 2

    def dots(self, *others: Floats) -> Floats:
        return self.inverse.dots(*others)

    def direction(self, v: Floats, products: Floats) -> Floats:
        return self.inverse.direction(v, products)

    def forget(self) -> None:
        """Drop all pairs that are not pinned."""
        first = 2 * self.pinned
        self.inverse = Inverse(self.vectors[:first], self.products[:first, :first], self.gamma)

    def unpin(self) -> None:
        """Drop the pinned pairs."""
        first = 2 * self.pinned
        self.pinned = 0
        self.inverse = Inverse(self.vectors[first:], self.products[first:, first:], self.gamma)

    def pin(self, vectors: Sequence[Floats], products: Floats, gamma: float) -> None:
        """Put the steepest directions s and their y before all other pairs, where they stay.

        `gamma` is the curvature below them, and `products` are their inner products (`dots(*vectors)`,
        summed over the blocks).
        """
        old, new = len(self.vectors), len(vectors)
        table = np.empty((new + old, new + old))
        table[new:, new:] = self.products
        table[new:, :new] = products[:old]
        table[:new, new:] = products[:old].T
        table[:new, :new] = products[old:]
        self.pinned = new // 2
        self.inverse = Inverse(_rows(vectors, self.vectors), table, gamma)

    def add(self, s: Floats, y: Floats, products: Floats, floor: float) -> bool:
        """Add a pair (s, y), and drop the oldest if there are too many. False if s is 0: no pair is added.

        `products` are its inner products (`dots(s, y)`, summed over the blocks). `floor` bounds 1 / H_0
        from below, where nothing is pinned.
        """
        column_s, column_y = products[:, 0], products[:, 1]
        ss, sy, yy = column_s[-2], column_y[-2], column_y[-1]
        if not ss > 0:
            return False
        gamma = self.gamma
        if not self.pinned:
            # s and y at right angles say nothing about the scale, and next to nothing would make H_0 vanish
            scale = yy / max(sy, 1e-6 * np.sqrt(ss * yy)) if sy > 0 else 0.0
            gamma = float(max(scale, self.delta, floor))
        sigma = gamma * ss
        if sy < 0.3 * sigma:
            theta = 0.7 * sigma / (sigma - sy)
            # y_hat = theta y + (1 - theta) gamma s, and its products by the same combination
            y = theta * y + (1 - theta) * gamma * s
            column_y = theta * column_y + (1 - theta) * gamma * column_s
            column_y[-1] = _quadratic(theta, (1 - theta) * gamma, yy, sy, ss)
        self.append(s, y, np.column_stack([column_s, column_y]), gamma)
        return True

    def append(self, s: Floats, y: Floats, products: Floats, gamma: float) -> None:
        """Add a pair as it is, with H_0 = 1 / gamma, and drop the oldest if there are too many."""
        column_s, column_y = products[:, 0], products[:, 1]
        size = len(self.vectors)
        table = np.empty((size + 2, size + 2))
        table[:size, :size] = self.products
        table[:, size] = column_s
        table[:, size + 1] = column_y
        table[size, :] = column_s
        table[size + 1, :] = column_y
        table[size, size + 1] = table[size + 1, size] = column_y[-2]
        known = [self.vectors]
        if self.pairs + 1 - self.pinned > self.memory:
            oldest = 2 * self.pinned
            known = [self.vectors[:oldest], self.vectors[oldest + 2 :]]
            kept = [i for i in range(size + 2) if i not in (oldest, oldest + 1)]
            table = table[np.ix_(kept, kept)]
        self.inverse = Inverse(_rows(*known, [s, y]), table, gamma)


@cache
def _dtrsv() -> Callable[..., Floats]:
    """Return BLAS's solver of triangular systems; it is loaded late, as only quasi-Newton runs need it."""
    from scipy.linalg.blas import dtrsv

    solve: Callable[..., Floats] = dtrsv
    return solve


def _rows(*groups: Sequence[Floats] | Floats) -> Floats:
    """Return the vectors of all groups as one matrix, a row each."""
    return np.array([vector.ravel() for group in groups for vector in group])


def _quadratic(a: float, b: float, yy: float, sy: float, ss: float) -> float:
    """Return ||a y + b s||^2."""
    return a * a * yy + 2 * a * b * sy + b * b * ss
