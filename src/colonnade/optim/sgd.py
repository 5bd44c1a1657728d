"""Gradient estimators of one block, in the form all of them share for linear scores.

The estimate from a batch is X' c / |batch| + m: c is the part of theta that is news to the estimator and
m its memory of the mean gradient. Plain SGD remembers nothing, so c = theta and m = 0. One scalar per row
is all that any estimator of this form has to store, never a gradient per row.
"""

from __future__ import annotations

from typing import Protocol

from colonnade.arrays import Floats, Rows


class Estimator(Protocol):
    def news(self, rows: Rows, theta: Floats) -> Floats:
        """c: what theta says beyond what was remembered of these rows; from now on theta is."""
        ...

    def mean(self) -> Floats | float:
        """m: the remembered mean gradient of the block."""
        ...

    def learn(self, rows: int, gradient: Floats) -> None:
        """Bring m up to date with what was news of so many rows; `gradient` is X' c of them."""
        ...


class Sgd:
    def news(self, rows: Rows, theta: Floats) -> Floats:
        return theta

    def mean(self) -> float:
        return 0.0

    def learn(self, rows: int, gradient: Floats) -> None:
        """Nothing is remembered."""
