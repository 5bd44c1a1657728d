"""Losses of labels that are classes: two (logistic, smooth hinge) or several (softmax)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from colonnade.arrays import Floats
from colonnade.losses.loss import UsualLoss


@dataclass(frozen=True)
class Logistic(UsualLoss):
    """log(1 + exp(-y z)), y = +1 or -1."""

    name = "logistic"
    task = "binary"
    link = "logit"
    smoothness = 0.25
    shared_form = "sines"
    theta_tells = "it gives away the label and the total score of its row"

    def value(self, z: Floats, y: Floats) -> Floats:
        return np.logaddexp(0.0, -y * z)

    def in_torch(self, torch: Any, z: Any, y: Any) -> Any:
        return torch.nn.functional.softplus(-y * z)

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
class SmoothHinge(UsualLoss):
    """1/2 - yz for yz <= 0, (1 - yz)^2 / 2 for 0 < yz < 1, else 0 (FDSKL, Table 1)."""

    name = "smooth_hinge"
    task = "binary"
    link = None
    smoothness = 1.0
    always_curved = False
    theta_tells = "its sign gives away the label of its row, unless that is right by a margin already"

    def value(self, z: Floats, y: Floats) -> Floats:
        margin = y * z
        return np.where(margin <= 0, 0.5 - margin, 0.5 * np.clip(1 - margin, 0, None) ** 2)

    def in_torch(self, torch: Any, z: Any, y: Any) -> Any:
        short = (1 - y * z).clamp_(min=0)
        return torch.where(short > 1, short - 0.5, 0.5 * short.square())

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
class Softmax(UsualLoss):
    """-log softmax(z)_y: one score per class in the last axis of z, y = 0, 1, ..., K-1."""

    name = "softmax"
    task = "multiclass"
    link = "softmax"
    smoothness = 0.5
    theta_tells = (
        "its one negative entry is the class of its row, and the scores follow from it up to a shift"
    )

    def value(self, z: Floats, y: Floats) -> Floats:
        own = np.take_along_axis(z, _column(z, y), axis=-1)[..., 0]
        # scipy's logsumexp takes three times as long for a batch, and a cascade's server does little else
        top = z.max(axis=-1)
        with np.errstate(invalid="ignore"):  # infinite scores become NaN, and the caller checks for that
            value: Floats = np.log(np.exp(z - top[..., None]).sum(axis=-1)) + (top - own)
        return value

    def in_torch(self, torch: Any, z: Any, y: Any) -> Any:
        own = y.long()[:, None].expand(*z.shape[:-1], 1)
        return z.logsumexp(-1) - z.gather(-1, own)[..., 0]

    def dz(self, z: Floats, y: Floats) -> Floats:
        from scipy.special import softmax

        theta: Floats = softmax(z, axis=-1)
        np.put_along_axis(theta, _column(z, y), np.take_along_axis(theta, _column(z, y), -1) - 1.0, axis=-1)
        return theta

    def soft_dz(self, z: Floats, y: Floats) -> Floats:
        from scipy.special import softmax

        p: Floats = softmax(z, axis=-1)
        return p - y

    def second(self, theta: Floats, y: Floats) -> Floats:
        p = theta.copy()
        p[np.arange(len(p)), y.astype(np.int64)] += 1.0
        return p * (1 - p)

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
    """Return the label of every row as a place in the last axis of z."""
    return np.broadcast_to(y.astype(np.intp), z.shape[:-1])[..., None]


def _probabilities(theta: Floats) -> Floats:
    """Return the probabilities p from theta = p - onehot(y): the label is where theta is smallest."""
    label = theta.argmin(axis=-1)[..., None]
    p = theta.copy()
    np.put_along_axis(p, label, np.take_along_axis(p, label, -1) + 1.0, axis=-1)
    return p
