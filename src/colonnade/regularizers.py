"""Regularisers g(w) of one block of weights, of which the objective adds lambda * g."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from colonnade.arrays import Floats


class Regularizer(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def smoothness(self) -> float:
        """A bound on the second derivative of one coordinate."""
        ...

    def value(self, w: Floats) -> float: ...

    def gradient(self, w: Floats) -> Floats: ...

    def curvature(self, w: Floats) -> Floats | float:
        """The second derivative, coordinate by coordinate."""
        ...


@dataclass(frozen=True)
class L2:
    """||w||^2 / 2."""

    name: str = "l2"
    smoothness: float = 1.0

    def value(self, w: Floats) -> float:
        return 0.5 * float(np.vdot(w, w))

    def gradient(self, w: Floats) -> Floats:
        return w

    def curvature(self, w: Floats) -> float:
        return 1.0


@dataclass(frozen=True)
class Nonconvex:
    """(1/2) sum w_j^2 / (1 + w_j^2): large weights cost no more than a constant."""

    name: str = "nonconvex"
    smoothness: float = 1.0

    def value(self, w: Floats) -> float:
        return 0.5 * float(np.sum(w**2 / (1 + w**2)))

    def gradient(self, w: Floats) -> Floats:
        gradient: Floats = w / (1 + w**2) ** 2
        return gradient

    def curvature(self, w: Floats) -> Floats:
        curvature: Floats = (1 - 3 * w**2) / (1 + w**2) ** 3
        return curvature


REGULARIZERS: dict[str, Regularizer] = {regularizer.name: regularizer for regularizer in (L2(), Nonconvex())}
