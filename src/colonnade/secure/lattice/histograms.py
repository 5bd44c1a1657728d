"""Sums of one party's encrypted numbers over the bins of another's columns, which the first is to learn.

The asker puts L numbers of rows into the lowest coefficients of a polynomial of N, for every L rows another
one. The owner gives every bin that it tells a place among N / L, and multiplies by a polynomial with a term
for every row and column: X^(place L - row). Coefficient (place L) of the product is the sum over the bin, as
rows that lie elsewhere cannot reach it. Bins that find no place go into another answer.

    asker -> owner   a public key, and numbers encrypted, L of them in a ciphertext
    owner -> asker   c_1 of every answer; c_0 of its places alone: with a fresh encryption of zero, the
                     owner's own noise and a flood; all cut to few bits

What the asker reads are the sums with the owner's noise, exact, a c_1 that looks uniform, and noise with the
errors of its ciphertexts in it, hidden by the flood (`SumParameters.told`).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log2, sqrt

import numpy as np
from numpy.typing import NDArray

from colonnade.arrays import Words
from colonnade.errors import SumError
from colonnade.secure.lattice.arithmetic import code
from colonnade.secure.lattice.ciphertexts import (
    Ciphertexts,
    Reader,
    SecretKey,
    centred,
    packed,
    scaling,
    zeros_added,
)
from colonnade.secure.lattice.parameters import SumParameters
from colonnade.secure.lattice.portable import LANES, WIDTH
from colonnade.secure.lattice.source import Source

Counts = NDArray[np.int64]
Flags = NDArray[np.bool_]

LEAST_APART, MOST_APART = 16, 2048  # rows of a ciphertext
LOW = 32  # bits of the lower part of a word of an answer
ROOM = 2**24  # bytes of factors that are made at once


def rows_together(ring: SumParameters, rows: int, bins: int) -> int:
    """Return how many rows share a ciphertext, so that few bytes cross: many rows leave few places."""
    asked, answered = sum(p.bit_length() for p in ring.primes), ring.cut
    best = sqrt(max(rows, 1) * asked * ring.degree / (max(bins, 1) * answered))
    return min(max(1 << round(log2(best)), LEAST_APART), MOST_APART)


def encrypted_rows(key: SecretKey, ring: SumParameters, numbers: Words, apart: int) -> Ciphertexts:
    """Return numbers modulo t encrypted, `apart` of them in a ciphertext; at least one ciphertext."""
    chunks = chunks_of(len(numbers), apart)
    room = np.zeros((1, chunks, ring.degree), dtype=np.uint64)
    padded = np.zeros(chunks * apart, dtype=np.uint64)
    padded[: len(numbers)] = numbers
    room[0, :, :apart] = padded.reshape(chunks, apart)
    return key.encrypt(room)


def chunks_of(rows: int, apart: int) -> int:
    """Return how many ciphertexts these rows fill."""
    return max(1, ceil(rows / apart))


@dataclass(frozen=True, eq=False)
class SumAnswer:
    """c_1 of every answer, [answers, N], and c_0 of every sum, all cut."""

    ring: SumParameters
    c_1: Words
    c_0: Words

    def __bytes__(self) -> bytes:
        padded = np.zeros(-(-len(self.c_0) // 8) * 8, dtype=np.uint64)
        padded[: len(self.c_0)] = self.c_0
        low = np.uint64(2**LOW - 1)
        parts = (self.c_1, padded)
        return b"".join(
            packed(part & low, LOW) + packed(part >> np.uint64(LOW), self.ring.cut - LOW) for part in parts
        )

    @staticmethod
    def read(ring: SumParameters, sums: int, apart: int, data: bytes) -> SumAnswer:
        """Return the answer of this many sums, as `bytes` wrote it; refuse anything else."""
        reader, parts = Reader(data, "answers"), []
        answers = ceil(sums * apart / ring.degree)
        for shape in ((answers, ring.degree), (-(-sums // 8) * 8,)):
            low, high = np.empty(shape, dtype=np.uint64), np.empty(shape, dtype=np.uint64)
            reader.words(low, LOW, 2**LOW)
            reader.words(high, ring.cut - LOW, 2 ** (ring.cut - LOW))
            parts.append(low | high << np.uint64(LOW))
        reader.end()
        return SumAnswer(ring, parts[0], parts[1][:sums])


def sums_over_bins(
    public: Ciphertexts,
    asked: Ciphertexts,
    bins: Counts,
    noise: Words,
    apart: int,
    source: Source | None = None,
) -> SumAnswer:
    """Return the sums over every told bin, plus the owner's noise modulo t, one word for each of them.

    `bins` says of every column and row, [columns, rows], in which of the told bins the row is; -1 if in none.
    """
    ring, source = asked.parameters, source or Source.fresh()
    if not isinstance(ring, SumParameters):
        raise SumError("only numbers that were encrypted for sums are summed")
    chunks, degree = asked.values.shape[3], ring.degree
    if chunks != chunks_of(bins.shape[1], apart) or bins.size > ring.terms or degree % apart:
        raise SumError(f"sums of {bins.shape[1]} rows and {len(bins)} columns were not asked for")
    places = degree // apart
    answers = ceil(len(noise) / places)
    out = [np.empty((2, answers, degree), dtype=np.uint64) for _ in ring.primes]
    some = max(1, ROOM // (8 * chunks * degree) // WIDTH) * WIDTH
    strides = (LANES, WIDTH * chunks * degree, degree, chunks * degree)
    for begin in range(0, answers, some):
        end = min(begin + some, answers)
        where, sign = _terms(bins, apart, degree, begin, end)
        for k, m in enumerate(ring.moduli):
            factors = np.zeros((end - begin, chunks, degree), dtype=np.uint64)
            factors.reshape(-1)[where] = np.where(sign, np.uint64(m.p - 1), np.uint64(1))
            sums = np.empty((2, end - begin, degree), dtype=np.uint64)
            m.products(asked.values[k, 0], m.forward(factors), sums, strides, add=False)
            out[k][:, begin:end] = sums
    zeros_added(public, out, source)
    own = [np.ascontiguousarray(parts[0, :, ::apart].reshape(-1)[: len(noise)]) for parts in out]
    flood = source.words(len(noise), 3, 2)
    for m, c_0 in zip(ring.moduli, own, strict=True):
        code().scaled(noise, c_0, *scaling(m.p, ring.plain, ring.q))
        code().flood(flood, c_0, m.p, ring.flood_bits)
    return SumAnswer(ring, _cut(ring, [parts[1] for parts in out]), _cut(ring, own))


def _terms(bins: Counts, apart: int, degree: int, begin: int, end: int) -> tuple[Counts, Flags]:
    """Return where the factors of some answers have terms, and which of them are -1."""
    places = degree // apart
    found, signs = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=bool)]
    whole = chunks_of(bins.shape[1], apart) * degree
    for column in bins:
        rows = np.flatnonzero((column >= begin * places) & (column < end * places))
        answer, place = np.divmod(column[rows], places)
        chunk, within = np.divmod(rows, apart)
        at = place * apart - within
        wraps = at < 0  # X^(-r) is -X^(N - r)
        found.append((answer - begin) * whole + chunk * degree + at + degree * wraps)
        signs.append(wraps)
    return np.concatenate(found), np.concatenate(signs)


def _cut(ring: SumParameters, by_prime: list[Words]) -> Words:
    """Return numbers modulo q, given by their remainders, as this many bits of what part of q they are."""
    found = np.full(by_prime[0].shape, 2 ** (63 - ring.cut), dtype=np.uint64)  # rounds
    for m, rest in zip(ring.moduli, by_prime, strict=True):
        code().fraction(np.ascontiguousarray(rest), found, m.p, pow(ring.q // m.p, -1, m.p))
    return found >> np.uint64(64 - ring.cut)


def decrypted_sums(key: SecretKey, got: SumAnswer, apart: int) -> Words:
    """Return the sums that an answer holds, modulo t."""
    ring, low = got.ring, np.uint64(2**LOW - 1)
    phase = got.c_0.copy()
    for part, bits in ((got.c_1 & low, 0), (got.c_1 >> np.uint64(LOW), LOW)):
        # halves are so small that their products with s, of -1, 0 and 1, are found modulo one prime
        product = centred(key.times(0, part), ring.primes[0])[:, ::apart].reshape(-1)[: len(phase)]
        phase += (product << bits).view(np.uint64)
    return _rounded(ring, phase)


def rounded_to_plain(ring: SumParameters, by_prime: list[Words]) -> Words:
    """Return round(t x / q) modulo t of numbers modulo q: what c_0 alone says, if anything."""
    return _rounded(ring, _cut(ring, by_prime))


def _rounded(ring: SumParameters, words: Words) -> Words:
    """Return words of an answer as numbers modulo t."""
    rest = ring.cut - ring.plain.bit_length() + 1
    found: Words = (words + np.uint64(1 << rest - 1)) >> np.uint64(rest) & np.uint64(ring.plain - 1)
    return found
