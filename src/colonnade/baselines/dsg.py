"""Doubly stochastic gradients where all columns lie together (Dai et al. 2014): the measure of FDSKL.

The same blocks of rows and features, bandwidth, penalty, step and cap as the kernel conversation, with
directions of its own and without a federation. Random features of all rows are computed once and kept;
where every round brings new ones, f of every row is, and follows the rounds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from colonnade.arrays import Floats, Matrix, Rows
from colonnade.job import Train
from colonnade.job.sections import USUAL_BATCH
from colonnade.losses import Loss, labels_of, loss_for
from colonnade.models.bandwidth import Sample, spread
from colonnade.models.random_features import KERNELS, RandomFeatures, phi
from colonnade.optim.steps import kernel_step, step_of_round

CHUNK = 2**20  # features that are computed at a time


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
        return np.concatenate([values @ self.alpha for _, values in _features(self.features, X)])


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
    outputs = () if classes == 1 else (classes,)
    per_epoch = -(-n // batch)
    grows = features == per_epoch * train.epochs * block
    state = (_Running if grows else _Kept)(drawn, X, block, outputs, l2)
    for epoch in range(train.epochs):
        for number, rows in enumerate(np.array_split(rng.permutation(n), per_epoch), epoch * per_epoch):
            gamma_t = step_of_round(gamma, kernel.step, number, per_epoch * train.epochs)
            theta = loss.dz(state.scores(rows), y[rows])
            state.step(rows, theta, gamma_t, kernel.momentum)
    # as in the conversation: a norm is there only once features are no longer added
    norm = 0.0 if grows else features * float(np.sum(state.alpha**2))
    return DsgFit(drawn, state.alpha, l2, 0.5 * l2 * norm)


class _Coefficients(ABC):
    """The coefficients alpha of all features, of which the first `known` are in use."""

    def __init__(
        self, features: RandomFeatures, X: Matrix, block: int, outputs: tuple[int, ...], l2: float
    ) -> None:
        self.features, self.X, self.block, self.l2 = features, X, block, l2
        self.alpha: Floats = np.zeros((features.count, *outputs))
        self.known = 0

    @abstractmethod
    def scores(self, rows: Rows) -> Floats:
        """Return f of some rows."""

    @abstractmethod
    def step(self, rows: Rows, theta: Floats, gamma: float, momentum: float) -> None:
        """Use a block of new features, or, where the cap is reached, step on all coefficients."""

    def use(self, values: Floats, theta: Floats, gamma: float) -> Floats:
        """Use a block of new features, which have these values at the rows of theta; the coefficients."""
        new = slice(self.known, self.known + self.block)
        self.alpha[: self.known] *= 1 - gamma * self.l2
        self.alpha[new] = -gamma / self.block * (values.T @ theta) / len(theta)
        self.known += self.block
        return self.alpha[new]


class _Running(_Coefficients):
    """f of every row; no features are kept."""

    def __init__(
        self, features: RandomFeatures, X: Matrix, block: int, outputs: tuple[int, ...], l2: float
    ) -> None:
        super().__init__(features, X, block, outputs, l2)
        self._pieces = features.pieces(block)
        self._f: Floats = np.zeros((int(X.shape[0]), *outputs))

    def scores(self, rows: Rows) -> Floats:
        return self._f[rows]

    def step(self, rows: Rows, theta: Floats, gamma: float, momentum: float) -> None:
        piece = next(self._pieces)
        alpha = self.use(phi(piece.project(self.X[rows])), theta, gamma)
        self._f *= 1 - gamma * self.l2
        for start, values in _features(piece, self.X):
            self._f[start : start + len(values)] += values @ alpha


class _Kept(_Coefficients):
    """Return phi of every row."""

    def __init__(
        self, features: RandomFeatures, X: Matrix, block: int, outputs: tuple[int, ...], l2: float
    ) -> None:
        super().__init__(features, X, block, outputs, l2)
        self._values = np.empty((int(X.shape[0]), features.count))
        for start, values in _features(features, X):
            self._values[start : start + len(values)] = values
        self._velocity = np.zeros_like(self.alpha)

    def scores(self, rows: Rows) -> Floats:
        scores: Floats = self._values[rows][:, : self.known] @ self.alpha[: self.known]
        return scores

    def step(self, rows: Rows, theta: Floats, gamma: float, momentum: float) -> None:
        values = self._values[rows]
        features = self.features.count
        if self.known < features:
            self.use(values[:, self.known : self.known + self.block], theta, gamma)
            return
        self._velocity *= momentum
        self._velocity -= gamma * (values.T @ theta / (len(rows) * features) + self.l2 * self.alpha)
        self.alpha += self._velocity


def _features(features: RandomFeatures, X: Matrix) -> Iterator[tuple[int, Floats]]:
    """Yield phi of all rows, some at a time, and which row is the first of them."""
    size = max(1, CHUNK // features.count)
    for start in range(0, int(X.shape[0]), size):
        yield start, phi(features.project(X[start : start + size]))
