"""Doubly stochastic gradients where all columns lie together (Dai et al. 2014): the measure of FDSKL.

The same blocks of rows and features, bandwidth, penalty, step and cap as the kernel conversation, with
directions of its own and without a federation. Random features of all rows are computed once and kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from colonnade.arrays import Floats, Matrix
from colonnade.job import Train
from colonnade.job.sections import USUAL_BATCH
from colonnade.losses import Loss, labels_of, loss_for
from colonnade.models.bandwidth import Sample, spread
from colonnade.models.random_features import KERNELS, RandomFeatures, phi
from colonnade.optim.steps import kernel_step, step_of_round

CHUNK = 4096


@dataclass(frozen=True)
class DsgKernel:
    """The kernel, the features of a round, and the step; momentum begins when there are no new features."""

    block: int
    kind: Literal["gaussian", "laplace"] = "gaussian"
    sigma: float | Literal["median"] = "median"
    fraction: float | Literal["auto"] = "auto"
    step: Literal["falling", "constant"] = "falling"
    momentum: float = 0.9


@dataclass(frozen=True, eq=False)
class DsgFit:
    """A trained kernel machine f(x) = phi(x)' alpha, with its penalty lambda / 2 ||f||^2."""

    features: RandomFeatures
    alpha: Floats
    l2: float  # lambda
    penalty: float

    def scores(self, X: Matrix) -> Floats:
        """Return f(x) of every row, computed some rows at a time."""
        return np.concatenate([values @ self.alpha for values in _features(self.features, X)])


def fit_dsg(
    X: Matrix, y: Floats, loss: Loss, kernel: DsgKernel, train: Train, *, features: int, seed: int
) -> DsgFit:
    """Return a kernel machine trained on pooled rows; `features` is the cap, a multiple of the block."""
    n, block, unweighted, loss = int(X.shape[0]), min(kernel.block, features), loss, loss_for(loss, y)
    batch = train.batch or USUAL_BATCH
    rng = np.random.default_rng([seed, n])
    classes = (train.classes or int(labels_of(y).max()) + 1) if loss.task == "multiclass" else 1
    function = KERNELS[kernel.kind]
    sample = Sample.draw(rng, n, function, kernel.sigma, kernel.fraction, penalty=train.l2 == "auto")
    distance = sample.distances(X)
    sigma = sample.bandwidth(distance, y, classes) or 1.0
    l2 = sample.penalty(distance, sigma, y, unweighted, classes) if train.l2 == "auto" else train.l2
    gamma = (
        kernel_step(
            loss, spread(function, distance, sigma), min(batch, n), block, falling=kernel.step == "falling"
        )
        if train.step == "auto"
        else float(train.step)
    )
    directions = function.directions(rng, (int(X.shape[1]), features)) / sigma
    drawn = RandomFeatures(directions, rng.uniform(0.0, 2 * np.pi, features))
    values = np.empty((n, features))
    for number, part in enumerate(_features(drawn, X)):
        values[number * CHUNK : (number + 1) * CHUNK] = part
    outputs = () if classes == 1 else (classes,)
    state = _Coefficients(np.zeros((features, *outputs)), np.zeros((features, *outputs)))
    per_epoch = -(-n // batch)
    for epoch in range(train.epochs):
        for number, rows in enumerate(np.array_split(rng.permutation(n), per_epoch), epoch * per_epoch):
            gamma_t = step_of_round(gamma, kernel.step, number, per_epoch * train.epochs)
            here = values[rows]
            theta = loss.dz(state.scores(here), y[rows])
            state.step(here, theta, gamma_t, kernel, l2)
    # as in the conversation: a norm is there only once features are no longer added
    norm = state.known * float(np.sum(state.alpha**2)) if features < per_epoch * train.epochs * block else 0.0
    return DsgFit(drawn, state.alpha, l2, 0.5 * l2 * norm)


@dataclass
class _Coefficients:
    """The coefficients alpha of all features, of which the first `known` are in use."""

    alpha: Floats
    velocity: Floats
    known: int = 0

    def scores(self, values: Floats) -> Floats:
        scores: Floats = values[:, : self.known] @ self.alpha[: self.known]
        return scores

    def step(self, values: Floats, theta: Floats, gamma: float, kernel: DsgKernel, l2: float) -> None:
        """Use a block of new features, or, where the cap is reached, step on all coefficients."""
        rows, features = values.shape
        if self.known < features:
            block = min(kernel.block, features)
            new = slice(self.known, self.known + block)
            self.alpha[: self.known] *= 1 - gamma * l2
            self.alpha[new] = -gamma / block * (values[:, new].T @ theta) / rows
            self.known = min(self.known + block, features)
        else:
            self.velocity *= kernel.momentum
            self.velocity -= gamma * (values.T @ theta / (rows * features) + l2 * self.alpha)
            self.alpha += self.velocity


def _features(features: RandomFeatures, X: Matrix) -> Iterator[Floats]:
    """Yield phi of all rows, CHUNK rows at a time."""
    for start in range(0, int(X.shape[0]), CHUNK):
        yield phi(features.project(X[start : start + CHUNK]))
