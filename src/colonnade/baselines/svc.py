"""Support vector machine on pooled columns: scikit-learn's SVC, which is LIBSVM inside.

Its kernel is that of the kernel conversation, so the two differ only in how they are trained.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import SVC

from colonnade.data.table import Matrix
from colonnade.models.bandwidth import Fraction, bandwidth, pair_distances, sample_of, sampled_pairs
from colonnade.models.random_features import KERNELS

Floats = NDArray[np.float64]


def median_bandwidth(X: Matrix, y: Floats, fraction: Fraction, seed: int) -> float:
    """The Gaussian kernel's sigma that the federation would find, on pooled rows."""
    kernel = KERNELS["gaussian"]
    pairs = sampled_pairs(np.random.default_rng([seed, X.shape[0]]), int(X.shape[0]), fraction)
    return bandwidth(kernel, pair_distances(kernel, X, pairs), fraction, y[sample_of(pairs)]) or 1.0


def fit_svc(X: Matrix, y: Floats, *, sigma: float, C: float = 1.0) -> SVC:
    """A Gaussian kernel of bandwidth sigma."""
    return SVC(C=C, kernel="rbf", gamma=1 / (2 * sigma**2), cache_size=500).fit(X, y)


def trade_off(rows: int, l2: float) -> float:
    """C = 1 / (n lambda): what lambda / 2 ||f||^2 beside a mean loss is to LIBSVM, within reason."""
    return min(1 / (rows * l2), 1e3) if l2 > 0 else 1e3
