"""The bandwidth sigma of a kernel, chosen from distances between a few sampled rows.

The unit is the median distance of two rows. Which fraction of it is right depends on the data: a small one
where labels change from row to row, a large one where a plane divides them. With `fraction = "auto"` it is
the one whose kernel ridge regression predicts a sampled row best from the other sampled rows. That needs no
second fit: with G = (K + I)^-1 the error at a row left out is (G y)_i / G_ii. The same sample chooses the
penalty, where the job leaves that open (`colonnade.models.penalty`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from colonnade.arrays import Floats, Matrix, Rows
from colonnade.losses import Loss, labels_of
from colonnade.models.penalty import best_ridge
from colonnade.models.random_features import KernelFunction

Fraction: TypeAlias = float | Literal["auto"]
Sigma: TypeAlias = float | Literal["median"]

PAIRS = 1024
ROWS = 1024
FRACTIONS = tuple(2 ** (k / 4) for k in range(-8, 5))  # 0.25 to 2
CHUNK = 2**14


@dataclass(frozen=True, eq=False)
class Sample:
    """Pairs of rows whose distances give the bandwidth, unless the job sets it (`sigma` is a number)."""

    kernel: KernelFunction
    sigma: Sigma
    fraction: Fraction
    pairs: tuple[Rows, Rows]

    @classmethod
    def draw(
        cls,
        rng: np.random.Generator,
        rows: int,
        kernel: KernelFunction,
        sigma: Sigma,
        fraction: Fraction,
        *,
        penalty: bool = False,
    ) -> Sample:
        """Return a sample of this many rows, the same at all parties that draw from the same generator.

        Where neither a fraction nor the penalty is to be chosen a few pairs are enough, for `spread`.
        """
        every = penalty or (sigma == "median" and fraction == "auto")
        return cls(kernel, sigma, fraction, sampled_pairs(rng, rows, every=every))

    def distances(self, X: Matrix) -> Floats:
        """Return what the columns of X add to the distance of every pair."""
        return pair_distances(self.kernel, X, self.pairs)

    def bandwidth(self, distance: Floats, y: Floats, classes: int = 1) -> float | None:
        """Return sigma, from the distances over all columns; None if all rows are alike."""
        if self.sigma != "median":
            return self.sigma
        targets = targets_of(labels_of(y), classes)[sample_of(self.pairs)]
        return bandwidth(self.kernel, distance, self.fraction, targets)

    def penalty(self, distance: Floats, sigma: float, y: Floats, loss: Loss, classes: int = 1) -> float:
        """Return lambda for all rows of y, which may have weights; the sample has every pair of some of
        them."""
        K = kernel_matrix(self.kernel.value(distance, sigma), 1.0)
        return best_ridge(K, y[sample_of(self.pairs)], loss, classes) / len(y)


def sampled_pairs(rng: np.random.Generator, rows: int, *, every: bool) -> tuple[Rows, Rows]:
    """Return pairs of different rows: random ones, or every pair of a few rows, where something is to be
    chosen.

    The pairs of the sample 2, 5, 7 come as (2, 5), (2, 7), (5, 7), so the sample can be read off them.
    """
    if not every:
        pairs = rng.integers(rows, size=(2, PAIRS))
        return tuple(pairs[:, pairs[0] != pairs[1]])
    sample = np.sort(rng.choice(rows, min(rows, ROWS), replace=False))
    first, second = np.triu_indices(len(sample), 1)
    return sample[first], sample[second]


def sample_of(pairs: tuple[Rows, Rows]) -> Rows:
    """Return the rows of `sampled_pairs`, in their order."""
    return np.unique(np.concatenate(pairs))


def pair_distances(kernel: KernelFunction, X: Matrix, pairs: tuple[Rows, Rows]) -> Floats:
    """Return what the columns of X add to the distance of every pair, computed some pairs at a time."""
    left, right = pairs
    starts = range(0, len(left), CHUNK)
    parts = [kernel.distance(X[left[at : at + CHUNK]] - X[right[at : at + CHUNK]]) for at in starts]
    return np.concatenate([np.empty(0), *parts])


def bandwidth(kernel: KernelFunction, distance: Floats, fraction: Fraction, targets: Floats) -> float | None:
    """Return a fraction of the median distance between different rows; None if all rows are alike.

    To choose the fraction, `distance` holds every pair of the rows of `targets`, which is y or has a column
    for every class.
    """
    apart = kernel.length(distance[distance > 0])
    if not len(apart):
        return None
    median = float(np.median(apart))
    if fraction != "auto":
        return fraction * median
    return min(
        (median * part for part in FRACTIONS),
        key=lambda sigma: left_out_error(kernel.value(distance, sigma), targets),
    )


def left_out_error(values: Floats, targets: Floats) -> float:
    """Return the mean square error at a row of kernel ridge regression on all other rows; k of every pair is
    given.

    The ridge is 1 = k(x, x): as much of a label is taken to be noise as signal.
    """
    from scipy.linalg import inv  # only where a fraction is chosen; it takes long to load

    G = inv(kernel_matrix(values, 2.0), overwrite_a=True, check_finite=False)
    error = (G @ targets).T / G.diagonal()
    return float(np.mean(error**2))


def kernel_matrix(values: Floats, diagonal: float) -> Floats:
    """Return K of all rows, from k of every pair."""
    from scipy.spatial.distance import squareform

    K: Floats = squareform(values) if len(values) else np.zeros((1, 1))
    np.fill_diagonal(K, diagonal)
    return K


def targets_of(y: Floats, classes: int) -> Floats:
    """Return y itself, or a column of 0 and 1 for every class."""
    return y if classes == 1 else np.eye(classes)[y.astype(np.int64)]


def spread(kernel: KernelFunction, distance: Floats, sigma: float) -> float:
    """Return the root mean square of k over pairs of rows: ||K||_F / n, which bounds the largest eigenvalue /
    n."""
    return float(np.sqrt(np.mean(kernel.value(distance, sigma) ** 2))) if len(distance) else 1.0
