"""How loud the noise of gradients is: some rows, or as many as an epsilon asks for.

A label moves theta of its row by 1 at the most, so the gradients of a pass by that row of columns, each
over its largest number. With noise of S rows on every gradient of both blocks, a run of T passes is one
Gaussian release of deviation S / (|row| sqrt T): epsilon of that is exact (Balle and Wang 2018, Theorem 8).
What else is told (inner products, reaches) follows from noisy gradients alone if A's own block has noise as
well: `epsilon` asks for that, and a plain S for noise on what the other is told.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from colonnade.job.plan import Encrypted

STEPS = 8  # codes to a doubling


@dataclass(frozen=True)
class Loudness:
    """Noise of this many rows, as a code that both know; epsilon where A promised one."""

    code: int
    epsilon: float | None = None

    @property
    def rows(self) -> float:
        """The deviation of noise, in rows."""
        return float(2.0 ** (self.code / STEPS))

    @staticmethod
    def of(terms: Encrypted, spread: float, longest: float) -> Loudness:
        """Return how loud noise must be; `spread` is a usual row's weight, `longest` the heaviest row."""
        rows = terms.noise * spread
        if terms.epsilon is not None:
            rows = deviation_for(terms.epsilon, terms.delta) * longest * math.sqrt(terms.passes)
        code = math.ceil(STEPS * math.log2(max(rows, 2.0**-20)) - 1e-9)
        return Loudness(code, terms.epsilon)


def deviation_for(epsilon: float, delta: float) -> float:
    """Return the deviation of one Gaussian release of sensitivity 1 within (epsilon, delta).

    >>> round(deviation_for(1.0, 1e-5), 3)
    3.73
    """
    low, high = 1e-3, 1e6 / epsilon
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if delta_of(middle, epsilon) > delta else (low, middle)
    return high


def delta_of(deviation: float, epsilon: float) -> float:
    """Return delta of one Gaussian release of sensitivity 1 at this epsilon."""
    from scipy.special import log_ndtr, ndtr

    near = float(ndtr(0.5 / deviation - epsilon * deviation))
    return near - math.exp(epsilon + float(log_ndtr(-0.5 / deviation - epsilon * deviation)))
