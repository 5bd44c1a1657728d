"""Accelerated gradients on pooled columns, in plain floating point: what training in parts must come to."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

Floats = np.ndarray


def accelerated(
    blocks: Sequence[Floats],
    penalties: Sequence[Floats],
    theta: Callable[[Floats], Floats],
    *,
    curvature: float,
    start: float,
    steps: int,
    length: float = 2 / 3,
    momentum: float = 0.6,
) -> Floats:
    """Return the scores of all rows after Nesterov's steps, each block in its own second moments."""
    rows = len(blocks[0])
    roots = [
        np.linalg.cholesky(curvature * X.T @ X / rows + np.diag(p))
        for X, p in zip(blocks, penalties, strict=True)
    ]
    w = [np.zeros(X.shape[1]) for X in blocks]
    ahead = [each.copy() for each in w]
    for _ in range(steps):
        t = theta(start + _scores(blocks, ahead))
        after = []
        for X, p, root, v in zip(blocks, penalties, roots, ahead, strict=True):
            g = X.T @ t / rows + p * v
            after.append(v - length * np.linalg.solve(root.T, np.linalg.solve(root, g)))
        ahead = [b + momentum * (b - a) for a, b in zip(w, after, strict=True)]
        w = after
    return start + _scores(blocks, w)


def _scores(blocks: Sequence[Floats], w: Sequence[Floats]) -> Floats:
    z: Floats = np.hstack(list(blocks)) @ np.concatenate(list(w))
    return z
