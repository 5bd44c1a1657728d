"""Epsilon and delta of one Gaussian release of sensitivity 1 (Balle and Wang 2018, Theorem 8)."""

from __future__ import annotations

import math


def delta_of(deviation: float, epsilon: float) -> float:
    """Return delta of one release with noise of this deviation, at this epsilon."""
    from scipy.special import log_ndtr, ndtr

    near = float(ndtr(0.5 / deviation - epsilon * deviation))
    return near - math.exp(epsilon + float(log_ndtr(-0.5 / deviation - epsilon * deviation)))


def deviation_for(epsilon: float, delta: float) -> float:
    """Return the deviation of one release within (epsilon, delta).

    >>> round(deviation_for(1.0, 1e-5), 3)
    3.731
    """
    low, high = 1e-3, 1e6 / epsilon
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if delta_of(middle, epsilon) > delta else (low, middle)
    return high


def epsilon_of(deviation: float, delta: float) -> float:
    """Return epsilon of one release with noise of this deviation.

    >>> round(epsilon_of(3.731, 1e-5), 3)
    1.0
    """
    low, high = 0.0, 1.0
    while delta_of(deviation, high) > delta:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if delta_of(deviation, middle) > delta else (low, middle)
    return high
