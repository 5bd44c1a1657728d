"""Doubly stochastic gradients where all columns lie together (Dai et al. 2014): the measure of FDSKL.

The same blocks of rows and features, bandwidth, step and cap as the kernel conversation, with directions
of its own and without a federation. Random features of all rows are computed once and kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from colonnade.arrays import Floats, Matrix
from colonnade.job import Kernel, Train
from colonnade.job.sections import USUAL_BATCH
from colonnade.losses import Loss
from colonnade.models.bandwidth import Sample, spread
from colonnade.models.random_features import KERNELS, RandomFeatures, phi
from colonnade.optim.steps import kernel_step, step_of_round

CHUNK = 4096


@dataclass(frozen=True, eq=False)
class DsgFit:
    features: RandomFeatures
    alpha: Floats
    penalty: float

    def scores(self, X: Matrix) -> Floats:
        """f(x) of every row, a stretch at a time."""
        starts = range(0, int(X.shape[0]), CHUNK)
        parts = [phi(self.features.project(X[start : start + CHUNK])) @ self.alpha for start in starts]
        return np.concatenate(parts)


def fit_dsg(
    X: Matrix, y: Floats, loss: Loss, kernel: Kernel, train: Train, *, features: int, seed: int
) -> DsgFit:
    """Train on pooled rows; `features` is the cap, a multiple of the block."""
    n, M, B = int(X.shape[0]), min(kernel.block, features), train.batch or USUAL_BATCH
    rng = np.random.default_rng([seed, n])
    shape = KERNELS[kernel.kind]
    classes = (train.classes or int(y.max()) + 1) if loss.task == "multiclass" else 1
    sample = Sample.draw(rng, n, shape, kernel.sigma, kernel.fraction)
    distance = sample.distances(X)
    sigma = sample.bandwidth(distance, y, classes) or 1.0
    gamma = (
        kernel_step(loss, spread(shape, distance, sigma), min(B, n), M)
        if train.step == "auto"
        else float(train.step)
    )
    D = features
    drawn = RandomFeatures(
        shape.directions(rng, (int(X.shape[1]), D)) / sigma, rng.uniform(0.0, 2 * np.pi, D)
    )
    values = np.empty((n, D))
    for start in range(0, n, CHUNK):
        values[start : start + CHUNK] = phi(drawn.project(X[start : start + CHUNK]))
    outputs = () if classes == 1 else (classes,)
    alpha: Floats = np.zeros((D, *outputs))
    velocity = np.zeros_like(alpha)
    per_epoch = -(-n // B)
    rounds = per_epoch * train.epochs
    t = 0
    for _ in range(train.epochs):
        for rows in np.array_split(rng.permutation(n), per_epoch):
            known = min(t * M, D)
            batch = values[rows]
            theta = loss.dz(batch[:, :known] @ alpha[:known], y[rows])
            gamma_t = step_of_round(gamma, kernel.step, t, rounds)
            if known < D:
                new = slice(known, known + M)
                alpha[:known] *= 1 - gamma_t * train.l2
                alpha[new] = -gamma_t / M * (batch[:, new].T @ theta) / len(rows)
            else:
                velocity *= kernel.momentum
                velocity -= gamma_t * (batch.T @ theta / (len(rows) * D) + train.l2 * alpha)
                alpha += velocity
            t += 1
    return DsgFit(drawn, alpha, 0.5 * train.l2 * min(t * M, D) * float(np.sum(alpha**2)))
