"""AsySQN in step on pooled data (Algorithms 1 and 3-5): every block has a dense H of its own pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from tests.oracles.lbfgs import DenseLbfgs
from tests.oracles.variance_reduced import Problem, svrg_passes

from colonnade.arrays import Floats


def pooled_asysqn(
    problem: Problem,
    estimator: str,
    passes: int,
    widths: Sequence[int],
    *,
    memory: int,
    delta: float,
    gamma: float,
) -> Floats:
    """The weights after so many passes; all blocks step on the same rows, each along its own H v."""
    w = problem.start()
    blocks = np.split(np.arange(len(w)), np.cumsum(widths)[:-1])
    inverses = [DenseLbfgs(memory, delta) for _ in blocks]
    last: tuple[Floats, Floats] | None = None
    for v in _estimates(problem, estimator, passes, w):
        d = v.copy()
        for block, inverse in zip(blocks, inverses, strict=True):
            if last is not None:
                inverse.add(w[block] - last[0][block], v[block] - last[1][block], 0.0)
            if inverse.pairs:
                d[block] = inverse.direction(v[block])
        last = (w.copy(), v)
        w -= gamma * d  # in place: the estimates to come are at these weights
    return w


def _estimates(problem: Problem, estimator: str, passes: int, w: Floats) -> Iterator[Floats]:
    """The gradient estimates of all rounds, each at the weights as they are when it is asked for."""
    table = np.zeros((len(problem.y), *w.shape))
    anchor: Floats | None = None
    epoch = 0
    for what in svrg_passes(passes) if estimator == "svrg" else ["steps"] * passes:
        if what == "snapshot":
            anchor = w.copy()
            continue
        for rows in problem.batches(epoch):
            new = problem.gradients(w, rows)
            v = new.mean(axis=0) + problem.penalty(w)
            if anchor is not None:
                old = problem.gradients(anchor, problem.everything())
                v += old.mean(axis=0) - old[rows].mean(axis=0)
            if estimator == "saga":
                mean = table.mean(axis=0) if epoch else 0.0
                v += mean - table[rows].mean(axis=0)
                table[rows] = new
            yield v
        epoch += 1
