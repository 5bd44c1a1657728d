"""Doubly stochastic gradients on pooled data, as simple as possible: one feature after another.

Round t takes `batch` rows and the t-th block of features; when the features run out, all of them
step, with momentum. A row counts as much as its weight.
"""

from __future__ import annotations

import numpy as np

from colonnade.arrays import Floats
from colonnade.conversations.kernel.predict import KernelShare
from colonnade.losses import Loss
from colonnade.run.federate import Finished


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
    momentum: float = 0.0,
    weight: Floats | None = None,
) -> Floats:
    """The coefficient of every feature after the last round."""
    n, D = len(X), len(b)
    outputs = (int(y.max()) + 1,) if loss.task == "multiclass" else ()
    alpha: Floats = np.zeros((D, *outputs))
    velocity = np.zeros_like(alpha)
    rounds, t = -(-n // batch) * epochs, 0
    for epoch in range(epochs):
        order = np.random.default_rng([seed, epoch]).permutation(n)
        for rows in np.array_split(order, -(-n // batch)):
            gamma = step * (1 - t / rounds) if falling else step
            f = np.zeros((len(rows), *outputs))
            for i in range(D):
                f += np.multiply.outer(phi(X[rows], omega[:, i], b[i]), alpha[i])
            theta = loss.dz(f, y[rows])
            if weight is not None:
                theta = (theta.T * weight[rows]).T
            for i in range(D):
                step_i = -gamma * (phi(X[rows], omega[:, i], b[i]) @ theta) / len(rows)
                if t * block <= i < (t + 1) * block:
                    alpha[i] = step_i / block
                elif t * block < D:
                    alpha[i] *= 1 - gamma * l2
                else:
                    velocity[i] = momentum * velocity[i] + step_i / D - gamma * l2 * alpha[i]
                    alpha[i] += velocity[i]
            t += 1
    return alpha


def phi(X: Floats, omega: Floats, b: float) -> Floats:
    """One random feature of every row."""
    return np.asarray(np.sqrt(2) * np.cos(X @ omega + b), dtype=np.float64)


def features_of(done: Finished, owner: str) -> tuple[Floats, Floats]:
    """omega of all columns and b of an owner's features, from every party's share."""
    parts = [KernelShare.from_arrays(share.weights).features[owner].whole() for share in done.shares.values()]
    return np.vstack([part.omega for part in parts]), np.sum([part.b for part in parts], axis=0)
