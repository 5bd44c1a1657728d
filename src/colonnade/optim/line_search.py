"""How far to go along a direction: the least of a convex function of one number, by its slope alone.

Every search ends lower than it began, or where it began. That is what makes a method that uses it safe on any
data: no step size has to be known beforehand, and nothing that a direction gets wrong can raise the loss.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

SLOPE = 0.1  # how much of the slope at 0 may be left
FALL = 1e-4  # the part of the fall that the slope at 0 promises, which must be there
TRIES = 60


class Step(NamedTuple):
    """How far to go, and the values before and after."""

    t: float
    before: float
    after: float


def search(along: Callable[[float], tuple[float, float]], start: float) -> Step:
    """Return a step t > 0 at which f is well below f(0) and nearly flat; t = 0.0 if there is none.

    `along` gives f(t) and its slope; `start` is the first t to be tried. What is not finite is too far.

    >>> search(lambda t: ((t - 3) ** 2, 2 * (t - 3)), start=1.0)
    Step(t=3.0, before=9.0, after=0.0)
    """
    value, slope = along(0.0)
    best = Step(0.0, value, value)
    if not slope < 0:
        return best
    low, high, low_slope, high_slope = 0.0, float("inf"), slope, 0.0
    t = start
    for _ in range(TRIES):
        here, slope_here = along(t)
        falls = here <= value + FALL * t * slope  # False for what is not a number
        if falls and abs(slope_here) <= SLOPE * -slope:
            return Step(t, value, here)
        if falls and slope_here < 0:
            best, low, low_slope = Step(t, value, here), t, slope_here
        else:
            high, high_slope = t, slope_here
        if high == float("inf"):
            t *= 4
            continue
        # where a straight line through both slopes is zero, but never close to an end
        part = low_slope / (low_slope - high_slope) if 0 < high_slope < float("inf") else 0.5
        t = low + (high - low) * min(max(part, 0.1), 0.9)
    return best
