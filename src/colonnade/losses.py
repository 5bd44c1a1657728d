"""Losses of a score z and a label y: value, first and second derivative, prediction.

Pure functions on arrays. `dz` is the papers' theta; `smoothness` bounds the second derivative and sets
the step; `curvature` is that second derivative where it exists.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

Floats = NDArray[np.float64]


class Loss(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def task(self) -> str:
        """binary, multiclass or regression"""
        ...

    @property
    def smoothness(self) -> float: ...

    def value(self, z: Floats, y: Floats) -> Floats: ...

    def dz(self, z: Floats, y: Floats) -> Floats: ...

    def predict(self, z: Floats) -> Floats: ...


@dataclass(frozen=True)
class Logistic:
    """log(1 + exp(-y z)), y = +1 or -1."""

    name: str = "logistic"
    task: str = "binary"
    smoothness: float = 0.25

    def value(self, z: Floats, y: Floats) -> Floats:
        return np.logaddexp(0.0, -y * z)

    def dz(self, z: Floats, y: Floats) -> Floats:
        dz: Floats = -y * expit(-y * z)
        return dz

    def predict(self, z: Floats) -> Floats:
        return np.where(z >= 0, 1.0, -1.0)


@dataclass(frozen=True)
class Squared:
    """(z - y)^2 / 2."""

    name: str = "squared"
    task: str = "regression"
    smoothness: float = 1.0

    def value(self, z: Floats, y: Floats) -> Floats:
        return 0.5 * (z - y) ** 2

    def dz(self, z: Floats, y: Floats) -> Floats:
        return z - y

    def predict(self, z: Floats) -> Floats:
        return z


@dataclass(frozen=True)
class SmoothHinge:
    """1/2 - yz for yz <= 0, (1 - yz)^2 / 2 for 0 < yz < 1, else 0 (FDSKL, Table 1)."""

    name: str = "smooth_hinge"
    task: str = "binary"
    smoothness: float = 1.0

    def value(self, z: Floats, y: Floats) -> Floats:
        margin = y * z
        return np.where(margin <= 0, 0.5 - margin, 0.5 * np.clip(1 - margin, 0, None) ** 2)

    def dz(self, z: Floats, y: Floats) -> Floats:
        return -y * np.clip(1 - y * z, 0.0, 1.0)

    def predict(self, z: Floats) -> Floats:
        return np.where(z >= 0, 1.0, -1.0)


LOSSES: dict[str, Loss] = {loss.name: loss for loss in (Logistic(), Squared(), SmoothHinge())}
