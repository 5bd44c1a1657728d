"""Support vector machine on pooled columns: scikit-learn's SVC, which is LIBSVM inside.

Its kernel is that of the kernel conversation, so the two differ only in how they are trained.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from colonnade.arrays import Floats, Matrix
from colonnade.losses import Loss, labels_of, weights_of
from colonnade.models.bandwidth import Fraction, Sample, Sigma
from colonnade.models.random_features import KERNELS

if TYPE_CHECKING:
    from sklearn.svm import SVC


def bandwidth_and_penalty(
    X: Matrix,
    y: Floats,
    loss: Loss,
    *,
    sigma: Sigma = "median",
    fraction: Fraction = "auto",
    l2: float | Literal["auto"] = "auto",
    seed: int = 0,
) -> tuple[float, float]:
    """Return the bandwidth of the Gaussian kernel and lambda, found from pooled rows as a federation finds
    them."""
    rows = int(X.shape[0])
    rng = np.random.default_rng([seed, rows])
    sample = Sample.draw(rng, rows, KERNELS["gaussian"], sigma, fraction, penalty=l2 == "auto")
    classes = int(labels_of(y).max()) + 1 if loss.task == "multiclass" else 1
    distance = sample.distances(X)
    found = sample.bandwidth(distance, y, classes) or 1.0
    return found, sample.penalty(distance, found, y, loss, classes) if l2 == "auto" else l2


def fit_svc(X: Matrix, y: Floats, *, sigma: float, C: float = 1.0) -> SVC:
    """Return a support vector machine with a Gaussian kernel of bandwidth sigma; `y` may have weights beside
    it."""
    from sklearn.svm import SVC  # takes a second to load, and parties need only the numbers below

    return SVC(C=C, kernel="rbf", gamma=1 / (2 * sigma**2), cache_size=2000).fit(
        X, labels_of(y), sample_weight=weights_of(y)
    )


def trade_off(rows: int, l2: float) -> float:
    """Return LIBSVM's C for a penalty lambda / 2 ||f||^2 beside a mean loss: 1 / (n lambda), at most 1000."""
    return min(1 / (rows * l2), 1e3) if l2 > 0 else 1e3
