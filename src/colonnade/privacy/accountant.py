"""What all noisy replies together tell about a label: exact composition of Gaussian releases (dp-accounting).

Replies are counted per row, because epsilon holds for all replies together that a label takes part in.
Composition uses privacy loss distributions, which are tight for the Gaussian mechanism. Neighbours are
two sets of labels that differ in one row; epsilon and delta hold against a client that knows everything
else, all features and the batches included.

What is released has discrete noise (`privacy.discrete`), and is accounted for as continuous noise. Its Renyi
divergences are no larger (Canonne, Kamath and Steinke 2020, Theorem 4: the same rho of zCDP), and for epsilon
and delta it is the same up to nothing: let q be the continuous mechanism's answer rounded to the grid, which
is as private as the answer itself, and p the discrete one. The integral of exp(-x^2 / (2 s^2)) over the cell
around n gives -1 / (24 s^2) <= ln q(n) - ln p(n) <= n^2 / (24 s^4), up to exp(-2 pi^2 s^2). With s = 2^24
that is less than 2^-45 up to 12 deviations, beyond which a number lies once in 10^32: epsilon of a thousand
releases of a thousand numbers grows by less than 1e-7, which calibration leaves room for.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from colonnade.arrays import Rows
from colonnade.errors import JobError
from colonnade.privacy.gaussian import deviation_for
from colonnade.state import Declared

try:
    from dp_accounting import ExplicitBracketInterval, GaussianDpEvent, calibrate_dp_mechanism
    from dp_accounting.pld import PLDAccountant
except ImportError as error:
    raise JobError(
        "privacy needs dp-accounting, which is not installed; pip install 'colonnade[privacy]'"
    ) from error


@cache
def epsilon_of(multiplier: float, releases: int, delta: float) -> float:
    """Return epsilon of this many Gaussian releases of sensitivity 1 and standard deviation `multiplier`."""
    if releases == 0:
        return 0.0
    # k Gaussian releases are one release with 1 / sqrt(k) of the noise: exact, and fast to account for
    event = GaussianDpEvent(multiplier / releases**0.5)
    return float(_accountant().compose(event).get_epsilon(delta))


def multiplier_for(epsilon: float, delta: float, releases: int) -> float:
    """Return the least noise with which this many releases stay within (epsilon, delta)."""
    return float(releases**0.5 * _single(epsilon, delta))


@cache
def _single(epsilon: float, delta: float) -> float:
    """Return the least noise of one release."""
    # the closed form says where to look, but the number is the accountant's
    near = deviation_for(epsilon, delta)
    interval = ExplicitBracketInterval(0.99 * near, 1.02 * near)
    return float(calibrate_dp_mechanism(_accountant, GaussianDpEvent, epsilon, delta, interval, tol=1e-4))


def _accountant() -> PLDAccountant:
    # ten times the default grid is ten times as fast and still right to seven digits
    return PLDAccountant(value_discretization_interval=1e-3)


@dataclass
class Budget:
    """How many replies each label may take part in (`allowed`), and how many it has (`spent`, by row)."""

    STATE = Declared(kept=("spent",))

    epsilon: float
    delta: float
    allowed: int
    spent: Rows
    multiplier: float
    told_before: int = 0  # replies about a row in earlier sessions of the run, at most

    @staticmethod
    def plan(epsilon: float, delta: float, allowed: int, rows: int) -> Budget:
        """Return a budget of this many replies a row, with the least noise that keeps them within (epsilon,
        delta)."""
        return Budget(
            epsilon,
            delta,
            allowed,
            np.zeros(rows, dtype=np.int64),
            multiplier_for(epsilon, delta, allowed),
        )

    def affords(self, rows: Rows, replies: int = 1) -> bool:
        """Return whether that many more replies about these rows stay within the budget."""
        return int(self.spent[rows].max(initial=0)) + replies <= self.allowed

    def spend(self, rows: Rows, replies: int = 1) -> None:
        """Count that many replies about these rows."""
        self.spent[rows] += replies

    def epsilon_spent(self) -> float:
        """Return epsilon so far, for the label that was used most."""
        replies = max(int(self.spent.max(initial=0)), self.told_before)
        return epsilon_of(self.multiplier, replies, self.delta)
