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

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dtrsv

Floats = NDArray[np.float64]


@dataclass
class LimitedMemory:
    """The last `memory` pairs of one block, and the inner products that the table has of them.

    `vectors` are s_1, y_1, s_2, y_2, ... of this block; `products` are inner products over all blocks
    that share the table. Both are replaced, never changed, so that a copy of the memory stays what it was.
    """

    memory: int
    delta: float
    vectors: list[Floats] = field(default_factory=list)
    products: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    gamma: float = 1.0
    pinned: int = 0  # the first pairs, which stay

    @property
    def pairs(self) -> int:
        return len(self.vectors) // 2

    def dots(self, *others: Floats) -> Floats:
        """This block's part of the inner products of the stored vectors (and the others) with the others."""
        known = np.array([*self.vectors, *others]).reshape(len(self.vectors) + len(others), -1)
        products: Floats = known @ known[len(self.vectors) :].T
        return products

    def unpin(self) -> None:
        first = 2 * self.pinned
        self.vectors, self.products, self.pinned = self.vectors[first:], self.products[first:, first:], 0

    def pin(self, vectors: Sequence[Floats], products: Floats, gamma: float) -> None:
        """Steepest directions s and their y, before all other pairs; `gamma` is the curvature below them.

        `products` are their inner products (`dots(*vectors)`, summed over the blocks).
        """
        old, new = len(self.vectors), len(vectors)
        table = np.empty((new + old, new + old))
        table[new:, new:] = self.products
        table[new:, :new] = products[:old]
        table[:new, new:] = products[:old].T
        table[:new, :new] = products[old:]
        self.vectors = [*vectors, *self.vectors]
        self.products, self.gamma, self.pinned = table, gamma, new // 2

    def add(self, s: Floats, y: Floats, products: Floats, floor: float) -> bool:
        """Take in a pair; `products` are its inner products (`dots(s, y)`, summed over the blocks).

        `floor` bounds 1 / H_0 from below, where nothing is pinned. False if there was no movement to learn
        from.
        """
        column_s, column_y = products[:, 0], products[:, 1]
        ss, sy, yy = column_s[-2], column_y[-2], column_y[-1]
        if not ss > 0:
            return False
        if not self.pinned:
            # s and y at right angles say nothing about the scale, and next to nothing would make H_0 vanish
            scale = yy / max(sy, 1e-6 * np.sqrt(ss * yy)) if sy > 0 else 0.0
            self.gamma = float(max(scale, self.delta, floor))
        sigma = self.gamma * ss
        if sy < 0.3 * sigma:
            theta = 0.7 * sigma / (sigma - sy)
            # y_hat = theta y + (1 - theta) gamma s, and its products by the same combination
            y = theta * y + (1 - theta) * self.gamma * s
            column_y = theta * column_y + (1 - theta) * self.gamma * column_s
            column_y[-1] = _quadratic(theta, (1 - theta) * self.gamma, yy, sy, ss)
        size = len(self.vectors)
        table = np.empty((size + 2, size + 2))
        table[:size, :size] = self.products
        table[:, size] = column_s
        table[:, size + 1] = column_y
        table[size, :] = column_s
        table[size + 1, :] = column_y
        table[size, size + 1] = table[size + 1, size] = column_y[-2]
        self.vectors = [*self.vectors, s, y]
        self.products = table
        if self.pairs - self.pinned > self.memory:
            oldest = 2 * self.pinned
            self.vectors = self.vectors[:oldest] + self.vectors[oldest + 2 :]
            self.products = np.delete(np.delete(table, [oldest, oldest + 1], 0), [oldest, oldest + 1], 1)
        return True

    def direction(self, v: Floats, products: Floats) -> Floats:
        """H v; `products` are the inner products of the stored vectors with v, over all blocks."""
        scale, coefficients = self.coefficients(products)
        if not self.vectors:
            return scale * v
        direction: Floats = scale * v + np.tensordot(coefficients, np.array(self.vectors), 1)
        return direction

    def coefficients(self, products: Floats) -> tuple[float, Floats]:
        """H v = scale v + sum_j coefficient_j vector_j: the two-loop recursion on coefficients.

        Each loop solves for what the loop's next number leaves of the ones before: a triangular system with
        the products of every s with the y that came after it.
        """
        scale, c = 1 / self.gamma, np.empty(len(products))
        if not len(products):
            return scale, c
        SY, YY = self.products[::2, 1::2], self.products[1::2, 1::2]
        R = np.asfortranarray(np.triu(SY))
        alpha = dtrsv(R, products[::2])  # newest pair first
        c[1::2] = -scale * alpha
        c[::2] = dtrsv(R, SY.diagonal() * alpha + scale * (YY @ alpha - products[1::2]), trans=1)
        return scale, c


def _quadratic(a: float, b: float, yy: float, sy: float, ss: float) -> float:
    """||a y + b s||^2"""
    return a * a * yy + 2 * a * b * sy + b * b * ss
