"""What every loss can do: its value, theta = dL/dz and the second derivative; from score to prediction."""

from __future__ import annotations

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

    def value(self, z: Floats, y: Floats) -> Floats:
        """The loss of every row."""
        ...

    def dz(self, z: Floats, y: Floats) -> Floats:
        """theta, the derivative of the loss by z."""
        ...

    def bend(self, theta: Floats, u: Floats, y: Floats | None = None) -> Floats:
        """The second derivative times u, row by row; `y` may be left out where theta alone says it."""
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
        """The intercept to begin with: what fits all rows best, where it is far from zero."""
        ...

    def admits(self, y: Floats) -> NDArray[np.bool_]:
        """Whether each label is one that this loss is for."""
        ...


class Usual:
    """What most losses have in common: they begin at zero, take any label, and theta says how they bend."""

    def start(self, y: Floats) -> float:
        return 0.0

    def admits(self, y: Floats) -> NDArray[np.bool_]:
        return np.ones(len(y), dtype=bool)
