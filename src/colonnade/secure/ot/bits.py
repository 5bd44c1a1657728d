"""Matrices of bits, packed: turned over, and summed by random coefficients."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from colonnade.arrays import Words

SUMS = 64  # random sums that are made at once: the bits of a word
_SWAPS = ((7, 0x00AA00AA00AA00AA), (14, 0x0000CCCC0000CCCC), (28, 0x00000000F0F0F0F0))


def transposed(columns: NDArray[np.uint8]) -> Words:
    """Return columns of bits, a row of bytes each, as rows of words: bit j of row i is bit i of column j.

    The number of columns must be a multiple of 64. Bit k of an array of bytes is bit k % 8 of byte k // 8.
    """
    count, size = columns.shape
    # eight bytes of eight columns are one word, a square of bits that is turned over in three swaps
    squares = columns.reshape(count // 8, 8, size).transpose(2, 0, 1).copy().view(np.uint64)
    spare = np.empty_like(squares)
    for shift, mask in _SWAPS:
        np.right_shift(squares, np.uint64(shift), out=spare)
        spare ^= squares
        spare &= np.uint64(mask)
        squares ^= spare
        spare <<= np.uint64(shift)
        squares ^= spare
    octets = squares.view(np.uint8).reshape(size, count // 8, 8).transpose(0, 2, 1)
    return np.ascontiguousarray(octets).reshape(8 * size, count // 8).view(np.uint64)


def combined(rows: Words, coefficients: Words) -> Words:
    """Return, for every bit of the coefficients, a word for each row, the sum of the rows that have it.

    Eight bits at a time: rows of one byte are summed, then the 256 sums by their bits.
    """
    sums = np.empty((SUMS, rows.shape[1]), dtype=np.uint64)
    octets = coefficients.view(np.uint8).reshape(-1, 8)
    for place in range(8):
        order = np.argsort(octets[:, place], kind="stable")
        values, starts = np.unique(octets[order, place], return_index=True)
        by_value = np.zeros((256, rows.shape[1]), dtype=np.uint64)
        by_value[values] = np.bitwise_xor.reduceat(rows.take(order, axis=0), starts)
        for bit in range(8):
            chosen = by_value[np.arange(256) >> bit & 1 == 1]
            sums[8 * place + bit] = np.bitwise_xor.reduce(chosen)
    return sums
