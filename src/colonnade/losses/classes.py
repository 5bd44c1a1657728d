"""Losses of labels that are classes: two (logistic, smooth hinge) or several (softmax)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from colonnade.arrays import Floats
from colonnade.job.plan import Task
from colonnade.losses.loss import Usual


@dataclass(frozen=True)
class Logistic(Usual):
    """log(1 + exp(-y z)), y = +1 or -1."""

    name: str = "logistic"
    task: Task = "binary"
    smoothness: float = 0.25

    def value(self, z: Floats, y: Floats) -> Floats:
        return np.logaddexp(0.0, -y * z)

    def dz(self, z: Floats, y: Floats) -> Floats:
        from scipy.special import expit  # slow to load, and only label holders need it

        turned = -y
        dz: Floats = turned * expit(turned * z)
        return dz

    def bend(self, theta: Floats, u: Floats, y: Floats | None = None) -> Floats:
        return self.curvature(theta) * u

    def curvature(self, theta: Floats, y: Floats | None = None) -> Floats:
        size: Floats = np.abs(theta)  # the probability of the wrong class
        curvature: Floats = size * (1 - size)
        return curvature

    def predict(self, z: Floats) -> Floats:
        return np.where(z >= 0, 1.0, -1.0)


@dataclass(frozen=True)
class SmoothHinge(Usual):
    """1/2 - yz for yz <= 0, (1 - yz)^2 / 2 for 0 < yz < 1, else 0 (FDSKL, Table 1)."""

    name: str = "smooth_hinge"
    task: Task = "binary"
    smoothness: float = 1.0

    def value(self, z: Floats, y: Floats) -> Floats:
        margin = y * z
        return np.where(margin <= 0, 0.5 - margin, 0.5 * np.clip(1 - margin, 0, None) ** 2)

    def dz(self, z: Floats, y: Floats) -> Floats:
        return -y * np.clip(1 - y * z, 0.0, 1.0)

    def bend(self, theta: Floats, u: Floats, y: Floats | None = None) -> Floats:
        size = np.abs(theta)
        return np.where((size > 0) & (size < 1), u, 0.0)

    def curvature(self, theta: Floats, y: Floats | None = None) -> Floats:
        # rows cross the kinks during a step, so only the bound is safe
        return np.ones(len(theta))

    def predict(self, z: Floats) -> Floats:
        return np.where(z >= 0, 1.0, -1.0)


@dataclass(frozen=True)
class Softmax(Usual):
    """-log softmax(z)_y: one score per class in the last axis of z, y = 0, 1, ..., K-1."""

    name: str = "softmax"
    task: Task = "multiclass"
    smoothness: float = 0.5

    def value(self, z: Floats, y: Floats) -> Floats:
        own = np.take_along_axis(z, _column(z, y), axis=-1)[..., 0]
        # scipy's logsumexp takes three times as long for a batch, and a cascade's server does little else
        top = z.max(axis=-1)
        with np.errstate(invalid="ignore"):  # infinite scores become NaN, and the caller checks for that
            value: Floats = np.log(np.exp(z - top[..., None]).sum(axis=-1)) + (top - own)
        return value

    def dz(self, z: Floats, y: Floats) -> Floats:
        from scipy.special import softmax

        theta: Floats = softmax(z, axis=-1)
        np.put_along_axis(theta, _column(z, y), np.take_along_axis(theta, _column(z, y), -1) - 1.0, axis=-1)
        return theta

    def bend(self, theta: Floats, u: Floats, y: Floats | None = None) -> Floats:
        p = _probabilities(theta)
        bent: Floats = p * (u - (p * u).sum(axis=-1, keepdims=True))
        return bent

    def curvature(self, theta: Floats, y: Floats | None = None) -> Floats:
        p = _probabilities(theta)
        curvature: Floats = np.minimum(1 - (p**2).sum(axis=-1), self.smoothness)
        return curvature

    def predict(self, z: Floats) -> Floats:
        predicted: Floats = z.argmax(axis=-1).astype(np.float64)
        return predicted


def _column(z: Floats, y: Floats) -> NDArray[np.intp]:
    """The label of every row as a place in the last axis of z."""
    return np.broadcast_to(y.astype(np.intp), z.shape[:-1])[..., None]


def _probabilities(theta: Floats) -> Floats:
    """The probabilities p from theta = p - onehot(y): the label is where theta is smallest."""
    label = theta.argmin(axis=-1)[..., None]
    p = theta.copy()
    np.put_along_axis(p, label, np.take_along_axis(p, label, -1) + 1.0, axis=-1)
    return p
