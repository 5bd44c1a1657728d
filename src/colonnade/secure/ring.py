"""Fixed-point numbers in the ring of integers modulo 2^64.

Sums in the ring do not depend on their order, so a replay is exact to the bit, and a uniformly random
ring element hides a value perfectly. A value is rounded to a multiple of 2^-32. The range is shared
among q parties so that no sum can wrap around: a value beyond it is an error, never a wrong result. The range
is half of the ring: pieces that were masked otherwise, or not at all, add up to random words, of which every
second one lies outside, and a total with such a word is refused.
"""

from __future__ import annotations

import numpy as np

from colonnade.arrays import Floats, Words
from colonnade.errors import FixedPointOverflow
from colonnade.secure import words

if words.COMPILED:
    from colonnade.secure import _words

FRACTION_BITS = 32
STEP = 2.0**-FRACTION_BITS
_SCALE = 2.0**FRACTION_BITS
# added to a small number, it pushes the bits below the fixed-point step out of a float, to the nearest even;
# it is an array, as a plain number would be made one for every sum
_PUSH_BY = 1.5 * 2.0 ** (52 - FRACTION_BITS)
_PUSH: Floats = np.array(_PUSH_BY)
_SMALL = 2.0 ** (50 - FRACTION_BITS)

_WORD = np.dtype(np.uint64)

OFFSET = _PUSH.view(_WORD)
"""The bits of a float that has been pushed and is zero."""

WIDEST = 2.0 ** (62 - FRACTION_BITS)
"""No total is larger: half of the ring stands for none, so that what is no piece of a sum is found out."""


def limit(q: int) -> float:
    """Return the size below which the values of q parties sum up to no more than the widest total."""
    return WIDEST / q


def encode(values: Floats, q: int) -> Words:
    """Return the values as fixed-point numbers; FixedPointOverflow if one is too large for a sum of q
    parties.

    >>> encode(np.array([1.5, -STEP]), q=2).tolist()
    [6442450944, 18446744073709551615]
    """
    words = offset(values, q)
    words -= OFFSET
    return words


def offset(values: Floats, q: int) -> Words:
    """Return the same plus `OFFSET`, which is quicker: for who has something to add anyway, less `OFFSET`."""
    square = np.vdot(values, values)  # bounds every value with one look at each; NaN is never smaller
    if square < _SMALL**2:
        pushed: Floats = values + _PUSH  # as `rint` below, in half the time
        return pushed.view(_WORD)
    if not square < limit(q) ** 2 and not (largest := np.abs(values).max()) < limit(q):
        raise FixedPointOverflow(
            f"a value of size {largest:g} does not fit the fixed-point range "
            f"(below {limit(q):g} with {q} parties); "
            "scale the columns (data.scale = 'zscore' or 'minmax'), give large labels in larger units, "
            "or use a smaller step"
        )
    scaled = values * _SCALE
    np.rint(scaled, out=scaled)
    words: Words = scaled.astype(np.int64).view(np.uint64)
    words += OFFSET
    return words


def whole(values: Floats) -> Words:
    """Return whole numbers as words: the nearest, of numbers that are none."""
    words: Words = np.rint(values).astype(np.int64).view(np.uint64)
    return words


def masked(values: Floats, mask: Words, q: int) -> Words:
    """Return the values as fixed-point numbers plus a mask of as many words or more, from which `OFFSET` was
    taken.

    >>> masked(np.array([1.5]), np.array([7], dtype=np.uint64) - OFFSET, q=2).tolist()
    [6442450951]
    """
    if words.COMPILED and values.flags.c_contiguous:
        piece = np.empty(values.size, _WORD)
        if _words.masked(values, mask, piece, _PUSH_BY, _SMALL):
            return piece
    piece = offset(values, q).ravel()
    piece += mask[: piece.size]
    return piece


def total_of(share: Words, pieces: list[Words]) -> Floats | None:
    """Return the total of all pieces and the share, which is used up; None if it is wider than any can be.

    >>> total_of(encode(np.array([1.5]), q=2), [encode(np.array([-2.0]), q=2)])
    array([-0.5])
    """
    if words.COMPILED:
        total = np.empty(share.size)
        return total if _words.totalled(share, total, pieces, STEP, WIDEST) else None
    for piece in pieces:
        share += piece
    total = decode(share)
    return None if too_wide(total) else total


def decode(ring: Words) -> Floats:
    """Return the values that fixed-point numbers stand for."""
    return ring.view(np.int64).astype(np.float64) * STEP


def finely(values: Floats) -> Floats:
    """Return every value as two, for sums that must be finer than the fixed-point step: see `joined`.

    First all values to the nearest step, then what that leaves of each, counted in steps.

    >>> joined(finely(np.array([1 / 3, 1e-15])) + finely(np.array([1 / 3, 2e-15])))
    array([6.66666667e-01, 3.00000000e-15])
    """
    coarse = np.rint(values * _SCALE) * STEP
    return np.concatenate([coarse, (values - coarse) * _SCALE])


def joined(total: Floats) -> Floats:
    """Return the totals of values that were summed `finely`."""
    coarse, rest = np.split(total, 2)
    summed: Floats = coarse + rest * STEP
    return summed


def too_wide(total: Floats) -> bool:
    """Return whether a total cannot be the sum of pieces within their limits: somebody gave something
    else."""
    return not np.vdot(total, total) <= WIDEST**2 and not np.abs(total).max() <= WIDEST
