"""A lower bound on the true epsilon, from how often an attacker tells two data sets apart.

If replies are (epsilon, delta) differentially private, an attacker that says "the second" with probability p
when it is the second and f when it is the first has p <= e^epsilon f + delta. Counts of many trials bound p
from below and f from above (Clopper and Pearson), and so epsilon from below, with the confidence asked for.
"""

from __future__ import annotations

from math import log

from scipy.stats import beta


def epsilon_at_least(
    hits: int,
    false_alarms: int,
    trials: int,
    controls: int | None = None,
    *,
    delta: float = 1e-5,
    confidence: float = 0.95,
) -> float:
    """Return the lower bound on epsilon with this confidence, from trials with each of two data sets.

    `hits` are trials with the second data set in which the attacker said "the second", `false_alarms` those
    with the first. There are `trials` of the second, and as many of the first unless `controls` says so.

    >>> round(epsilon_at_least(5000, 0, 5000), 2)
    7.21
    >>> epsilon_at_least(50, 50, 100)
    0.0
    """
    doubt = (1 - confidence) / 2
    least = 0.0 if hits == 0 else float(beta.ppf(doubt, hits, trials - hits + 1))
    first = trials if controls is None else controls
    most = (
        1.0 if false_alarms == first else float(beta.ppf(1 - doubt, false_alarms + 1, first - false_alarms))
    )
    return max(0.0, log(max(least - delta, 1e-300) / most))
