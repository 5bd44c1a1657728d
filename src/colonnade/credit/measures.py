"""How well scores tell bads from goods, and whether scores of now are like those of then.

A higher score means more likely bad (the positive label), as a model's own score is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from colonnade.arrays import Floats, Numbers
from colonnade.credit.cuts import Thresholds
from colonnade.data.prepare.bins import number_bins
from colonnade.data.prepare.woe import Weighed
from colonnade.data.table import RawTable
from colonnade.errors import DataError
from colonnade.metrics import auc

Bads = NDArray[np.bool_]
LEAST_PART = 1e-4  # an empty bin counts as this part of the rows, so that PSI stays a number


def ks(z: Floats, bad: Bads) -> float:
    """Return the Kolmogorov-Smirnov distance: the largest one between the score distributions of goods and
    bads.

    >>> ks(np.array([0.1, 0.2, 0.8, 0.9]), np.array([False, False, True, True]))
    1.0
    """
    _check(bad)
    return Thresholds.of(z, bad).ks()[0]


def gini(z: Floats, bad: Bads) -> float:
    """Return Gini's coefficient, 2 AUC - 1."""
    _check(bad)
    return 2 * auc(z, bad) - 1


@dataclass(frozen=True)
class Gain:
    """One part of the rows, of those with the highest scores first."""

    rows: int
    bads: int
    lowest: float  # score
    mean: float  # score
    covered: float  # the part of all rows that is in this part or above
    rate: float  # bads of the rows of this part
    lift: float  # that rate over the rate of all rows
    captured: float  # the part of all bads that is in this part or above
    cumulative_lift: float


def gains(z: Floats, bad: Bads, parts: int = 10) -> list[Gain]:
    """Return the lift and gain table: rows from the highest score down, in parts of nearly one size."""
    _check(bad)
    order = np.argsort(-z, kind="stable")
    base, found, seen, caught = float(bad.mean()), [], 0, 0
    for rows in np.array_split(order, min(parts, len(order))):
        bads = int(bad[rows].sum())
        seen, caught = seen + len(rows), caught + bads
        rate = bads / len(rows)
        found.append(
            Gain(
                rows=len(rows),
                bads=bads,
                lowest=float(z[rows].min()),
                mean=float(z[rows].mean()),
                covered=seen / len(z),
                rate=rate,
                lift=rate / base,
                captured=caught / int(bad.sum()),
                cumulative_lift=caught / seen / base,
            )
        )
    return found


def psi(then: Floats, now: Floats, bins: int = 10) -> float:
    """Return the population stability index: how far scores of now are from those of then, in quantile bins
    of then.

    Below 0.1 is usually called stable, above 0.25 a shift.
    """
    if not len(then) or not len(now):
        raise DataError("psi: there are no scores to compare")
    made = number_bins("score", then, bins, 1)
    return psi_of_counts(*(np.bincount(made.codes(each), minlength=made.count) for each in (then, now)))


def psi_of_counts(then: Numbers, now: Numbers) -> float:
    """Return the PSI of two tables of counts of the same bins."""
    one = np.maximum(then / max(then.sum(), 1), LEAST_PART)
    other = np.maximum(now / max(now.sum(), 1), LEAST_PART)
    return float(((other - one) * np.log(other / one)).sum())


def psi_of_columns(weighed: Sequence[Weighed], then: RawTable, now: RawTable) -> dict[str, float]:
    """Return the PSI of every weighed column of one party, which needs nobody else. Unseen values have their
    own bin."""
    found = {}
    for each in weighed:
        codes = (each.joined(table) for table in (then, now))
        counts = [np.bincount(code + 1, minlength=len(each.woe) + 1) for code in codes]
        found[each.bins.column] = psi_of_counts(*counts)
    return found


def _check(bad: Bads) -> None:
    if not 0 < int(bad.sum()) < len(bad):
        raise DataError("there must be rows of both labels to measure a score by")
