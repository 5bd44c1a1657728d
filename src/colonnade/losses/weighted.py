"""Weights of rows beside their labels, and any loss for such labels."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from colonnade.arrays import Floats
from colonnade.losses.loss import Link, Loss, SharedForm, Task


def with_weights(y: Floats, weight: Floats | None) -> Floats:
    """Return labels with the weights of their rows beside them, [rows, 2]; without weights the labels
    alone."""
    return y if weight is None else np.column_stack([y, weight])


def labels_of(y: Floats) -> Floats:
    """Return the labels alone."""
    return y if y.ndim == 1 else np.ascontiguousarray(y[:, 0])


def scaled_labels(y: Floats, factor: float) -> Floats:
    """Return the labels times a factor, beside the weights that they have."""
    return factor * y if y.ndim == 1 else np.column_stack([factor * y[:, 0], y[:, 1]])


def weights_of(y: Floats) -> Floats | None:
    """Return the weights of the rows, None where there are none."""
    return None if y.ndim == 1 else np.ascontiguousarray(y[:, 1])


@dataclass(frozen=True)
class Weighted:
    """A loss of labels with weights beside them (`with_weights`): every row's loss times its weight.

    `spread` is the root mean square of the weights, whose mean is 1: that many times as curved as a usual row
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
    def link(self) -> Link | None:
        return self.base.link

    @property
    def has_probabilities(self) -> bool:
        return self.base.has_probabilities

    @property
    def label_range(self) -> str | None:
        return self.base.label_range

    @property
    def counts(self) -> bool:
        return self.base.counts

    @property
    def any_unit(self) -> bool:
        return self.base.any_unit

    @property
    def theta_tells(self) -> str:
        return self.base.theta_tells

    @property
    def shared_form(self) -> SharedForm | None:
        return None  # theta times a weight is one product more

    @property
    def smoothness(self) -> float:
        return self.base.smoothness * self.spread

    @property
    def always_curved(self) -> bool:
        return self.base.always_curved  # but where a row weighs nothing

    @property
    def counts_rows(self) -> bool:
        return self.base.counts_rows  # weighted ones, of which there are as many

    @property
    def curved_by_theta(self) -> bool:
        return False  # the weight must be known, too

    def value(self, z: Floats, y: Floats) -> Floats:
        return y[:, 1] * self.base.value(z, y[:, 0])

    def dz(self, z: Floats, y: Floats) -> Floats:
        return self._times(y[:, 1], self.base.dz(z, y[:, 0]))

    def in_torch(self, torch: Any, z: Any, y: Any) -> Any:
        return y[:, 1] * self.base.in_torch(torch, z, y[:, 0])

    def soft_dz(self, z: Floats, y: Floats) -> Floats:
        raise TypeError("labels with noise have no weights beside them: epsilon would not cover these")

    def second(self, theta: Floats, y: Floats) -> Floats:
        own, known = self._parts(theta, y)
        return self._times(known[:, 1], self.base.second(own, known[:, 0]))

    def bend(self, theta: Floats, u: Floats, y: Floats | None = None) -> Floats:
        own, known = self._parts(theta, y)
        return self._times(known[:, 1], self.base.bend(own, u, known[:, 0]))

    def curvature(self, theta: Floats, y: Floats | None = None) -> Floats:
        own, known = self._parts(theta, y)
        return known[:, 1] * self.base.curvature(own, known[:, 0])

    def predict(self, z: Floats) -> Floats:
        return self.base.predict(z)

    def start(self, y: Floats) -> float:
        # whichever does not begin at zero begins where the mean says, which here is the weighted one
        return self.base.start(y[:, 0] * y[:, 1])

    def admits(self, y: Floats) -> NDArray[np.bool_]:
        return self.base.admits(y[:, 0])

    def _parts(self, theta: Floats, y: Floats | None) -> tuple[Floats, Floats]:
        """Return theta as it would be without weights, and the labels; a row that weighs nothing has any
        theta."""
        if y is None:
            raise TypeError("the second derivative of a weighted loss needs the weights beside theta")
        weight = np.where(y[:, 1] > 0, y[:, 1], 1.0)
        return theta / self._beside(weight), y

    def _times(self, weight: Floats, theta: Floats) -> Floats:
        product: Floats = self._beside(weight) * theta
        return product

    def _beside(self, weight: Floats) -> Floats:
        """Return the weights in a shape that goes with theta."""
        return weight if self.task != "multiclass" else weight[:, None]


def loss_for(loss: Loss, y: Floats) -> Loss:
    """Return the loss for these labels: weighted, where weights stand beside them."""
    weight = weights_of(y)
    return loss if weight is None else Weighted(loss, float(np.sqrt(np.mean(weight**2))))


def mean_loss(loss: Loss, z: Floats, y: Floats) -> float:
    """Return the mean loss of some rows; where weights stand beside the labels, the weighted mean."""
    return float(np.average(loss.value(z, labels_of(y)), weights=weights_of(y)))


@dataclass
class MeanLoss:
    """The mean loss of rows that come a stretch at a time."""

    loss: Loss
    means: list[float] = field(default_factory=list)
    sizes: list[float] = field(default_factory=list)  # how much each stretch counts

    def add(self, z: Floats, y: Floats) -> None:
        """Take the scores and labels of some more rows."""
        weight = weights_of(y)
        size = float(len(y) if weight is None else weight.sum())
        if size > 0:  # rows that weigh nothing have no mean
            self.means.append(mean_loss(self.loss, z, y))
            self.sizes.append(size)

    @property
    def value(self) -> float:
        """The mean of all rows so far."""
        # one stretch as it is: times its size and divided again it would be rounded
        return self.means[0] if len(self.means) == 1 else float(np.average(self.means, weights=self.sizes))
