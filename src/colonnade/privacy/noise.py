"""Randomness that nobody can repeat: from the operating system, never from the job's seed, which all know."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
from scipy.special import ndtri

from colonnade.arrays import Numbers

Draw = Callable[[tuple[int, ...]], Numbers]
"""Independent numbers in an array of this shape."""


def uniform(shape: tuple[int, ...]) -> Numbers:
    """Numbers strictly between 0 and 1, of 53 random bits each."""
    bits = np.frombuffer(os.urandom(8 * int(np.prod(shape))), dtype=np.uint64) >> np.uint64(11)
    # doubles have 53 bits: the middles of 2^53 equal parts round to 1 at the upper end, and 1 has no quantile
    middles: Numbers = np.minimum((bits + 0.5) * 2.0**-53, 1 - 2.0**-53)
    return middles.reshape(shape)


def gaussian(shape: tuple[int, ...]) -> Numbers:
    """Standard normal numbers, by the inverse of the distribution function."""
    normal: Numbers = ndtri(uniform(shape))
    return normal
