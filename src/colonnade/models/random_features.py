"""Random features of a kernel whose columns lie with several parties (Rahimi and Recht 2008).

A shift-invariant kernel is an average over random directions: k(x, x') = E[phi(x) phi(x')] with
phi(x) = sqrt(2) cos(omega'x + b), b uniform on [0, 2 pi]. The components of omega are independent, and
omega'x is a sum over columns, so every party can draw the components of its own columns by itself and
add its own part of omega'x. Both kernels' distances are sums over columns too, so the parties can find a
bandwidth without showing a column.

Features that are used in one round and then only to predict need not be kept: `SeededFeatures` draws a block
of them from seeds whenever it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

from colonnade.arrays import Floats, Matrix, Numbers

SQRT2 = float(np.sqrt(2.0))


class KernelFunction(Protocol):
    """A shift-invariant kernel whose distance is a sum over columns."""

    @property
    def name(self) -> str: ...

    def distance(self, difference: Matrix) -> Floats:
        """Return what a block's columns add to the distance of every pair of rows, from their differences."""
        ...

    def length(self, distance: Floats) -> Floats:
        """Return the distance in the unit of the bandwidth sigma."""
        ...

    def value(self, distance: Floats, sigma: float) -> Floats:
        """Return k(x, x') of pairs at these distances."""
        ...

    def directions(self, rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
        """Return the components of random directions for sigma = 1."""
        ...


@dataclass(frozen=True)
class Gaussian:
    """exp(-||x - x'||^2 / (2 sigma^2)), whose directions are normal."""

    name: str = "gaussian"

    def distance(self, difference: Matrix) -> Floats:
        return _row_sums(difference**2 if isinstance(difference, np.ndarray) else difference.power(2))

    def length(self, distance: Floats) -> Floats:
        return np.sqrt(distance)

    def value(self, distance: Floats, sigma: float) -> Floats:
        return np.exp(-distance / (2 * sigma**2))

    def directions(self, rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
        return rng.standard_normal(shape)


@dataclass(frozen=True)
class Laplace:
    """exp(-||x - x'||_1 / sigma), whose directions are Cauchy."""

    name: str = "laplace"

    def distance(self, difference: Matrix) -> Floats:
        return _row_sums(abs(difference))

    def length(self, distance: Floats) -> Floats:
        return distance

    def value(self, distance: Floats, sigma: float) -> Floats:
        return np.exp(-distance / sigma)

    def directions(self, rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
        return rng.standard_cauchy(shape)


KERNELS: dict[str, KernelFunction] = {kernel.name: kernel for kernel in (Gaussian(), Laplace())}


@dataclass(frozen=True, eq=False)
class RandomFeatures:
    """One party's part of some random features: the directions of its columns, and the offsets it adds.

    An offset is added by one party; at the others it is 0.
    """

    omega: Floats
    b: Floats

    @property
    def count(self) -> int:
        return len(self.b)

    def project(self, X: Matrix, first: int | None = None) -> Floats:
        """Return this party's part of omega'x + b, for all features or the first few."""
        projections: Floats = np.asarray(X @ self.omega[:, :first])
        projections += self.b[:first]
        return projections

    def pieces(self, most: int) -> Iterator[RandomFeatures]:
        """Yield the features, at most this many at a time."""
        for first in range(0, self.count, most):
            some = slice(first, first + most)
            yield RandomFeatures(self.omega[:, some], self.b[some])

    def widths(self, most: int) -> list[int]:
        """Return how many features each of these pieces has."""
        return [min(most, self.count - first) for first in range(0, self.count, most)]

    def whole(self) -> RandomFeatures:
        """Return all of them."""
        return self


@dataclass(frozen=True, eq=False)
class SeededFeatures:
    """The same, drawn when they are asked for: block j from the seeds and j, always the same.

    `adds` says of every block whether its offsets are this party's to add.
    """

    kind: str  # of the kernel
    sigma: float
    width: int  # columns of this party
    block: int  # features of a block
    seeds: Numbers  # whole numbers, [2, words]: of the directions, and of the offsets
    adds: Numbers

    @property
    def count(self) -> int:
        return self.block * len(self.adds)

    def drawn(self, number: int) -> RandomFeatures:
        """Return the features of a block."""
        directions, offsets = (np.random.default_rng([*words, number]) for words in self.seeds.tolist())
        omega = KERNELS[self.kind].directions(directions, (self.width, self.block)) / self.sigma
        b = offsets.uniform(0.0, 2 * np.pi, self.block) if self.adds[number] else np.zeros(self.block)
        return RandomFeatures(omega, b)

    def pieces(self, most: int) -> Iterator[RandomFeatures]:
        """Yield the features, at most this many at a time but a block at least."""
        together = max(1, most // self.block)
        for first in range(0, len(self.adds), together):
            numbers = range(first, min(first + together, len(self.adds)))
            yield joined([self.drawn(number) for number in numbers])

    def widths(self, most: int) -> list[int]:
        """Return how many features each of these pieces has."""
        together = max(1, most // self.block)
        blocks = len(self.adds)
        return [self.block * min(together, blocks - first) for first in range(0, blocks, together)]

    def whole(self) -> RandomFeatures:
        """Return all of them."""
        return joined([self.drawn(number) for number in range(len(self.adds))])


FeaturePart: TypeAlias = RandomFeatures | SeededFeatures


def joined(parts: Sequence[RandomFeatures]) -> RandomFeatures:
    """Return several features as one."""
    if len(parts) == 1:
        return parts[0]
    return RandomFeatures(
        np.hstack([part.omega for part in parts]), np.concatenate([part.b for part in parts])
    )


def phi(projections: Floats) -> Floats:
    """Return the features sqrt(2) cos(projections), computed in place of the projections."""
    np.cos(projections, out=projections)
    projections *= SQRT2
    return projections


def _row_sums(X: Matrix) -> Floats:
    return np.asarray(X.sum(axis=1), dtype=np.float64).ravel()
