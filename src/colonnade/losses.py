"""Losses of a score z and a label y: the value, the derivative theta = dL/dz, and the second derivative.

Pure functions on arrays. Every second derivative here is a function of theta alone, so a party that sees
only theta can still compute products with the Hessian.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from colonnade.arrays import Floats
from colonnade.job.plan import Task


class Loss(Protocol):
    """Arrays have a row per row of the data; with several classes z has a score for each in its last axis."""

    @property
    def name(self) -> str: ...

    @property
    def task(self) -> Task:
        """binary, multiclass or regression"""
        ...

    @property
    def smoothness(self) -> float:
        """A bound on the second derivative, whatever z and y are."""
        ...

    def value(self, z: Floats, y: Floats) -> Floats:
        """The loss of every row."""
        ...

    def dz(self, z: Floats, y: Floats) -> Floats:
        """theta, the derivative of the loss by z."""
        ...

    def bend(self, theta: Floats, u: Floats) -> Floats:
        """The second derivative times u, row by row."""
        ...

    def curvature(self, theta: Floats) -> Floats:
        """A bound on the second derivative of every row."""
        ...

    def predict(self, z: Floats) -> Floats:
        """The label that every row most likely has, in the values of y."""
        ...


@dataclass(frozen=True)
class Logistic:
    """log(1 + exp(-y z)), y = +1 or -1."""

    name: str = "logistic"
    task: Task = "binary"
    smoothness: float = 0.25

    def value(self, z: Floats, y: Floats) -> Floats:
        return np.logaddexp(0.0, -y * z)

    def dz(self, z: Floats, y: Floats) -> Floats:
        from scipy.special import expit  # slow to load, and only label holders need it

        dz: Floats = -y * expit(-y * z)
        return dz

    def bend(self, theta: Floats, u: Floats) -> Floats:
        return self.curvature(theta) * u

    def curvature(self, theta: Floats) -> Floats:
        size: Floats = np.abs(theta)  # the probability of the wrong class
        curvature: Floats = size * (1 - size)
        return curvature

    def predict(self, z: Floats) -> Floats:
        return np.where(z >= 0, 1.0, -1.0)


@dataclass(frozen=True)
class Squared:
    """(z - y)^2 / 2."""

    name: str = "squared"
    task: Task = "regression"
    smoothness: float = 1.0

    def value(self, z: Floats, y: Floats) -> Floats:
        return 0.5 * (z - y) ** 2

    def dz(self, z: Floats, y: Floats) -> Floats:
        return z - y

    def bend(self, theta: Floats, u: Floats) -> Floats:
        return u

    def curvature(self, theta: Floats) -> Floats:
        return np.ones(len(theta))

    def predict(self, z: Floats) -> Floats:
        return z


@dataclass(frozen=True)
class SmoothHinge:
    """1/2 - yz for yz <= 0, (1 - yz)^2 / 2 for 0 < yz < 1, else 0 (FDSKL, Table 1)."""

    name: str = "smooth_hinge"
    task: Task = "binary"
    smoothness: float = 1.0

    def value(self, z: Floats, y: Floats) -> Floats:
        margin = y * z
        return np.where(margin <= 0, 0.5 - margin, 0.5 * np.clip(1 - margin, 0, None) ** 2)

    def dz(self, z: Floats, y: Floats) -> Floats:
        return -y * np.clip(1 - y * z, 0.0, 1.0)

    def bend(self, theta: Floats, u: Floats) -> Floats:
        size = np.abs(theta)
        return np.where((size > 0) & (size < 1), u, 0.0)

    def curvature(self, theta: Floats) -> Floats:
        # rows cross the kinks during a step, so only the bound is safe
        return np.ones(len(theta))

    def predict(self, z: Floats) -> Floats:
        return np.where(z >= 0, 1.0, -1.0)


@dataclass(frozen=True)
class Softmax:
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

    def bend(self, theta: Floats, u: Floats) -> Floats:
        p = _probabilities(theta)
        bent: Floats = p * (u - (p * u).sum(axis=-1, keepdims=True))
        return bent

    def curvature(self, theta: Floats) -> Floats:
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


def soft_dz(loss: Loss, z: Floats, y: Floats) -> Floats:
    """dL/dz for labels that are any numbers, as labels with noise are, not only true classes.

    It is linear in y and equals `loss.dz` at the true labels. A label of several classes is a row of
    numbers here, one-hot where it is a class.
    """
    match loss.task:
        case "binary":
            return (1 + y) / 2 * loss.dz(z, np.ones_like(y)) + (1 - y) / 2 * loss.dz(z, -np.ones_like(y))
        case "multiclass":
            from scipy.special import softmax

            p: Floats = softmax(z, axis=-1)
            return p - y
    return loss.dz(z, y)


LOSSES: dict[str, Loss] = {loss.name: loss for loss in (Logistic(), Squared(), SmoothHinge(), Softmax())}
