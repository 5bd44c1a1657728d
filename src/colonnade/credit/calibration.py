"""Whether a probability of 5% means that five of a hundred are bad, and how to make it so.

All of this needs scores and labels and is done by the label holder. A recalibration must be learnt on rows
that the model has not seen, and judged on yet others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from colonnade.arrays import Floats

Bads = NDArray[np.bool_]
CLOSEST = 1e-12
NORMAL_95 = 1.959964


class Point(NamedTuple):
    """Rows of like probability: how many, their mean probability, and the part of them that is bad."""

    rows: int
    predicted: float
    observed: float

    def interval(self) -> tuple[float, float]:
        """Return where the true rate of bads lies with 95% confidence (Wilson)."""
        n, p, square = self.rows, self.observed, NORMAL_95**2
        middle = (p + square / (2 * n)) / (1 + square / n)
        half = NORMAL_95 / (1 + square / n) * (p * (1 - p) / n + square / (4 * n * n)) ** 0.5
        return max(0.0, middle - half), min(1.0, middle + half)


def reliability(p: Floats, bad: Bads, bins: int = 10) -> list[Point]:
    """Return the reliability curve: rows in order of their probability, in bins of nearly one size."""
    order = np.argsort(p, kind="stable")
    parts = np.array_split(order, min(bins, len(order)))
    return [Point(len(rows), float(p[rows].mean()), float(bad[rows].mean())) for rows in parts]


def brier(p: Floats, bad: Bads) -> float:
    """Return the mean squared error of the probabilities."""
    return float(np.mean((p - bad) ** 2))


def hosmer_lemeshow(p: Floats, bad: Bads, bins: int = 10) -> tuple[float, float]:
    """Return the Hosmer-Lemeshow statistic and its p-value (chi-squared, bins - 2): a small one is bad."""
    from scipy.stats import chi2

    points = reliability(p, bad, bins)
    statistic = sum(
        each.rows
        * (each.observed - each.predicted) ** 2
        / max(each.predicted * (1 - each.predicted), CLOSEST)
        for each in points
    )
    return float(statistic), float(chi2.sf(statistic, max(len(points) - 2, 1)))


@dataclass(frozen=True)
class Platt:
    """Platt's recalibration: the probability is 1 / (1 + exp(-(slope z + shift)))."""

    slope: float
    shift: float

    @staticmethod
    def fit(z: Floats, bad: Bads) -> Platt:
        """Return the slope and shift of the largest likelihood, by Newton's method."""
        from scipy.optimize import minimize
        from scipy.special import expit, log_expit

        y = np.where(bad, 1.0, -1.0)

        def loss(a: Floats) -> tuple[float, Floats]:
            margin = y * (a[0] * z + a[1])
            slope = -y * expit(-margin) / len(z)
            return float(-log_expit(margin).mean()), np.array([slope @ z, slope.sum()])

        found = minimize(loss, np.array([1.0, 0.0]), jac=True, method="BFGS", options={"gtol": 1e-9})
        return Platt(float(found.x[0]), float(found.x[1]))

    def __call__(self, z: Floats) -> Floats:
        from scipy.special import expit

        return np.asarray(expit(self.slope * z + self.shift), dtype=np.float64)


def isotonic(z: Floats, bad: Bads, new: Floats) -> Floats:
    """Return the probabilities of new scores by isotonic regression on old ones: they only rise with the
    score."""
    from sklearn.isotonic import IsotonicRegression

    fitted = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip").fit(z, bad.astype(float))
    return np.asarray(fitted.predict(new), dtype=np.float64)
