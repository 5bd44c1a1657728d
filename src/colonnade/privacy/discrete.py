"""Random whole numbers with exactly the distribution that privacy proofs speak of.

Noise in floating point has gaps. Of two labels often only one can have become the double that is seen, and
no epsilon holds (Mironov 2012). So what is hidden is written in whole numbers, and noise is a whole number
that takes every value for every label. The samplers are of the kind of Canonne, Kamath and Steinke (2020): a
proposal that is easy to draw, accepted with probability exp(-x) for a rational x.

    geometric   V: how often in a row something of probability 1/e happens
    Gaussian    +-(SCALE V + U), U uniform below SCALE, accepted with
                exp(-((V - 1)^2 + 2 V u + u^2) / 2), u = U / SCALE
    response    any class; if it is not the true one, accepted with exp(-epsilon)

The weights multiply to exp(-y^2 / 2) times a constant, and e^epsilon to 1. -0 is refused, or zero
would come twice.

A word of 64 bits begins the binary digits of a uniform number. Doubles say whether that is below exp(-x)
unless the two are very near; then as many further digits are computed, and drawn, as it takes (`_exactly`).
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, localcontext
from functools import partial
from typing import Protocol

import numpy as np

from colonnade.arrays import Floats, Numbers, Rows, Words

BITS = 24
SCALE: int = 2**BITS
"""The deviation of Gaussian noise, in steps of the grid.

These are so fine steps that rounding to the grid is nothing beside the noise (`privacy.accountant` has the
bound), and so few that 64 bits hold the exponents of noise up to 180 deviations.
"""
NEAR = 2.0**-45  # more than doubles are wrong by, about 2^-52


class WordStreams(Protocol):
    """Streams of random words, one for each number that is drawn (`privacy.noise`)."""

    def __len__(self) -> int: ...

    def take(self, streams: Rows) -> Words:
        """Return the next word of each of these streams."""
        ...


def gaussian(source: WordStreams) -> Rows:
    """Return a number of every stream, n with probability proportional to exp(-n^2 / (2 SCALE^2))."""
    found, left = np.zeros(len(source), dtype=np.int64), np.arange(len(source))
    while len(left):
        V, word = _geometric(source, left), source.take(left)
        U, minus = (word >> np.uint64(64 - BITS)).astype(np.int64), (word & np.uint64(1)).astype(bool)
        size = (V << BITS) + U
        exponent = ((V - 1) ** 2 << 2 * BITS) + (V * U << BITS + 1) + U**2
        kept = below(source, left, exponent, 2 * BITS + 1) & ~(minus & (size == 0))
        found[left[kept]] = np.where(minus, -size, size)[kept]
        left = left[~kept]
    return found


def response(source: WordStreams, codes: Rows, classes: int, epsilon: float) -> Rows:
    """Return every class after randomised response: the true one is e^epsilon times as likely as another."""
    numerator, denominator = min(epsilon, 2.0**30).as_integer_ratio()  # where nothing is ever changed
    told, left = codes.copy(), np.arange(len(codes))
    while len(left):
        code = _uniform(source, left, classes)
        other = np.flatnonzero(code != codes[left])
        kept = np.ones(len(left), dtype=bool)
        x = np.full(len(other), numerator)
        kept[other] = below(source, left[other], x, denominator.bit_length() - 1)
        told[left[kept]] = code[kept]
        left = left[~kept]
    return told


def _geometric(source: WordStreams, streams: Rows) -> Rows:
    """Return how often in a row something of probability 1/e happened."""
    times, going = np.zeros(len(streams), dtype=np.int64), np.arange(len(streams))
    while len(going):
        going = going[below(source, streams[going], np.ones(len(going), dtype=np.int64), 0)]
        times[going] += 1
    return times


def _uniform(source: WordStreams, streams: Rows, bound: int) -> Rows:
    """Return whole numbers below a bound, all equally likely; words of the last, broken round are redrawn."""
    last = np.uint64(2**64 // bound * bound - 1)
    found, left = np.zeros(len(streams), dtype=np.int64), np.arange(len(streams))
    while len(left):
        word = source.take(streams[left])
        fits = word <= last
        found[left[fits]] = (word[fits] % np.uint64(bound)).astype(np.int64)
        left = left[~fits]
    return found


def below(source: WordStreams, streams: Rows, numerator: Rows, shift: int) -> Numbers:
    """Return, for every stream, whether a uniform number is below exp(-numerator / 2^shift), exactly."""
    word = source.take(streams)
    chance: Floats = np.exp(-np.ldexp(numerator.astype(np.float64), -shift))
    u = word.astype(np.float64) * 2.0**-64
    yes = u < chance
    for i in np.flatnonzero(np.abs(u - chance) <= NEAR):
        more = partial(source.take, streams[i : i + 1])
        yes[i] = _exactly(int(word[i]), more, int(numerator[i]), shift)
    return yes


def _exactly(word: int, more: Callable[[], Words], numerator: int, shift: int) -> bool:
    """Return whether a uniform number that begins with a word is below exp(-numerator / 2^shift)."""
    if numerator == 0:
        return True
    bits = 64
    while True:
        with localcontext() as context:
            context.prec = bits // 3 + 40
            chance = (-Decimal(numerator) / Decimal(2) ** shift).exp() * Decimal(2) ** bits
            doubt = chance * Decimal(10) ** -(bits // 3 + 15)
            if word + 1 <= chance - doubt:
                return True
            if word >= chance + doubt:
                return False
        word, bits = word << 64 | int(more()[0]), bits + 64
