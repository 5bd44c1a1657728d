"""Losses of a score z and a label y: the value, the derivative theta = dL/dz, and the second derivative.

Pure functions on arrays. Every second derivative but Poisson's is a function of theta alone, so a party that
sees only theta can still compute products with the Hessian; who wants Poisson's must know the label as well
(`theta_suffices`).

Rows may have weights. They stand beside the labels, `y` then has two columns (`with_weights`), and `Weighted`
is any loss for such labels: whatever computes with a loss needs to know nothing of weights.
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
        """A bound on the second derivative, whatever z and y are; infinite where there is none."""
        ...

    @property
    def theta_suffices(self) -> bool:
        """Whether the second derivative follows from theta alone, without the label."""
        ...

    def value(self, z: Floats, y: Floats) -> Floats:
        """The loss of every row."""
        ...

    def dz(self, z: Floats, y: Floats) -> Floats:
        """theta, the derivative of the loss by z."""
        ...

    def bend(self, theta: Floats, u: Floats, y: Floats | None = None) -> Floats:
        """The second derivative times u, row by row; `y` may be left out where theta suffices."""
        ...

    def curvature(self, theta: Floats, y: Floats | None = None) -> Floats:
        """A bound on the second derivative of every row.

        Where there is none for any z, it holds between the present z and the z that fits the row best.
        """
        ...

    def predict(self, z: Floats) -> Floats:
        """The label that every row most likely has, in the values of y; of numbers, the expected one."""
        ...

    def start(self, y: Floats) -> float:
        """The intercept to begin with: where a step from zero would go too far, what fits all rows best."""
        ...

    def admits(self, y: Floats) -> NDArray[np.bool_]:
        """Whether each label is one that this loss is for."""
        ...


class _Usual:
    """What most losses have in common: they begin at zero, take any label, and theta says how they bend."""

    theta_suffices: bool = True

    def start(self, y: Floats) -> float:
        return 0.0

    def admits(self, y: Floats) -> NDArray[np.bool_]:
        return np.ones(len(y), dtype=bool)


@dataclass(frozen=True)
class Logistic(_Usual):
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

    def bend(self, theta: Floats, u: Floats, y: Floats | None = None) -> Floats:
        return self.curvature(theta) * u

    def curvature(self, theta: Floats, y: Floats | None = None) -> Floats:
        size: Floats = np.abs(theta)  # the probability of the wrong class
        curvature: Floats = size * (1 - size)
        return curvature

    def predict(self, z: Floats) -> Floats:
        return np.where(z >= 0, 1.0, -1.0)


@dataclass(frozen=True)
class Squared(_Usual):
    """(z - y)^2 / 2."""

    name: str = "squared"
    task: Task = "regression"
    smoothness: float = 1.0

    def value(self, z: Floats, y: Floats) -> Floats:
        return 0.5 * (z - y) ** 2

    def dz(self, z: Floats, y: Floats) -> Floats:
        return z - y

    def bend(self, theta: Floats, u: Floats, y: Floats | None = None) -> Floats:
        return u

    def curvature(self, theta: Floats, y: Floats | None = None) -> Floats:
        return np.ones(len(theta))

    def predict(self, z: Floats) -> Floats:
        return z


@dataclass(frozen=True)
class SmoothHinge(_Usual):
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
class Softmax(_Usual):
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


@dataclass(frozen=True)
class Poisson:
    """Half the deviance of counts y >= 0 whose expectation is exp(z): exp(z) - y - y (z - log y)."""

    name: str = "poisson"
    task: Task = "regression"
    smoothness: float = float("inf")
    theta_suffices: bool = False

    def value(self, z: Floats, y: Floats) -> Floats:
        from scipy.special import xlogy

        with np.errstate(over="ignore"):  # the caller checks for what is not finite
            value: Floats = np.exp(z) - y - y * z + xlogy(y, y)
        return value

    def dz(self, z: Floats, y: Floats) -> Floats:
        with np.errstate(over="ignore"):
            theta: Floats = np.exp(z) - y
        return theta

    def bend(self, theta: Floats, u: Floats, y: Floats | None = None) -> Floats:
        return (theta + self._known(y)) * u

    def curvature(self, theta: Floats, y: Floats | None = None) -> Floats:
        known = self._known(y)
        return np.maximum(theta + known, known)  # exp(z) now, and y where the row is fitted

    def predict(self, z: Floats) -> Floats:
        return _exp(z)

    def start(self, y: Floats) -> float:
        return float(np.log(max(y.mean(), 1e-12)))

    def admits(self, y: Floats) -> NDArray[np.bool_]:
        return y >= 0

    @staticmethod
    def _known(y: Floats | None) -> Floats:
        if y is None:
            raise TypeError("the second derivative of the Poisson loss needs the labels beside theta")
        return y


@dataclass(frozen=True)
class Gamma(_Usual):
    """Half the deviance of amounts y > 0 whose expectation is exp(z): z - log y + y exp(-z) - 1."""

    name: str = "gamma"
    task: Task = "regression"
    smoothness: float = float("inf")

    def value(self, z: Floats, y: Floats) -> Floats:
        with np.errstate(over="ignore"):
            value: Floats = z - np.log(y) + y * np.exp(-z) - 1
        return value

    def dz(self, z: Floats, y: Floats) -> Floats:
        with np.errstate(over="ignore"):
            theta: Floats = 1 - y * np.exp(-z)
        return theta

    def bend(self, theta: Floats, u: Floats, y: Floats | None = None) -> Floats:
        return (1 - theta) * u

    def curvature(self, theta: Floats, y: Floats | None = None) -> Floats:
        return np.maximum(1 - theta, 1.0)  # y exp(-z) now, and 1 where the row is fitted

    def predict(self, z: Floats) -> Floats:
        return _exp(z)

    def start(self, y: Floats) -> float:
        return float(np.log(y.mean()))

    def admits(self, y: Floats) -> NDArray[np.bool_]:
        return y > 0


def _exp(z: Floats) -> Floats:
    """exp(z), or the largest number there is."""
    expected: Floats = np.exp(np.minimum(z, 700.0))
    return expected


def with_weights(y: Floats, weight: Floats | None) -> Floats:
    """Labels with the weights of their rows beside them, [rows, 2]; without weights the labels alone."""
    return y if weight is None else np.column_stack([y, weight])


def labels_of(y: Floats) -> Floats:
    """The labels alone."""
    return y if y.ndim == 1 else np.ascontiguousarray(y[:, 0])


def scaled_labels(y: Floats, factor: float) -> Floats:
    """The labels times a factor, beside the weights that they have."""
    return factor * y if y.ndim == 1 else np.column_stack([factor * y[:, 0], y[:, 1]])


def weights_of(y: Floats) -> Floats | None:
    """The weights of the rows, None where there are none."""
    return None if y.ndim == 1 else np.ascontiguousarray(y[:, 1])


@dataclass(frozen=True)
class Weighted:
    """A loss of labels with weights beside them (`with_weights`): every row's loss times its weight.

    `spread` is the root mean square of the weights, whose mean is 1: so many times as curved as a usual row
    the rows are that matter most.
    """

    base: Loss
    spread: float

    @property
    def name(self) -> str:
        return self.base.name

    @property
    def task(self) -> Task:
        return self.base.task

    @property
    def smoothness(self) -> float:
        return self.base.smoothness * self.spread

    @property
    def theta_suffices(self) -> bool:
        return False

    def value(self, z: Floats, y: Floats) -> Floats:
        return y[:, 1] * self.base.value(z, y[:, 0])

    def dz(self, z: Floats, y: Floats) -> Floats:
        return self._times(y[:, 1], self.base.dz(z, y[:, 0]))

    def bend(self, theta: Floats, u: Floats, y: Floats | None = None) -> Floats:
        own, known = self._parts(theta, y)
        return self._times(known[:, 1], self.base.bend(own, u, known[:, 0]))

    def curvature(self, theta: Floats, y: Floats | None = None) -> Floats:
        own, known = self._parts(theta, y)
        return known[:, 1] * self.base.curvature(own, known[:, 0])

    def predict(self, z: Floats) -> Floats:
        return self.base.predict(z)

    def start(self, y: Floats) -> float:
        # Poisson and gamma alike begin at the logarithm of the mean, which here is the weighted one
        return self.base.start(y[:, 0] * y[:, 1])

    def admits(self, y: Floats) -> NDArray[np.bool_]:
        return self.base.admits(y[:, 0])

    def _parts(self, theta: Floats, y: Floats | None) -> tuple[Floats, Floats]:
        """Theta as it were without weights, and the labels; a row that weighs nothing has any theta."""
        if y is None:
            raise TypeError("the second derivative of a weighted loss needs the weights beside theta")
        weight = np.where(y[:, 1] > 0, y[:, 1], 1.0)
        return self._times(1 / weight, theta), y

    def _times(self, weight: Floats, theta: Floats) -> Floats:
        product: Floats = (weight if self.task != "multiclass" else weight[:, None]) * theta
        return product


def loss_for(loss: Loss, y: Floats) -> Loss:
    """The loss for these labels: weighted, where weights stand beside them."""
    weight = weights_of(y)
    return loss if weight is None else Weighted(loss, float(np.sqrt(np.mean(weight**2))))


def mean_loss(loss: Loss, z: Floats, y: Floats) -> float:
    """The mean loss of some rows; where weights stand beside the labels, the weighted mean."""
    return float(np.average(loss.value(z, labels_of(y)), weights=weights_of(y)))


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


LOSSES: dict[str, Loss] = {
    loss.name: loss for loss in (Logistic(), Squared(), SmoothHinge(), Softmax(), Poisson(), Gamma())
}
