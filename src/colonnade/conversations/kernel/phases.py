"""Projections as phases in few bits: a feature is a cosine, so whole turns of its angle need not travel.

omega'x + b is counted in turns, and only its fraction is kept, as a number of 16 or 32 bits that wraps around
where the angle does. Four or two such phases are one word of the ring in which secure sums are made, so the
sum of all parties' words has the sum of all parties' phases in each part. A part may be one too high for
every party but one, because the part below carries into it; that and the rounding are all the error there is:
the angle is exact to 2 pi q 2^-32, or 2^-16.

What travels is a half or a quarter of what numbers of 64 bits would be, and the owner learns less: cosine and
sine of an angle, but not how often it went round.
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from colonnade.arrays import Floats, Matrix, Words
from colonnade.models.random_features import RandomFeatures, phi

Phases: TypeAlias = NDArray[np.unsignedinteger[Any]]
TURN = 2 * np.pi
KINDS: dict[int, np.dtype[np.unsignedinteger[Any]]] = {16: np.dtype("<u2"), 32: np.dtype("<u4")}


# a number below 2^51 that is added to it has its whole part, rounded, in the last bits of the sum
_ROUNDS = 1.5 * 2.0**52
_IN_CACHE = 2**16  # angles that are computed at a time


def pack(angles: Floats, bits: int) -> Words:
    """Return angles as phases of `bits` bits, several to a word; zeros fill the last word."""
    words, phases = _room(angles.size, bits)
    phases[:] = _phases(angles.ravel() / TURN, bits)
    return words


def project(features: RandomFeatures, X: Matrix, bits: int) -> Words:
    """Return a party's part of the projections of rows as `pack` has them, computed a few rows at a time."""
    rows, count = int(X.shape[0]), features.count
    words, phases = _room(rows * count, bits)
    size = max(1, _IN_CACHE // count)
    for start in range(0, rows, size):
        turns = features.project(X[start : start + size])
        turns /= TURN
        phases[start * count : (start + size) * count] = _phases(turns.ravel(), bits)
    return words


def _room(count: int, bits: int) -> tuple[Words, Phases]:
    """Return words for this many phases, and the phases in them."""
    words: Words = np.zeros(-(-count * bits // 64), dtype=np.uint64)
    return words, words.view(KINDS[bits])[:count]


def _phases(turns: Floats, bits: int) -> Phases:
    """Return the fractions of turns as phases; one that is rounded up to a whole turn is 0."""
    turns -= np.floor(turns)
    turns *= 2.0**bits
    turns += _ROUNDS
    return turns.view(KINDS[bits])[:: 64 // bits]


def phases(words: Words, shape: tuple[int, ...], bits: int) -> Phases:
    """Return the phases in some words."""
    return words.view(KINDS[bits])[: int(np.prod(shape))].reshape(shape)


def unpack(words: Words, shape: tuple[int, ...], bits: int) -> Floats:
    """Return the angles in some words, from 0 to a turn.

    >>> angles = np.array([[0.5, -0.5], [7.0, TURN]])
    >>> np.round(unpack(pack(angles, 32) + pack(angles, 32), (2, 2), 32), 6).tolist()
    [[1.0, 5.283185], [1.433629, 0.0]]
    """
    return _angles(phases(words, shape, bits), bits)


def features_of(found: Phases) -> Floats:
    """Return phi of angles that are given as phases."""
    if found.dtype == KINDS[16]:  # there are so few that all are known
        return _all_features()[found]
    return phi(_angles(found, 32))


@cache
def _all_features() -> Floats:
    """Return phi of every phase of 16 bits."""
    return phi(_angles(np.arange(2**16, dtype=KINDS[16]), 16))


def _angles(found: Phases, bits: int) -> Floats:
    """Return phases as angles."""
    return np.multiply(found, TURN * 2.0**-bits, dtype=np.float64)
