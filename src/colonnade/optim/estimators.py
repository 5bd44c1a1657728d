"""Gradient estimators of one block of weights: SGD, SVRG and SAGA in the form that linear scores allow.

The estimate from a batch of rows is v = X' c / |batch| + m. Here c is one number a row (and class), and m is
the mean gradient of what is remembered of every row's theta:

    sgd    remembers nothing: c = theta, and there is no m
    svrg   the thetas of a snapshot of all rows; c is theta less that (Johnson and Zhang 2013)
    saga   the latest theta of every row; c is theta less that (Defazio et al. 2014)

A step needs the coefficients of a batch and nothing else of an estimator: a block in clear
multiplies them with its columns, the label holder of a blind run sends them veiled to the owners of columns.
One number per row (and class) is all that any of them stores, never a gradient per row.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np

from colonnade.arrays import Floats, Rows
from colonnade.state import Declared


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


class Coefficients(NamedTuple):
    """What a batch's estimate is made of, one number a row (and class): v = X' step / |batch| (+ m)."""

    step: Floats
    along: bool = False  # whether the remembered mean gradient m is added
    change: Floats | None = None  # what is remembered of these rows changes by this; None: it does not


class Estimator(ABC):
    """Makes coefficients of the thetas of a batch. Its answers hold for all of a kind, before there is one.

    An estimator is like plain SGD in all that it does not say.
    """

    STATE = Declared(kept=("memory",))

    fades: ClassVar[bool] = True
    """Whether its noise stays with a constant step, so that automatic steps fall to zero over the run."""
    snapshots: ClassVar[bool] = False
    """Whether it remembers theta of all rows at once, which all parties look at now and then."""
    remembers: ClassVar[bool] = False
    """Whether it remembers the theta of every batch, so that m is a pass old and changes with every batch."""
    unchanged: ClassVar[bool] = False
    """Whether its coefficients are the thetas as they are: then nobody asks for them."""

    repeats = False  # whether a row may come several times in what is learnt at once

    def __init_subclass__(cls) -> None:
        """Let `unchanged` hold for the coefficients of a class itself: one derived may have others."""
        if "coefficients" in vars(cls):
            cls.unchanged = vars(cls).get("unchanged", False)

    def __init__(self, rows: int, weights: tuple[int, ...]) -> None:
        """Make an estimator; `weights` is the shape of the block's weights: (columns,) or (columns,
        classes)."""
        self.memory = Remembered()
        if self.remembers:
            self.memory = Remembered(np.zeros((rows, *weights[1:])), np.zeros(weights), unseen=rows)

    @abstractmethod
    def coefficients(self, rows: Rows, theta: Floats) -> Coefficients:
        """Return what the thetas of a batch make of the next step; this changes nothing."""

    @classmethod
    def has_mean(cls) -> bool:
        """Return whether there can be an m."""
        return cls.snapshots or cls.remembers

    @property
    def mean(self) -> Floats:
        """Returns m, the mean gradient of the block that the remembered thetas give."""
        return self.memory.mean

    def learn(self, rows: Rows, theta: Floats, gradient: Floats) -> None:
        """Remember the thetas of a batch; `gradient` is X' change."""
        memory = self.memory
        memory.theta[rows] = theta
        memory.mean += gradient / len(memory.theta)
        memory.unseen -= len(np.unique(rows)) if self.repeats else len(rows)

    def snapshot(self, theta: Floats, mean: Floats) -> None:
        """Remember theta of every row at the current weights, and the mean gradient that they give.

        SAGA, too, may begin with one, as in its paper.
        """
        if not self.has_mean():
            raise TypeError(f"{type(self).__name__} takes no snapshots")
        self.memory = Remembered(theta, mean)


class Sgd(Estimator):
    """The gradient of the batch as it is."""

    unchanged = True

    def coefficients(self, rows: Rows, theta: Floats) -> Coefficients:
        return Coefficients(theta)


class Svrg(Estimator):
    """Differences to a snapshot of all rows.

    Until the first snapshot it is plain SGD: far from the optimum a pass of steps is worth more than a pass
    of measuring.
    """

    fades = False
    snapshots = True

    def coefficients(self, rows: Rows, theta: Floats) -> Coefficients:
        remembered = self.memory.theta
        return Coefficients(theta - remembered[rows], along=True) if len(remembered) else Coefficients(theta)


class Saga(Estimator):
    """Differences to the latest theta of every row.

    The paper fills the memory with a full pass before the first step. Here the first pass over the rows
    fills it while stepping as plain SGD, which costs no pass and was ahead at every accuracy we looked at.
    """

    fades = False
    remembers = True

    @property
    def filling(self) -> bool:
        """Whether fewer thetas have come than there are rows (with several dominators one may have two)."""
        return self.memory.unseen > 0

    def coefficients(self, rows: Rows, theta: Floats) -> Coefficients:
        change: Floats = theta - self.memory.theta[rows]
        if self.repeats:
            return self._repeated(rows, theta, change)
        if not self.filling:
            return Coefficients(change, along=True, change=change)
        # while some rows are unknown their zeros would pull the mean towards nothing, and without the mean a
        # difference to a row that is known says nothing
        return Coefficients(change if np.array_equal(change, theta) else theta, change=change)

    def _repeated(self, rows: Rows, theta: Floats, step: Floats) -> Coefficients:
        """Return the same where a row may come twice: what is remembered of it changes by its last theta."""
        last = np.zeros(len(rows), dtype=bool)
        last[len(rows) - 1 - np.unique(rows[::-1], return_index=True)[1]] = True
        change = step * last.reshape(-1, *[1] * (step.ndim - 1))
        return Coefficients(theta if self.filling else step, along=not self.filling, change=change)


ESTIMATORS: dict[str, type[Estimator]] = {"sgd": Sgd, "svrg": Svrg, "saga": Saga}
"""By name: the kind of an estimator, made for a number of rows and weights of a shape."""
