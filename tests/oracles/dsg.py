"""Doubly stochastic gradients on pooled data, as short as it can be said: one feature after another.

Round t takes `batch` rows and the t-th block of features; when the features run out, all of them step.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from colonnade.losses import Loss

Floats = NDArray[np.float64]


def pooled_dsg(
    X: Floats,
    y: Floats,
    loss: Loss,
    omega: Floats,  # one column per feature, in the order of the rounds
    b: Floats,
    *,
    l2: float,
    step: float,
    batch: int,
    block: int,
    epochs: int,
    seed: int,
    falling: bool = False,
) -> Floats:
    """The coefficient of every feature after the last round."""
    n, D = len(X), len(b)
    outputs = (int(y.max()) + 1,) if loss.task == "multiclass" else ()
    alpha = np.zeros((D, *outputs))
    rounds, t = -(-n // batch) * epochs, 0
    for epoch in range(epochs):
        order = np.random.default_rng([seed, epoch]).permutation(n)
        for start in range(0, n, batch):
            rows = order[start : start + batch]
            gamma = step * (1 - t / rounds) if falling else step
            f = np.zeros((len(rows), *outputs))
            for i in range(D):
                f += np.multiply.outer(phi(X[rows], omega[:, i], b[i]), alpha[i])
            theta = loss.dz(f, y[rows])
            new = range(t * block, (t + 1) * block) if t * block < D else range(D)
            alpha *= 1 - gamma * l2
            for i in new:
                values = phi(X[rows], omega[:, i], b[i])
                alpha[i] -= gamma / len(new) * (values @ theta) / len(rows)
            t += 1
    return alpha


def phi(X: Floats, omega: Floats, b: float) -> Floats:
    values: Floats = np.sqrt(2) * np.cos(X @ omega + b)
    return values
