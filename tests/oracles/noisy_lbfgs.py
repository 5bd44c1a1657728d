"""L-BFGS by slopes on pooled columns with given noise: the naive version, two loops over whole vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from colonnade.arrays import Floats


def noisy_lbfgs(
    blocks: Sequence[Floats],
    theta: Callable[[Floats], Floats],
    noise: Sequence[Sequence[Floats]],
    *,
    curvature: float,
    l2: Sequence[Floats],
    spread: Sequence[Floats],
) -> list[Floats]:
    """Weights of all blocks after as many passes as there is noise, [pass][block] on mean gradients."""
    n = len(blocks[0])
    roots = [
        np.linalg.cholesky(X.T @ X * curvature / n + np.diag(each + 3 * told))
        for X, each, told in zip(blocks, l2, spread, strict=True)
    ]
    loud = [np.linalg.solve(L, np.diag(told)) for L, told in zip(roots, spread, strict=True)]
    expected = sum(float((each**2).sum()) for each in loud)
    w = [np.zeros(X.shape[1]) for X in blocks]
    pairs: list[tuple[Floats, Floats]] = []
    last: list[list[Floats]] = []
    before, direction, quiet = np.zeros(0), np.zeros(0), 0
    cuts = np.cumsum([len(each) for each in w])[:-1]
    for told in noise:
        t = theta(np.sum([X @ each for X, each in zip(blocks, w, strict=True)], axis=0))
        g = [X.T @ t / n + p * b + e for X, p, b, e in zip(blocks, l2, w, told, strict=True)]
        v = np.concatenate([np.linalg.solve(L, each) for L, each in zip(roots, g, strict=True)])
        if len(before):
            s, y = direction, v - before
            blur = sum(
                float(((each.T @ part) ** 2).sum())
                for each, part in zip(loud, np.split(s, cuts), strict=True)
            )
            if s @ y > max(3 * np.sqrt(2 * blur), 1e-3 * np.sqrt((s @ s) * (y @ y))):
                pairs.append((s, y))
        q, alphas = v.copy(), []
        for s, y in reversed(pairs):
            alphas.append((s @ q) / (s @ y))
            q -= alphas[-1] * y
        if pairs:
            s, y = pairs[-1]
            q *= (s @ y) / (y @ y)
        for (s, y), alpha in zip(pairs, reversed(alphas), strict=True):
            q += (alpha - (y @ q) / (s @ y)) * s
        before, direction = v, -q
        quiet += int(v @ v < 4 * expected)
        steps = [np.linalg.solve(L.T, d) for L, d in zip(roots, np.split(direction, cuts), strict=True)]
        w = [each + step for each, step in zip(w, steps, strict=True)]
        last = [*last, w][-max(1, min(4, quiet)) :]
    return [np.mean([each[k] for each in last], axis=0) for k in range(len(blocks))]
