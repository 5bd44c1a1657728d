"""Zeroth-order training with nothing federated about it: one loop, one direction at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from colonnade.arrays import Numbers
from colonnade.losses import Loss
from colonnade.regularizers import Regularizer


def batches(n: int, batch: int, epochs: int, seed: int) -> list[NDArray[np.int64]]:
    """The rows of every round of the synchronous schedule."""
    found = []
    for epoch in range(epochs):
        order = np.random.default_rng([seed, 0, epoch]).permutation(n)
        found += [order[start : start + batch] for start in range(0, n, batch)]
    return found


def zeroth_order(
    blocks: list[Numbers],
    y: Numbers,
    loss: Loss,
    regularizer: Regularizer,
    rounds: list[NDArray[np.int64]],
    *,
    l2: float,
    step: float,
    K: int,
    mu: float,
    sphere: bool,
    seed: int,
    weight: Numbers | None = None,
) -> list[Numbers]:
    """The weights of linear blocks whose scores are summed; each estimates its gradient from loss values."""
    w = [np.zeros(X.shape[1]) for X in blocks]
    heavy = np.ones(len(y)) if weight is None else weight
    rngs = [np.random.default_rng([seed, m, 2]) for m in range(len(blocks))]
    for rows in rounds:
        scores = [X[rows] @ v for X, v in zip(blocks, w, strict=True)]
        moved = []
        for m, X in enumerate(blocks):
            d, others = X.shape[1], sum(s for j, s in enumerate(scores) if j != m)

            def f(v: Numbers, X: Numbers = X, others: Any = others) -> float:
                z = others + X[rows] @ v  # noqa: B023  used at once
                return float((heavy[rows] * loss.value(z, y[rows])).mean()) + l2 * regularizer.value(v)  # noqa: B023

            g = np.zeros(d)
            draws = rngs[m].standard_normal((K, d))
            for u in draws:
                u = u / np.linalg.norm(u) if sphere else u
                g += (d if sphere else 1) * (f(w[m] + mu * u) - f(w[m])) / mu * u / K
            moved.append(w[m] - step * g)
        w = moved
    return w


def first_order(
    blocks: list[Numbers],
    y: Numbers,
    loss: Loss,
    regularizer: Regularizer,
    rounds: list[NDArray[np.int64]],
    *,
    l2: float,
    step: float,
) -> list[Numbers]:
    """The weights of the same blocks, trained by gradient."""
    X, w = np.hstack(blocks), np.zeros(sum(block.shape[1] for block in blocks))
    for rows in rounds:
        theta = loss.dz(X[rows] @ w, y[rows])
        w = w - step * (X[rows].T @ theta / len(rows) + l2 * regularizer.gradient(w))
    return list(np.split(w, np.cumsum([block.shape[1] for block in blocks])[:-1]))
