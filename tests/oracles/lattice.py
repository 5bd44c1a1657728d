"""Encryption by ring learning with errors in whole numbers: schoolbook products, no transform."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction


def product(a: Sequence[int], b: Sequence[int], modulus: int) -> list[int]:
    """The product of two polynomials modulo X^N + 1: what passes the end comes back with its sign changed."""
    degree = len(a)
    out = [0] * degree
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            out[(i + j) % degree] += x * y if i + j < degree else -x * y
    return [c % modulus for c in out]


def centred(x: int, modulus: int) -> int:
    x %= modulus
    return x - modulus if 2 * x > modulus else x


def rounded(x: int, y: int) -> int:
    """The whole number nearest to x / y, halves upwards."""
    return (2 * x + y) // (2 * y)


def joined(residues: Sequence[int], primes: Sequence[int]) -> int:
    """The number modulo the product of primes that has these residues."""
    total, q = 0, 1
    for residue, p in zip(residues, primes, strict=True):
        total += q * ((residue - total) * pow(q, -1, p) % p)
        q *= p
    return total


def phase(c_0: Sequence[int], c_1: Sequence[int], s: Sequence[int], q: int) -> list[int]:
    """c_0 + c_1 s modulo q: q / t times the message, and noise."""
    return [(x + y) % q for x, y in zip(c_0, product(c_1, s, q), strict=True)]


def message(v: Sequence[int], q: int, t: int) -> list[int]:
    return [rounded(t * x, q) % t for x in v]


def noise(v: Sequence[int], m: Sequence[int], q: int, t: int) -> list[Fraction]:
    """What is left of a phase without q / t times the message."""
    return [Fraction(centred(t * x - q * y, t * q), t) for x, y in zip(v, m, strict=True)]
