"""Gradients from function values alone: two-point estimates along random directions.

A function that can only be evaluated is smoothed over a small ball; along directions u_1 ... u_K

    g = s / K * sum_k  q_k u_k,      q_k = (f(w + mu u_k) - f(w)) / mu          one-sided
                                     q_k = (f(w + mu u_k) - f(w - mu u_k)) / 2 mu   two-sided

estimates the gradient without bias, up to a term that vanishes with mu (AsyREVEL, Equations 14-17). The
scale s is 1 for Gaussian and Rademacher directions, whose second moment is the identity, and d for
directions on the unit sphere, whose second moment is the identity over d. (The paper's Equation 15 writes
the factor d for both; with Gaussian directions it makes every step d times too long.)

Only points go out and only values come back: nothing here knows what the function is or where it runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from colonnade.arrays import Numbers

Directions = Literal["gaussian", "sphere", "rademacher"]


@dataclass(frozen=True)
class Smoothing:
    """A way to estimate a gradient: kind and number of directions, radius mu, one or two sides."""

    directions: Directions
    count: int = 1  # K
    mu: float = 1e-3
    two_sided: bool = False

    @property
    def points_per_step(self) -> int:
        """How many function values one estimate takes."""
        return 1 + self.count * (2 if self.two_sided else 1)

    def draw(self, rng: np.random.Generator, d: int) -> Numbers:
        """Return K random directions in R^d, one a row."""
        if self.directions == "rademacher":
            return rng.integers(0, 2, (self.count, d)) * 2.0 - 1.0
        u = rng.standard_normal((self.count, d))
        if self.directions == "sphere":
            u /= np.linalg.norm(u, axis=1, keepdims=True)
        return u

    def scale(self, d: int) -> int:
        """Return the factor s in front of the estimate."""
        return d if self.directions == "sphere" else 1

    def points(self, w: Numbers, u: Numbers) -> Numbers:
        """Return the points to evaluate, one a row: w, all w + mu u_k, and (two-sided) all w - mu u_k."""
        step = (self.mu * u).astype(w.dtype, copy=False)
        sides = [w[None, :], w + step, w - step] if self.two_sided else [w[None, :], w + step]
        return np.concatenate(sides)

    def quotients(self, values: Numbers) -> Numbers:
        """Return the quotients q_k from the values at `points`, along the first axis; other axes are kept."""
        K = self.count
        far, near, width = values[1:], values[0], self.mu
        if self.two_sided:
            far, near, width = values[1 : K + 1], values[K + 1 :], 2 * self.mu
        quotients: Numbers = (far - near) / width
        return quotients

    def gradient(self, quotients: Numbers, u: Numbers) -> Numbers:
        """Return the estimate g from the quotients along the directions u."""
        return self.scale(u.shape[1]) / self.count * (quotients @ u)

    def stretch(self, d: int) -> float:
        """Return E ||g||^2 / ||grad f||^2 of a linear f: how much longer random directions make the estimate.

        >>> Smoothing("gaussian").stretch(10), Smoothing("sphere").stretch(10)
        (12.0, 10.0)
        """
        spread = {"gaussian": d + 1, "sphere": d - 1, "rademacher": d - 1}[self.directions]
        return 1 + spread / self.count
