"""Mini-batch SGD on pooled data, as simple as possible: what a synchronous run must equal."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from colonnade.arrays import Floats
from colonnade.losses import LOSSES, Loss
from colonnade.regularizers import Regularizer

BOUNDED_LOSSES = {name: loss for name, loss in LOSSES.items() if np.isfinite(loss.smoothness)}
SCALAR_LOSSES = {name: loss for name, loss in BOUNDED_LOSSES.items() if loss.task in ("binary", "regression")}
"""The losses of one score per row."""


def pooled_sgd(
    X: Floats,
    y: Floats,
    loss: Loss,
    regularizer: Regularizer,
    *,
    l2: float,
    step: float | Sequence[float],
    batch: int,
    epochs: int,
    seed: int,
    reshuffle: bool = True,
) -> Floats:
    """Weights after `epochs` shuffled passes from zero; every pass is cut into equal batches.

    With one step for each pass, steps also fade to zero by the end of the run, as automatic ones do.
    """
    n, d = X.shape
    w = np.zeros(d)
    number, rounds = 0, epochs * -(-n // batch)
    for epoch in range(epochs):
        order = np.random.default_rng([seed, epoch if reshuffle else 0]).permutation(n)
        for rows in np.array_split(order, -(-n // batch)):
            theta = loss.dz(X[rows] @ w, y[rows])
            rate = step if isinstance(step, float) else step[epoch] * (1 - number / rounds)
            w = w - rate * (X[rows].T @ theta / len(rows) + l2 * regularizer.gradient(w))
            number += 1
    return w


def objective(X: Floats, y: Floats, w: Floats, loss: Loss, regularizer: Regularizer, l2: float) -> float:
    """The mean loss plus the penalty."""
    return float(np.mean([loss.value(x @ w, label) for x, label in zip(X, y, strict=True)])) + l2 * float(
        regularizer.value(w)
    )
