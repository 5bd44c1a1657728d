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

from typing import Any

import numpy as np

from colonnade.arrays import Floats, Words

TURN = 2 * np.pi
KINDS: dict[int, np.dtype[np.unsignedinteger[Any]]] = {16: np.dtype("<u2"), 32: np.dtype("<u4")}


def pack(angles: Floats, bits: int) -> Words:
    """Return angles as phases of `bits` bits, several to a word; zeros fill the last word."""
    turns = angles.ravel() / TURN
    turns -= np.floor(turns)
    # a phase that is rounded up to a whole turn is 0
    phases = np.rint(turns * 2.0**bits).astype(np.uint64).astype(KINDS[bits])
    room = np.zeros(-(-phases.size * bits // 64) * 64 // bits, dtype=KINDS[bits])
    room[: phases.size] = phases
    return room.view(np.uint64)


def unpack(words: Words, shape: tuple[int, ...], bits: int) -> Floats:
    """Return the angles in some words, from 0 to a turn.

    >>> angles = np.array([[0.5, -0.5], [7.0, TURN]])
    >>> np.round(unpack(pack(angles, 32) + pack(angles, 32), (2, 2), 32), 6).tolist()
    [[1.0, 5.283185], [1.433629, 0.0]]
    """
    phases = words.view(KINDS[bits])[: int(np.prod(shape))]
    angles: Floats = phases * (TURN * 2.0**-bits)
    return angles.reshape(shape)
