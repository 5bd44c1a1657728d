"""What `_lattice.c` does, in NumPy: the same numbers, slowly, where no compiler was.

Every function has the signature of its namesake in C. A product of two numbers below 2^50 modulo p takes its
quotient from doubles, which err by one at the most, and its remainder from words that wrap around. This way
makes no promise about time: NumPy's remainders may take longer for some numbers than for others.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from colonnade.arrays import Digests, Words

LANES, WIDTH = 8, 4  # slots of a block, outputs of a group, as in `_lattice.c`
_ERROR_BITS = np.uint64(2**21 - 1)


def ways() -> list[str]:
    """Return the name of this way."""
    return ["numpy"]


def times(a: Words, b: Words | int, p: int) -> Words:
    """Return products modulo p of numbers below p.

    >>> times(np.array([2**49], dtype=np.uint64), 2**49, 2**50 - 27)
    array([844424930132130], dtype=uint64)
    """
    factor = np.asarray(b, dtype=np.uint64)
    quotient = (a.astype(np.float64) * factor.astype(np.float64) / p).astype(np.uint64)
    rest = (a * factor - quotient * np.uint64(p)).view(np.int64)
    rest += p * (rest < 0)
    rest -= p * (rest >= p)
    return rest.view(np.uint64)


def plus(a: Words, b: Words, p: int) -> Words:
    """Return sums modulo p."""
    total = a + b
    total -= np.uint64(p) * (total >= np.uint64(p))
    return total


def minus(a: Words, b: Words, p: int) -> Words:
    """Return differences modulo p."""
    return plus(a, np.uint64(p) - b, p)


def transform(x: Words, tables: Words, p: int, scale: int, inverse: int, way: int) -> None:
    """Transform every row in place: layers of pairs, each with the power of the root that is its group's."""
    rows, degree = x.shape
    powers = tables[inverse, 0]
    groups = [2**k for k in range(degree.bit_length() - 1)]
    for count in reversed(groups) if inverse else groups:
        pairs = x.reshape(rows, count, 2, degree // (2 * count))
        low, high = pairs[:, :, 0].copy(), pairs[:, :, 1].copy()
        power = powers[count : 2 * count, None]
        if inverse:
            pairs[:, :, 0], pairs[:, :, 1] = plus(low, high, p), times(minus(low, high, p), power, p)
        else:
            high = times(high, power, p)
            pairs[:, :, 0], pairs[:, :, 1] = plus(low, high, p), minus(low, high, p)
    if inverse:
        x[:] = times(x, scale, p)


def products(
    a: Words,
    b: Words,
    out: Words,
    block: int,
    group: int,
    term: int,
    one: int,
    p: int,
    add: int,
    way: int,
) -> None:
    """Write, or add, the sums over all terms of a times factors that lie at these strides."""
    _, terms, degree = a.shape
    flat = b.reshape(-1)
    slots = np.arange(degree // LANES)[:, None] * block + np.arange(LANES)
    for k in range(out.shape[1]):
        total = out[:, k] * np.uint64(add != 0)
        for c in range(terms):
            factors = flat[slots + k // WIDTH * group + k % WIDTH * one + c * term].reshape(degree)
            total = plus(total, times(a[:, c], factors, p), p)
        out[:, k] = total


def uniform(words: Words, out: Words, p: int) -> int:
    """Write numbers below p, as many as there are, and return how many."""
    small = words & np.uint64(2 ** (p - 1).bit_length() - 1)
    found = small[small < np.uint64(p)][: out.size]
    out.reshape(-1)[: found.size] = found
    return int(found.size)


def errors(words: Words, out: Words, p: int) -> None:
    """Add the bits of 21 that are set, less those of 21 others, modulo p."""
    less = np.bitwise_count(words >> np.uint64(21) & _ERROR_BITS).astype(np.int64)
    found = np.bitwise_count(words & _ERROR_BITS) - less
    out[:] = plus(out, _modulo(found, p).reshape(out.shape), p)


def ternary(words: Words, out: Words, p: int) -> None:
    """Write floor(3 word / 2^64) - 1 modulo p."""
    low = (words & np.uint64(2**32 - 1)) * np.uint64(3) >> np.uint64(32)
    third = ((words >> np.uint64(32)) * np.uint64(3) + low) >> np.uint64(32)
    out[:] = _modulo(third.astype(np.int64) - 1, p).reshape(out.shape)


def _modulo(small: Any, p: int) -> Words:
    found: Words = (small + p * (small < 0)).astype(np.uint64)
    return found


def flood(words: Words, out: Words, p: int, bits: int) -> None:
    """Add the sums of three whole numbers of this many bits, each a low and a high word, less their mean."""
    parts = words.reshape(*out.shape, 3, 2)
    low = parts[..., 0] & np.uint64(2 ** min(bits, 64) - 1)
    high = (parts[..., 1] & np.uint64(2 ** max(bits - 64, 0) - 1)) % np.uint64(p)
    carried = times(high, 2**64 % p, p)
    total = np.full(out.shape, -3 * 2 ** (bits - 1) % p, dtype=np.uint64)
    for j in range(3):
        total = plus(total, plus(carried[..., j], low[..., j] % np.uint64(p), p), p)
    out[:] = plus(out, total, p)


def scaled(messages: Words, out: Words, p: int, t: int, rest: int, inverse: int) -> None:
    """Add round(q m / t) modulo p, a divisor of q; `rest` is q modulo t, `inverse` that of t modulo p."""
    half = np.full(messages.shape, t // 2, dtype=np.uint64)
    left = plus(times(messages, rest, t), half, t)
    top = np.full(left.shape, t // 2 % p, dtype=np.uint64)
    out[:] = plus(out, times(minus(top, left % np.uint64(p), p), inverse, p), p)


def drop(x: Words, out: Words, dropped: int, p: int, inverse: int) -> None:
    """Replace out by (out - x) / dropped modulo p, x being centred modulo the prime that is dropped."""
    centred = x.astype(np.int64) - dropped * (x > np.uint64(dropped // 2))
    out[:] = times(minus(out, (centred % p).astype(np.uint64), p), inverse, p)


def cut(x: Words, p: int, bits: int) -> None:
    """Replace x by round(x 2^bits / p) modulo 2^bits."""
    whole, below = _wide(x, 2 ** (bits + 64) // p)
    x[:] = (whole + (below >> np.uint64(63))) & np.uint64(2**bits - 1)


def fraction(x: Words, out: Words, p: int, inverse: int) -> None:
    """Add x inverse 2^64 / p modulo 2^64, up to 3 units too small, for p above 2^49."""
    whole, below = _wide(times(x, inverse, p), 2**113 // p)
    out += (whole << np.uint64(15)) | (below >> np.uint64(49))


def _wide(x: Words, factor: int) -> tuple[Words, Words]:
    """Return the high and low words of products of 128 bits, from halves of 32."""
    low_half, half = np.uint64(2**32 - 1), np.uint64(32)
    top, bottom = np.uint64(factor >> 32), np.uint64(factor & (2**32 - 1))
    high, low = x >> half, x & low_half
    lowest = low * bottom
    middle = high * bottom + (lowest >> half)
    crossed = low * top + (middle & low_half)
    whole: Words = high * top + (middle >> half) + (crossed >> half)
    return whole, (crossed << half) | (lowest & low_half)


def pack(words: Words, packed: Digests, bits: int) -> None:
    """Write the lowest bits of all words side by side, lowest first."""
    of_each = np.unpackbits(
        words.astype("<u8").reshape(-1).view(np.uint8).reshape(-1, 8), axis=1, bitorder="little"
    )
    packed[:] = np.packbits(of_each[:, :bits], bitorder="little")


def unpack(packed: Digests, words: Words, bits: int) -> None:
    """Read words that `pack` wrote."""
    whole = np.zeros((words.size, 64), dtype=np.uint8)
    whole[:, :bits] = np.unpackbits(packed, bitorder="little").reshape(words.size, bits)
    words.reshape(-1)[:] = np.packbits(whole, axis=1, bitorder="little").view("<u8").reshape(-1)
