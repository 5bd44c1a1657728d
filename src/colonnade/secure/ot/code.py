"""The binary code [512, 76, 172]: the BCH code of length 511 with one more bit, which makes weights even.

The generator polynomial has the roots a, a^2, ..., a^170 in the field of 512 elements, so that any two words
differ in at least 171 places (the BCH bound). It is the code that Orrù, Orsini and Scholl took.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from colonnade.arrays import Words

LENGTH, DIMENSION, DISTANCE = 512, 76, 172
WIDTH = LENGTH // 64  # words of a codeword
_ROOTS = 170  # a, a^2, ... up to this power are roots of the generator
_FIELD = 0b1000010001  # x^9 + x^4 + 1, which a is a root of
_BYTES = -(-DIMENSION // 8)
_HIGH = np.uint64(2 ** (DIMENSION - 64) - 1)


def message(words: Words) -> Words:
    """Return the first 76 bits of every row of two words: what can be encoded."""
    cut: Words = words & np.array([2**64 - 1, _HIGH], dtype=np.uint64)
    return cut


def encoded(messages: Words) -> Words:
    """Return the codeword of every message, as a row of eight words: sums of entries of a table for each
    byte."""
    octets = messages.view(np.uint8).reshape(-1, 16)
    tables = _tables()
    total: Words = tables[0].take(octets[:, 0], axis=0)
    for place in range(1, _BYTES):
        total ^= tables[place].take(octets[:, place], axis=0)
    return total


@cache
def generator() -> NDArray[np.uint8]:
    """Return the coefficients of the generator polynomial, from the lowest."""
    powers = [1]
    for _ in range(510):
        doubled = powers[-1] << 1
        powers.append(doubled ^ _FIELD if doubled >= 512 else doubled)
    logarithm = {power: k for k, power in enumerate(powers)}
    roots = {(k << turn) % 511 for k in range(1, _ROOTS + 1) for turn in range(9)}
    polynomial = [1]
    for root in sorted(roots):  # times x + a^root
        scaled = [powers[(logarithm[each] + root) % 511] if each else 0 for each in polynomial]
        polynomial = [low ^ high for low, high in zip([*scaled, 0], [0, *polynomial], strict=True)]
    return np.array(polynomial, dtype=np.uint8)


@cache
def basis() -> NDArray[np.uint8]:
    """Return the words of the messages with a single bit, [76, 512] bits."""
    polynomial = generator()
    rows = np.zeros((DIMENSION, LENGTH), dtype=np.uint8)
    for place, row in enumerate(rows):
        row[place : place + len(polynomial)] = polynomial
        row[-1] = polynomial.sum() % 2
    return rows


@cache
def _tables() -> Words:
    """Return, for each byte of a message and each of its values, the sum of the basis words it stands for."""
    words = np.zeros((8 * _BYTES, WIDTH), dtype=np.uint64)
    words[:DIMENSION] = np.packbits(basis(), axis=1, bitorder="little").view(np.uint64)
    tables = np.zeros((_BYTES, 256, WIDTH), dtype=np.uint64)
    for bit in range(8):  # values below 2^bit are there already
        known = tables[:, : 1 << bit]
        tables[:, 1 << bit : 2 << bit] = known ^ words.reshape(_BYTES, 8, WIDTH)[:, bit : bit + 1]
    return tables
