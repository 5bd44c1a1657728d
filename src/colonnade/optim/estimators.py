"""Gradient estimators of one block of weights: SGD, SVRG and SAGA in the form that linear scores allow.

The estimate from a batch of rows is X' c / |batch| + m. Here c is theta minus what is remembered of theta at
these rows, and m is the remembered mean gradient of all rows:

    sgd    remembers nothing: c = theta, m = 0
    svrg   the thetas of a snapshot of all rows, and their mean gradient (Johnson and Zhang 2013)
    saga   the latest theta of every row, and their mean gradient (Defazio et al. 2014)

One number per row (and class) is all that any of them stores, never a gradient per row. Everything is local
to a party: thetas come in, nothing goes out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from colonnade.arrays import Floats, Rows


def _nothing() -> Floats:
    return np.zeros(0)


@dataclass
class Remembered:
    """What an estimator keeps from one batch to the next: plain arrays and numbers, so that it can be stored.

    `theta` holds a value for every row (and class), `mean` is the gradient in the shape of the weights; both
    are empty where nothing is remembered yet. `unseen` counts the rows that have had no theta so far.
    """

    theta: Floats = field(default_factory=_nothing)
    mean: Floats = field(default_factory=_nothing)
    unseen: int = 0


class Estimator(Protocol):
    memory: Remembered

    def news(self, rows: Rows, theta: Floats) -> Floats:
        """Return c, theta less what is remembered of it at these rows; SAGA then remembers this theta."""
        ...

    def mean(self) -> Floats | float:
        """Return m, the remembered mean gradient of the block; 0.0 where there is none."""
        ...

    def learn(self, rows: int, gradient: Floats) -> None:
        """Update m after a batch of so many rows, whose `gradient` is X' c."""
        ...


class Sgd:
    """The gradient of the batch as it is."""

    def __init__(self) -> None:
        self.memory = Remembered()

    def news(self, rows: Rows, theta: Floats) -> Floats:
        return theta

    def mean(self) -> float:
        return 0.0

    def learn(self, rows: int, gradient: Floats) -> None:
        """Do nothing: nothing is remembered."""


class Svrg:
    """Differences to a snapshot of all rows.

    Until the first snapshot it is plain SGD: far from the optimum a pass of steps is worth more than a pass
    of measuring.
    """

    def __init__(self) -> None:
        self.memory = Remembered()

    def snapshot(self, theta: Floats, mean: Floats) -> None:
        """Remember theta of every row at the current weights, and the mean gradient that they give."""
        self.memory = Remembered(theta, mean)

    def news(self, rows: Rows, theta: Floats) -> Floats:
        remembered = self.memory.theta
        return theta - remembered[rows] if len(remembered) else theta

    def mean(self) -> Floats | float:
        return self.memory.mean if len(self.memory.theta) else 0.0

    def learn(self, rows: int, gradient: Floats) -> None:
        """Do nothing: only a snapshot changes the memory."""


class Saga:
    """Differences to the latest theta of every row.

    The paper fills the memory with a full pass before the first step. Here the first pass over the rows
    fills it while stepping as plain SGD, which costs no pass and was ahead at every accuracy we looked at.
    """

    def __init__(self, rows: int, weights: tuple[int, ...]) -> None:
        """`weights` is the shape of the block's weights: (columns,) or (columns, classes)."""
        self.memory = Remembered(np.zeros((rows, *weights[1:])), np.zeros(weights), unseen=rows)

    @property
    def filling(self) -> bool:
        """Whether fewer thetas have come than there are rows (with several dominators one may have two)."""
        return self.memory.unseen > 0

    def news(self, rows: Rows, theta: Floats) -> Floats:
        remembered = self.memory.theta
        c: Floats = theta - remembered[rows]
        remembered[rows] = theta
        return c

    def mean(self) -> Floats | float:
        # while some rows are unknown, their zeros would pull the mean towards nothing
        return 0.0 if self.filling else self.memory.mean

    def learn(self, rows: int, gradient: Floats) -> None:
        memory = self.memory
        memory.mean += gradient / len(memory.theta)
        memory.unseen -= rows


ESTIMATORS: dict[str, Callable[[int, tuple[int, ...]], Estimator]] = {
    "sgd": lambda rows, weights: Sgd(),
    "svrg": lambda rows, weights: Svrg(),
    "saga": Saga,
}
"""By name: a fresh estimator for so many rows and for weights of this shape."""
