"""The logistic function of numbers that two parties share and nobody knows: a sum of sines.

A and B hold words that add up to z, in fixed point. The logistic function less a half is odd, and on
[-REACH, REACH] it is a sum of a few sines of period PERIOD, to within 0.002. Sines can be taken apart:

    sin k(u + r) = sin(ku) cos(kr) + cos(ku) sin(kr)

A dealer T knows r, a random phase, and deals words that add up to the cosines and sines of its multiples. A
and B open u = z - r, which is a uniform phase and says nothing, and multiply what they were dealt by sines
and cosines of u. So one exchange gives both a word each, and the two words add up to the result.

A phase has 16 bits and counts modulo the period: it is cut out of the middle of a word, and what is above is
whole periods, so shares that wrap around do no harm. Cutting both words off loses half a unit on average,
which T adds to r. Multipliers of u must be the same numbers at A and at B, to the last bit: they come from a
table of whole numbers and one multiplication.

What each side learns: nothing. Beyond REACH the sum of sines is no longer the logistic function.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from colonnade.arrays import Floats, Words
from colonnade.secure.ring import whole
from colonnade.secure.streams import PairStreams, Roles

PERIOD = 64  # of the sines
REACH = 26.0  # the scores for which the sum of sines is the logistic function
UNIT_BITS = 10  # a phase counts in 2^-10
PHASES = PERIOD << UNIT_BITS  # of 16 bits
# sin(2 pi k z / PERIOD) for k = 1, 3, ..., 19: least squares on [0, REACH]
FACTORS = (
    0.626759, 0.184875, 0.088012, 0.045781, 0.024487, 0.013314, 0.007259, 0.003857, 0.001944, 0.00093,
)  # fmt: skip
MULTIPLES = tuple(range(1, 2 * len(FACTORS), 2))
WORDS = 2 * len(FACTORS)  # that are dealt for one number
TABLE_BITS = 20

Phases = NDArray[np.uint16]

PHASE, WAVE = "phase", "wave"  # the purposes of streams


def phases_of(words: Words, bits: int) -> Phases:
    """Return shares of numbers, with these bits of fraction, as shares of their phases."""
    return (words >> np.uint64(bits - UNIT_BITS)).astype(np.uint16)


class LogisticHolder:
    """A, the asker, or B, the owner of nothing: one of the two that share z."""

    def __init__(self, streams: PairStreams, roles: Roles) -> None:
        self.me, self.roles = streams.me, roles
        self._phase = streams.shared(roles.dealer, PHASE, roles)
        self._wave = streams.shared(roles.dealer, WAVE, roles) if self.me == roles.asker else None

    def phases(self, tag: int, count: int) -> Phases:
        """Return this party's part of the random phases of a tag."""
        return _phases(self._phase.once(tag, count))

    def dealt(self, tag: int, count: int) -> Words:
        """Return what A was dealt, which it makes itself: [numbers, words]; B is sent its words."""
        if self._wave is None:
            raise RuntimeError(f"{self.me} is sent its words")
        return self._wave.once(tag, count * WORDS).reshape(count, WORDS)


class LogisticDealer:
    """T: it knows the random phases, and sees nothing."""

    def __init__(self, streams: PairStreams, roles: Roles) -> None:
        self._phases = [streams.shared(peer, PHASE, roles) for peer in (roles.asker, roles.owner)]
        self._wave = streams.shared(roles.asker, WAVE, roles)

    def deal(self, tag: int, count: int, bits: int) -> Words:
        """Return B's words for `count` numbers; cosines and sines have `bits` bits of fraction."""
        first, second = (_phases(stream.once(tag, count)) for stream in self._phases)
        angle = ((first + second).astype(np.float64) + 0.5) * (2 * np.pi / PHASES)
        turn = np.exp(1j * angle)
        values = np.empty((count, 2, len(MULTIPLES)))
        wave, twice = turn, turn * turn
        for k in range(len(MULTIPLES)):
            values[:, 0, k], values[:, 1, k] = wave.real, wave.imag
            wave = wave * twice
        words = whole(values * 2.0**bits).reshape(count, WORDS)
        hidden: Words = words - self._wave.once(tag, count * WORDS).reshape(count, WORDS)
        return hidden


def combined(opened: Phases, dealt: Words, scale: float) -> Words:
    """Return a party's part of `scale` times the logistic function less a half, times the unit of what was
    dealt."""
    sines, turned = _table(), opened.astype(np.uint32)
    found = np.zeros(len(opened), dtype=np.uint64)
    for k, (multiple, factor) in enumerate(zip(MULTIPLES, FACTORS, strict=True)):
        place = (turned * np.uint32(multiple)) & np.uint32(PHASES - 1)
        quarter = (place + np.uint32(PHASES // 4)) & np.uint32(PHASES - 1)
        strength = factor * scale * 2.0**-TABLE_BITS
        found += whole(sines[place] * strength) * dealt[:, k]
        found += whole(sines[quarter] * strength) * dealt[:, len(MULTIPLES) + k]
    return found


def logistic_of(z: Floats) -> Floats:
    """Return what the sum of sines is: the logistic function less a half, near enough."""
    angles = np.multiply.outer(z, np.array(MULTIPLES)) * (2 * np.pi / PERIOD)
    found: Floats = np.sin(angles) @ np.array(FACTORS)
    return found


def _phases(words: Words) -> Phases:
    return (words & np.uint64(PHASES - 1)).astype(np.uint16)


@cache
def _table() -> Floats:
    """Return sines of all phases as whole numbers: no two machines may differ, and none is near a half."""
    whole: Floats = np.rint(np.sin(np.arange(PHASES) * (2 * np.pi / PHASES)) * 2.0**TABLE_BITS)
    return whole
