"""Losses of labels that are numbers: any (squared), counts (Poisson), amounts (gamma).

The last two have a log link: the score is the logarithm of what is expected.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from colonnade.arrays import Floats
from colonnade.losses.loss import UsualLoss


@dataclass(frozen=True)
class Squared(UsualLoss):
    """(z - y)^2 / 2."""

    name = "squared"
    task = "regression"
    link = "identity"
    smoothness = 1.0
    any_unit = True
    counts_rows = True
    shared_form = "division"
    theta_tells = "it is how far the total score of its row is from the label"

    def value(self, z: Floats, y: Floats) -> Floats:
        return 0.5 * (z - y) ** 2

    def in_torch(self, torch: Any, z: Any, y: Any) -> Any:
        return (z - y).square_().mul_(0.5)

    def dz(self, z: Floats, y: Floats) -> Floats:
        return z - y

    def bend(self, theta: Floats, u: Floats, y: Floats | None = None) -> Floats:
        return u

    def curvature(self, theta: Floats, y: Floats | None = None) -> Floats:
        return np.ones(len(theta))

    def predict(self, z: Floats) -> Floats:
        return z

    def start(self, y: Floats) -> float:
        return float(y.mean())


@dataclass(frozen=True)
class Poisson(UsualLoss):
    """Half the deviance of counts y >= 0 whose expectation is exp(z): exp(z) - y - y (z - log y)."""

    name = "poisson"
    task = "regression"
    link = "log"
    label_range = ">= 0"
    counts = True
    smoothness = float("inf")
    curved_by_theta = False
    theta_tells = "it is how far the expected count of its row is from the label"

    def value(self, z: Floats, y: Floats) -> Floats:
        from scipy.special import xlogy

        with np.errstate(over="ignore"):  # the caller checks for what is not finite
            value: Floats = np.exp(z) - y - y * z + xlogy(y, y)
        return value

    def in_torch(self, torch: Any, z: Any, y: Any) -> Any:
        return z.exp() - y - y * z + torch.xlogy(y, y)

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
class Gamma(UsualLoss):
    """Half the deviance of amounts y > 0 whose expectation is exp(z): z - log y + y exp(-z) - 1."""

    name = "gamma"
    task = "regression"
    link = "log"
    label_range = "> 0"
    smoothness = float("inf")
    theta_tells = "it is the relative error of its row: how far the label over what is expected is from 1"

    def value(self, z: Floats, y: Floats) -> Floats:
        with np.errstate(over="ignore"):
            value: Floats = z - np.log(y) + y * np.exp(-z) - 1
        return value

    def in_torch(self, torch: Any, z: Any, y: Any) -> Any:
        return z - y.log() + y * (-z).exp() - 1

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
    """Return exp(z), or the largest number there is."""
    expected: Floats = np.exp(np.minimum(z, 700.0))
    return expected
