"""First and second derivatives as whole numbers: sums of them are exact, in any order and by anybody.

A row's g and h are scaled to a few bits and rounded up or down by chance, so that sums are right on average:
a tree loses nothing by it. Both share one 64-bit word, g in the upper and h in the lower half. So do their
sums, as long as those of h stay below 2^32 and those of g within 2^31, and that is why more rows have fewer
bits each. Words are elements of the ring modulo 2^64: what is added to hide them comes off exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from colonnade.arrays import Floats, Numbers, Words
from colonnade.losses import Loss, labels_of, weights_of

G_MOST, H_MOST = 2**15 - 1, 2**16 - 1  # of one row: both fit four bytes
_LOW = np.uint64(2**32 - 1)


@dataclass(frozen=True)
class Units:
    """What 1 in the sums of words stands for, and the largest first derivative of a row."""

    g: float
    h: float
    steepest: float = 1.0
    signed: bool = False  # whether sums of h may be below 0, as noise was added to them


class Lesson(NamedTuple):
    """What a tree learns from: the words of all rows, and finer ones by which its leaves are scored."""

    words: Words
    units: Units
    fine: Words
    fine_units: Units


def derivatives(loss: Loss, z: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Return first and second derivatives of the base loss by every score, times the weights of the rows.

    `y` are labels with their weights beside them, if any (`losses.with_weights`). Of several classes the
    diagonal of the second derivative is taken.
    """
    labels, weight = labels_of(y), weights_of(y)
    g = loss.dz(z, labels)
    h = loss.second(g, labels)
    if weight is not None:
        weight = weight if g.ndim == 1 else weight[:, None]
        g, h = weight * g, weight * h
    return g, h


def most_of(bits: int) -> int:
    """Return the largest g, and h, of a row where g has this many bits with its sign.

    >>> most_of(6)
    31
    """
    return (1 << bits - 1) - 1


def quantised(g: Floats, h: Floats, rng: np.random.Generator, bits: int = 0) -> tuple[Words, Units]:
    """Return the words of all rows, rounded by chance, and their units; with `bits` in no more than these."""
    n = max(len(g), 1)
    g_most, h_most = min(G_MOST, (2**31 - 1) // n), min(H_MOST, (2**32 - 1) // n)
    if bits:
        g_most = h_most = min(most_of(bits), g_most, h_most // 2)
    g_size, h_size = float(np.abs(g).max(initial=0.0)), float(h.max(initial=0.0))
    units = Units((g_size or 1.0) / g_most, (h_size or 1.0) / h_most, g_size, signed=bool(bits))
    whole_g = np.clip(np.floor(g / units.g + rng.random(len(g))), -g_most, g_most).astype(np.int64)
    whole_h = np.clip(np.floor(h / units.h + rng.random(len(h))), 0, h_most).astype(np.int64)
    return joined(whole_g, whole_h), units


def joined(g: Numbers, h: Numbers) -> Words:
    """Return whole numbers g and h >= 0 in one word each.

    >>> [numbers.tolist() for numbers in parted(joined(np.array([-3, 5]), np.array([7, 0])))]
    [[-3, 5], [7, 0]]
    """
    return (g.astype(np.int64) << 32).view(np.uint64) + h.astype(np.int64).view(np.uint64)


def parted(words: Words, *, signed: bool = False) -> tuple[Numbers, Numbers]:
    """Return the g and h of words, or of sums of words; `signed` reads h as a number that may be below 0.

    >>> [numbers.tolist() for numbers in parted(joined(np.array([2]), np.array([-7])), signed=True)]
    [[2], [-7]]
    """
    if signed:
        h = words.astype(np.uint32).view(np.int32).astype(np.int64)
        return (words - h.view(np.uint64)).view(np.int64) >> 32, h
    return words.view(np.int64) >> 32, (words & _LOW).view(np.int64)


def packed(words: Words, *, few: bool = False) -> Numbers:
    """Return the words of single rows in four bytes each, to send; `few` bits in two.

    >>> unpacked(packed(joined(np.array([-G_MOST, 5]), np.array([H_MOST, 0])))) - joined(
    ...     np.array([-G_MOST, 5]), np.array([H_MOST, 0])
    ... )
    array([0, 0], dtype=uint64)
    """
    g, h = parted(words)
    return (g << 8 | h).astype(np.uint16) if few else (g << 16 | h).astype(np.uint32)


def unpacked(numbers: Numbers) -> Words:
    """Return the words that `packed` made this of."""
    if numbers.dtype == np.uint16:
        return joined(numbers.view(np.int16) >> 8, numbers & np.uint16(255))
    return joined(numbers.view(np.int32) >> 16, numbers & np.uint32(H_MOST))
