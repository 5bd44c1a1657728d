"""Reads labels off gaps of noise: in doubles often only one of two labels can have become what is seen.

Noise of 53 random bits, through the inverse of the distribution function and added in doubles, reaches only
some of the doubles around a label. Who knows two labels that a row may have asks from which of them the
double that it sees can be reached.

An audit lets the run's own mechanism draw noisy labels, and tries this on them. Noise in whole numbers on a
grid reaches every value for every label, so that no more is read than the nearer of the two tells.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from colonnade.arrays import Floats, Numbers
from colonnade.attacks.confidence import of_part
from colonnade.findings import Finding
from colonnade.job.plan import Plan
from colonnade.losses import LOSSES
from colonnade.privacy.label_noise import label_points, noisy_labels

WINDOW = np.arange(-24, 25)  # how far rounding may have moved the random bits, and more
LEAST, MOST = 40, 20_000  # rows that it is tried on
FAULT = "nothing but noise in whole numbers: this is a fault, please report it"

Reached = NDArray[np.bool_]  # [candidates, rows]


def normal(bits: NDArray[np.int64]) -> Floats:
    """Return the normal numbers that 53 random bits become."""
    found: Floats = ndtri(np.minimum((bits + 0.5) * 2.0**-53, 1 - 2.0**-53))
    return found


def reached(seen: Numbers, candidates: ArrayLike, deviation: float) -> Reached:
    """Return from which of two candidates, of all rows or of each, some random bits give exactly what is
    seen."""
    found = []
    for candidate in np.broadcast_to(np.asarray(candidates, dtype=float).reshape(2, -1), (2, len(seen))):
        near = np.floor(ndtr((seen - candidate) / deviation) * 2.0**53).astype(np.int64)
        bits = np.clip(near[:, None] + WINDOW, 0, 2**53 - 1)
        found.append((candidate[:, None] + deviation * normal(bits) == seen[:, None]).any(axis=1))
    return np.array(found)


def read(seen: Numbers, y: Numbers, candidates: ArrayLike, can_be: Reached) -> tuple[float, float]:
    """Return the part of the labels that are read, and that of which the attacker is certain.

    It takes the only candidate that can be what it sees for the label, else the nearer one.
    """
    first, second = np.asarray(candidates, dtype=float).reshape(2, -1)
    nearer = np.where(np.abs(seen - first) <= np.abs(seen - second), first, second)
    certain = can_be[0] != can_be[1]
    right = np.where(certain, np.where(can_be[0], first, second), nearer) == y
    return float(right.mean()), float((right & certain).mean())


def labels_from_gaps(plan: Plan[Any], y: Numbers) -> Iterator[Finding]:
    """Yield how many labels the run's noise gives away by its gaps, where labels get noise as numbers.

    Classes that are drawn by chance are whole numbers already, and noise on replies is about no one label.
    """
    terms, loss = plan.privacy, LOSSES[plan.objective.loss]
    numbers = {"labels": ("regression",), "gradient": ("binary", "regression")}.get(terms.mechanism, ())
    if loss.task not in numbers or terms.epsilon is None:
        return
    from colonnade.privacy.accountant import multiplier_for  # loads dp-accounting

    points = label_points(y[:MOST], loss, terms.clip)[0]
    rng = np.random.default_rng(plan.seed)
    pairs = np.array([points, rng.permutation(points)])  # the true label, and that of another row
    differ = pairs[0] != pairs[1]
    if (rows := int(differ.sum())) < LEAST:
        return
    multiplier = multiplier_for(terms.epsilon, terms.delta, 1)
    labels = noisy_labels(points[differ], loss, terms.clip, multiplier)
    seen, deviation = labels(np.arange(rows)), labels.grid.deviation
    pairs = labels.grid.values(labels.grid.whole(pairs[:, differ]))
    right, _ = read(seen, pairs[0], pairs, reached(seen, pairs, deviation))
    found = of_part(round(right * rows), rows)
    nearer = float(ndtr(np.abs(pairs[0] - pairs[1]) / 2 / deviation).mean())
    yield Finding(
        attack="labels from gaps of noise",
        by=", ".join(party for party in plan.parties if party not in plan.label_holders),
        aim="labels",
        success=f"{found.value:.1%} of the labels ({found.low:.1%} to {found.high:.1%})",
        guessing=f"{nearer:.1%}, the nearer of two labels",
        note=f"asks which of two labels can have become what is seen; {rows:,} labels, in one release that "
        f"spends all of epsilon {terms.epsilon:g}, drawn again by the run's mechanism",
        value=found.value,
        low=found.low,
        high=found.high,
        baseline=nearer,
        closed_by=FAULT,
        found=found.low > nearer,
    )
