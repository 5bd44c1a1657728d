"""SGD, SAGA, SVRG and quasi-Newton SVRG on pooled data; a gradient per row is kept where that is simplest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from tests.oracles.lbfgs import DenseLbfgs

from colonnade.arrays import Floats, Rows
from colonnade.losses import Loss
from colonnade.regularizers import Regularizer


@dataclass(frozen=True)
class Problem:
    """The pooled data, the objective, and how it is to be minimised."""

    X: Floats
    y: Floats
    loss: Loss
    regularizer: Regularizer
    l2: float
    step: float
    batch: int
    seed: int
    classes: tuple[int, ...] = ()

    def start(self) -> Floats:
        return np.zeros((self.X.shape[1], *self.classes))

    def gradients(self, w: Floats, rows: Rows) -> Floats:
        """The gradient of the loss of every one of these rows."""
        theta = self.loss.dz(self.X[rows] @ w, self.y[rows])
        return np.array([np.multiply.outer(x, t) for x, t in zip(self.X[rows], theta, strict=True)])

    def penalty(self, w: Floats) -> Floats:
        return self.l2 * self.regularizer.gradient(w)

    def batches(self, epoch: int) -> Iterator[Rows]:
        """The rows of every batch of an epoch."""
        order = np.random.default_rng([self.seed, epoch]).permutation(len(self.y))
        yield from np.array_split(order, -(-len(order) // self.batch))

    def everything(self) -> Rows:
        return np.arange(len(self.y))


def pooled_sgd(problem: Problem, passes: int) -> Floats:
    """The weights after plain SGD."""
    w = problem.start()
    for epoch in range(passes):
        for rows in problem.batches(epoch):
            w = w - problem.step * (problem.gradients(w, rows).mean(axis=0) + problem.penalty(w))
    return w


def pooled_saga(problem: Problem, passes: int) -> Floats:
    """The weights after SAGA; the first pass is plain SGD and fills the table of gradients."""
    w = problem.start()
    table = np.zeros((len(problem.y), *w.shape))
    for epoch in range(passes):
        for rows in problem.batches(epoch):
            new = problem.gradients(w, rows)
            mean = table.mean(axis=0) if epoch else 0.0
            v = (new - table[rows]).mean(axis=0) + mean + problem.penalty(w)
            table[rows] = new
            w = w - problem.step * v
    return w


def svrg_passes(passes: int) -> Iterator[str]:
    """Yield what every pass is spent on: plain steps first, then a snapshot and two passes of steps, ..."""
    yield "steps"
    left = passes - 1
    while left >= 2:
        yield "snapshot"
        steps = min(2, left - 1)
        yield from ["steps"] * steps
        left -= 1 + steps
    yield from ["steps"] * left


def pooled_svrg(problem: Problem, passes: int, bfgs: QuasiNewton | None = None) -> Floats:
    """The weights after SVRG, with steps along the gradient or along a quasi-Newton direction."""
    w = problem.start()
    anchor: Floats | None = None
    epoch = number = 0
    for what in svrg_passes(passes):
        if what == "snapshot":
            anchor = w.copy()
            continue
        for rows in problem.batches(epoch):
            if bfgs is not None:
                bfgs.before(number)
            v = problem.gradients(w, rows).mean(axis=0) + problem.penalty(w)
            if anchor is not None:
                v += problem.gradients(anchor, problem.everything()).mean(axis=0)
                v -= problem.gradients(anchor, rows).mean(axis=0)
            w = w - problem.step * v if bfgs is None else bfgs.after(number, w, v)
            number += 1
        epoch += 1
    return w


ORACLES = {"sgd": pooled_sgd, "svrg": pooled_svrg, "saga": pooled_saga}
"""What every row of `optim.estimators.ESTIMATORS` must be on pooled data."""


@dataclass
class QuasiNewton:
    """One H over all columns; every so many rounds a pair from the Hessian on all rows.

    A gradient step is made at once; what H adds to it, gamma (H - I / L) v, comes one round later, with the H
    that there was then. A pair is known two rounds after the weights that it belongs to. `pins` are the
    steepest directions found before a round, and the curvature below them; L is that of the first and 5%.
    """

    problem: Problem
    every: int
    gamma: float
    memory: DenseLbfgs
    pins: dict[int, tuple[list[tuple[Floats, Floats]], float]]
    _last: Floats | None = None
    _step: Floats | None = None
    _steepest: float = np.inf
    _coming: dict[int, tuple[Floats, Floats]] = field(default_factory=dict)

    def before(self, number: int) -> None:
        """Pin the directions that were found before a round, if any."""
        if number in self.pins:
            pairs, gamma = self.pins[number]
            self.memory.pin(pairs, gamma)
            s, y = pairs[0]
            self._steepest = 1.05 * float(s.ravel() @ y.ravel() / (s.ravel() @ s.ravel()))
            self._coming.pop(number, None)  # its inner products belonged to the pins before

    def after(self, number: int, w: Floats, v: Floats) -> Floats:
        """The weights after a round with the gradient v: they take the step of the round before."""
        if number in self._coming:
            self.memory.add(*self._coming.pop(number), 0.0)
        last = np.zeros_like(w) if self._last is None else self._last
        if self._step is not None:
            w = w - self._step
        w = w - self.problem.step * v
        self._step = self.gamma * (self.memory.direction(v) - v / self._steepest)
        if (number + 1) % self.every == 0:
            self._coming[number + 2] = (w - last, hessian_times(self.problem, w, w - last))
            self._last = w
        return w


def hessian_times(p: Problem, w: Floats, s: Floats) -> Floats:
    """The Hessian of the objective at w times s."""
    theta = p.loss.dz(p.X @ w, p.y)
    curved = p.l2 * p.regularizer.curvature(w) * s
    product: Floats = p.X.T @ p.loss.bend(theta, p.X @ s) / len(p.y) + curved
    return product
