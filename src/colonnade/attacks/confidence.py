"""Intervals of 95% confidence around what an attack reached, so that luck is not taken for a leak."""

from __future__ import annotations

from math import atanh, sqrt, tanh
from typing import NamedTuple

NORMAL = 1.959963984540054  # 95% of a normal distribution lie within this many deviations


class Interval(NamedTuple):
    """A number that was measured, and where the true one is with 95% confidence."""

    value: float
    low: float
    high: float


def of_part(hits: int, trials: int) -> Interval:
    """Return the interval of a part of independent trials (Clopper and Pearson: never too narrow).

    >>> [round(end, 3) for end in of_part(90, 100)]
    [0.9, 0.824, 0.951]
    """
    from scipy.stats import beta

    low = 0.0 if hits == 0 else float(beta.ppf(0.025, hits, trials - hits + 1))
    high = 1.0 if hits == trials else float(beta.ppf(0.975, hits + 1, trials - hits))
    return Interval(hits / trials, low, high)


def of_auc(auc: float, positives: int, negatives: int) -> Interval:
    """Return the interval of an area under the ROC curve (Hanley and McNeil's variance)."""
    ranks, squares = auc / (2 - auc), 2 * auc**2 / (1 + auc)
    more = (positives - 1) * (ranks - auc**2) + (negatives - 1) * (squares - auc**2)
    deviation = sqrt(max(0.0, auc * (1 - auc) + more) / (positives * negatives))
    return Interval(auc, max(0.0, auc - NORMAL * deviation), min(1.0, auc + NORMAL * deviation))


def of_correlation(value: float, rows: int, chosen_from: int = 1) -> Interval:
    """Return the interval of a correlation (Fisher's z), of the best of this many that were looked at
    (Bonferroni).

    >>> [round(end, 2) for end in of_correlation(0.5, 103)]
    [0.5, 0.34, 0.63]
    """
    from scipy.special import ndtri

    if rows <= 3:
        return Interval(value, -1.0, 1.0)
    far = float(-ndtri(0.025 / chosen_from)) / sqrt(rows - 3)
    at = atanh(max(-1 + 1e-15, min(1 - 1e-15, value)))
    return Interval(value, min(value, tanh(at - far)), max(value, tanh(at + far)))
