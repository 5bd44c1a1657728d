"""SVRG (Johnson and Zhang 2013) for linear scores: the thetas of a snapshot, and its full gradient.

c = theta - the snapshot's theta of the rows, m = the snapshot's mean gradient. Until the first snapshot
it is plain SGD: far from the optimum a pass of steps is worth more than a pass of measuring.
"""

from __future__ import annotations

from colonnade.arrays import Floats, Rows


class Svrg:
    def __init__(self) -> None:
        self._theta: Floats | None = None
        self._mean: Floats | float = 0.0

    def snapshot(self, theta: Floats, mean: Floats) -> None:
        """theta of every row at the weights of now, and the mean gradient they give."""
        self._theta, self._mean = theta, mean

    def news(self, rows: Rows, theta: Floats) -> Floats:
        return theta if self._theta is None else theta - self._theta[rows]

    def mean(self) -> Floats | float:
        return self._mean

    def learn(self, rows: int, gradient: Floats) -> None:
        """Only a snapshot teaches it anything."""
