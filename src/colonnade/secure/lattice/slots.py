"""Products row by row, of one party's numbers and another's, that neither reads: exact, modulo a prime t.

Every term of theta is a number of the asker times a number of the owner, for every row. A polynomial modulo t
has N slots, its values at the odd powers of a root, and polynomials multiply slot by slot. So a ciphertext
holds N rows, and an answer is the sum of some products with plain polynomials.

    asker -> owner   a public key, and f_r encrypted, for every term r
    owner -> asker   sum of f_r g_r, plus k uniform, plus a fresh encryption of zero and a flood; fewer primes
    both             asker: the sum plus k, owner: -k; parts that add up to the sum modulo t

What the asker reads of an answer is its part, a c_1 that looks uniform, and noise. Noise has the errors times
the owner's polynomials in it; the flood hides that (`SlotParameters.told` bounds how well).
"""

from __future__ import annotations

from dataclasses import dataclass

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
    residues,
    scaling,
    zeros_added,
)
from colonnade.secure.lattice.parameters import SlotParameters
from colonnade.secure.lattice.portable import LANES, times
from colonnade.secure.lattice.source import Source


def in_slots(ring: SlotParameters, numbers: NDArray[np.int64]) -> Words:
    """Return polynomials with these numbers in their slots: [terms, rows] becomes [chunks, terms, N]."""
    terms, rows = numbers.shape
    if 2 * int(np.abs(numbers).max(initial=0)) >= ring.plain:
        raise SumError(f"slots hold numbers below {ring.plain // 2}")
    chunks = ring.chunks(rows)
    room = np.zeros((terms, chunks * ring.degree), dtype=np.int64)
    room[:, :rows] = numbers
    by_chunk = np.ascontiguousarray(room.reshape(terms, chunks, ring.degree).swapaxes(0, 1))
    return ring.slots.inverse(residues(by_chunk, ring.plain))


def encrypted(key: SecretKey, ring: SlotParameters, numbers: NDArray[np.int64]) -> Ciphertexts:
    """Return numbers, [terms, rows], encrypted: a group of ciphertexts for every chunk of rows."""
    return key.encrypt(in_slots(ring, numbers))


@dataclass(frozen=True, eq=False)
class SlotAnswer:
    """c_0 and c_1 of every chunk, by coefficients, modulo the primes that are kept: [kept, 2, chunks, N]."""

    ring: SlotParameters
    parts: Words

    def __bytes__(self) -> bytes:
        kept = zip(self.parts, self.ring.primes, strict=False)
        return b"".join(packed(part, p.bit_length()) for part, p in kept)

    @staticmethod
    def read(ring: SlotParameters, chunks: int, data: bytes) -> SlotAnswer:
        """Return an answer of this many chunks, as `bytes` wrote it; refuse anything else."""
        reader = Reader(data, "answers")
        parts = np.empty((ring.kept, 2, chunks, ring.degree), dtype=np.uint64)
        for part, p in zip(parts, ring.primes, strict=False):
            reader.words(part, p.bit_length(), p)
        reader.end()
        return SlotAnswer(ring, parts)


def answer(
    ring: SlotParameters,
    public: Ciphertexts,
    asked: Ciphertexts,
    numbers: NDArray[np.int64],
    source: Source | None = None,
) -> tuple[SlotAnswer, Words]:
    """Return the owner's answer, and its own part for every row, modulo t; numbers are [terms, rows]."""
    source = source or Source.fresh()
    terms, rows = numbers.shape
    chunks = ring.chunks(rows)
    if asked.values.shape != (len(ring.primes), chunks, 2, terms, ring.degree) or terms > ring.terms:
        raise SumError(f"{terms} products of {rows} rows were not asked for, or are more than {ring.terms}")
    factors = centred(in_slots(ring, numbers), ring.plain)
    out = [np.empty((2, chunks, ring.degree), dtype=np.uint64) for _ in ring.primes]
    strides = (LANES, 0, ring.degree, 0)
    sums = np.empty((2, 1, ring.degree), dtype=np.uint64)
    for k, m in enumerate(ring.moduli):
        values = m.forward(residues(factors, m.p))
        for chunk in range(chunks):
            m.products(asked.values[k, chunk], values[chunk], sums, strides, add=False)
            out[k][:, chunk] = sums[:, 0]
    zeros_added(public, out, source)
    mask = source.uniform(np.empty((chunks, ring.degree), dtype=np.uint64), ring.plain)
    _flood(ring, out, source)
    for m, parts in zip(ring.moduli, out, strict=True):
        code().scaled(mask, parts[0], *scaling(m.p, ring.plain, ring.q))
    _drop(out, ring.primes, ring.kept)
    own = (np.uint64(ring.plain) - ring.slots.forward(mask)) % np.uint64(ring.plain)
    return SlotAnswer(ring, np.stack(out[: ring.kept])), own.reshape(-1)[:rows]


def _flood(ring: SlotParameters, out: list[Words], source: Source) -> None:
    """Add a flood to every coefficient of c_0: three uniform numbers, the same for all primes."""
    chunks, degree = out[0][0].shape
    for chunk in range(chunks):
        words = source.words(degree, 3, 2)
        for m, parts in zip(ring.moduli, out, strict=True):
            code().flood(words, parts[0, chunk], m.p, ring.flood_bits)


def _drop(out: list[Words], primes: tuple[int, ...], kept: int) -> None:
    """Divide by all primes but the first ones, rounded: what is left in `out` is modulo those."""
    for last in range(len(primes) - 1, kept - 1, -1):
        for parts, p in zip(out[:last], primes, strict=False):
            code().drop(out[last], parts, primes[last], p, pow(primes[last], -1, p))


def decrypted(key: SecretKey, got: SlotAnswer, rows: int) -> Words:
    """Return the asker's part for every row, modulo t; SumError if noise has grown beyond what is honest."""
    ring = got.ring
    sums = []
    for k, (m, parts) in enumerate(zip(ring.moduli, got.parts, strict=False)):
        total = key.times(k, parts[1].copy()) + parts[0]
        sums.append(np.where(total >= m.p, total - np.uint64(m.p), total))
    _drop(sums, ring.primes[: ring.kept], 1)
    p, left = ring.primes[0], sums[0]
    off = np.abs(centred(times(left, ring.plain % p, p), p)).max() / p
    if off > ring.off:
        raise SumError(
            f"an encrypted product lies {off:.3f} from a whole number where {ring.off:.3f} is the most: it "
            "was not made with this run's parameters or keys, and what it says would be wrong"
        )
    found = np.zeros_like(left)
    code().scaled(left, found, *scaling(ring.plain, p, ring.plain))  # round(t v / p) modulo t
    return ring.slots.forward(found).reshape(-1)[:rows]
