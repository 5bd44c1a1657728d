"""Regularisers g(w) of one block of weights, and the penalty that the objective makes of one.

The penalty is l2 * g(w) + l1 * sum |w|, without the weights that are free: an intercept is never penalised,
or the model would depend on where the zero of the label lies. The smooth part has a gradient; the other part
is minimised by `shrink` after every step (a proximal step), which is local to a block and gives exact zeros.
"""

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
        """Return the second derivative, coordinate by coordinate."""
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


@dataclass(frozen=True)
class Penalty:
    """What a block of weights adds to the objective. `free` are the places of weights that add nothing."""

    regularizer: Regularizer
    l2: float
    l1: float = 0.0
    free: tuple[int, ...] = ()

    @property
    def smoothness(self) -> float:
        """A bound on the second derivative of the smooth part."""
        return self.l2 * self.regularizer.smoothness

    def value(self, w: Floats) -> float:
        """Return the penalty of these weights."""
        if self.free:
            w = np.delete(w, self.free, axis=0)
        smooth = self.l2 * self.regularizer.value(w)
        return smooth + self.l1 * float(np.abs(w).sum()) if self.l1 else smooth

    def gradient(self, w: Floats, times: int = 1) -> Floats:
        """Return the gradient of the smooth part, times `times`."""
        gradient: Floats = (times * self.l2) * self.regularizer.gradient(w)
        return self._without_free(gradient) if self.free else gradient

    def decay(self, w: Floats, step: float) -> None:
        """Let the smooth part act on weights, in place: w -= step times its gradient.

        >>> w = np.array([1.0, 1.0, 1.0])
        >>> Penalty(L2(), 0.5, free=(2,)).decay(w, step=0.5)
        >>> Penalty(L2(), 0.5).decay(w, step=1.0)
        >>> w.tolist()
        [0.375, 0.375, 0.5]
        """
        if isinstance(self.regularizer, L2) and not self.free:
            w *= 1.0 - step * self.l2
        else:
            w -= step * self.gradient(w)

    def bend(self, w: Floats, s: Floats) -> Floats:
        """Return the second derivative of the smooth part at w, times s."""
        bent: Floats = self.l2 * self.regularizer.curvature(w) * s
        return self._without_free(bent) if self.free else bent

    def shrink(self, w: Floats, step: float) -> None:
        """Let the rest of the penalty act after a step: every weight nears 0 or becomes it, in place.

        >>> w = np.array([0.5, -0.2, 0.1, 3.0])
        >>> Penalty(L2(), 0.0, l1=2.0, free=(3,)).shrink(w, step=0.1)
        >>> w.tolist()
        [0.3, 0.0, 0.0, 3.0]
        """
        if not self.l1:
            return
        kept = w[list(self.free)]
        np.copyto(w, np.sign(w) * np.maximum(np.abs(w) - step * self.l1, 0.0) + 0.0)
        w[list(self.free)] = kept

    def _without_free(self, fresh: Floats) -> Floats:
        fresh[list(self.free)] = 0.0
        return fresh
