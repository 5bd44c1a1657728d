"""Keys, ciphertexts and their bytes: what is needed of the encryption of Brakerski, Fan and Vercauteren.

A key s has coefficients -1, 0, 1. A polynomial m modulo t is encrypted as c_0 = round(q m / t) + e - c_1 s
with c_1 uniform and e small: without s both look uniform (ring learning with errors). c_1 comes from a seed,
which is all that is sent of it. A public key is an encryption of zero. Both parts are kept as values
(arithmetic.py), in which they are sent too: that spares a transform at either side.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from colonnade.arrays import Words
from colonnade.errors import MalformedMessage, SumError
from colonnade.secure.lattice.arithmetic import Modulus, code
from colonnade.secure.lattice.parameters import Parameters
from colonnade.secure.lattice.source import SEED, Source


@dataclass(frozen=True, eq=False)
class Ciphertexts:
    """Encrypted polynomials in groups: those of a group are multiplied and summed together.

    `values` is [primes, groups, 2, polynomials of a group, N]: c_0 and c_1.
    """

    parameters: Parameters
    seed: bytes
    values: Words

    def __bytes__(self) -> bytes:
        return self.seed + b"".join(
            packed(self.values[k, group, 0], p.bit_length())
            for k, p in enumerate(self.parameters.primes)
            for group in range(self.values.shape[1])
        )

    @staticmethod
    def read(parameters: Parameters, groups: int, terms: int, data: bytes) -> Ciphertexts:
        """Return this many groups of this many ciphertexts, as `bytes` wrote them; refuse anything else."""
        reader = Reader(data, "ciphertexts")
        seed = reader.take(SEED)
        values = _room(parameters, seed, groups, terms)
        for k, p in enumerate(parameters.primes):
            for group in range(groups):
                reader.words(values[k, group, 0], p.bit_length(), p)
        reader.end()
        return Ciphertexts(parameters, seed, values)

    def plus(self, messages: Words) -> Ciphertexts:
        """Return encryptions of what is encrypted plus these polynomials, [groups, polynomials, N].

        c_1 stays as it was: this hides nothing from who has the key.
        """
        ring, values = self.parameters, self.values.copy()
        for k, m in enumerate(ring.moduli):
            for group, plain in enumerate(messages):
                added = np.zeros_like(plain)
                code().scaled(plain, added, *scaling(m.p, ring.plain, ring.q))
                c_0 = values[k, group, 0]
                c_0 += m.forward(added)
                c_0 -= np.uint64(m.p) * (c_0 >= np.uint64(m.p))
        return Ciphertexts(ring, self.seed, values)


def _room(parameters: Parameters, seed: bytes, groups: int, terms: int) -> Words:
    """Return room for ciphertexts, c_1 filled in."""
    degree = parameters.degree
    values = np.zeros((len(parameters.primes), groups, 2, terms, degree), dtype=np.uint64)
    for k, p in enumerate(parameters.primes):
        source = Source(seed, f"c_1 of prime {k}")
        for group in range(groups):
            source.uniform(values[k, group, 1], p)
    return values


class SecretKey:
    """A key of one ring. It lives for one pass and is never stored."""

    def __init__(self, parameters: Parameters, source: Source | None = None) -> None:
        self.parameters = parameters
        self._source = source or Source.fresh()
        words = self._source.words(parameters.degree)
        self._values = [ternary_values(words, m) for m in parameters.moduli]

    def public(self) -> Ciphertexts:
        """Return a public key: an encryption of zero."""
        return self.encrypt(np.zeros((1, 1, self.parameters.degree), dtype=np.uint64))

    def encrypt(self, messages: Words) -> Ciphertexts:
        """Return groups of polynomials modulo t, [groups, polynomials, N], encrypted under one new seed."""
        ring = self.parameters
        if messages.ndim != 3 or messages.shape[2] != ring.degree or not (messages < ring.plain).all():
            raise SumError(f"only polynomials of {ring.degree} numbers below {ring.plain} can be encrypted")
        groups, terms, degree = messages.shape
        seed = self._source.seed()
        values = _room(ring, seed, groups, terms)
        words = self._source.words(groups, terms, degree)
        for group in range(groups):
            for k, m in enumerate(ring.moduli):
                c_0, c_1 = values[k, group]
                code().errors(words[group], c_0, m.p)
                code().scaled(messages[group], c_0, *scaling(m.p, ring.plain, ring.q))
                m.forward(c_0)
                minus_s = (np.uint64(m.p) - self._values[k]) % np.uint64(m.p)
                m.add_products(minus_s[None, None], c_1, c_0[None])
        return Ciphertexts(ring, seed, values)

    def times(self, k: int, polynomials: Words) -> Words:
        """Return polynomials [n, N] modulo the k-th prime times s; those that are given are used up."""
        m = self.parameters.moduli[k]
        out = np.zeros((1, *polynomials.shape), dtype=np.uint64)
        m.add_products(self._values[k][None, None], m.forward(polynomials), out)
        return m.inverse(out[0])


def ternary_values(words: Words, m: Modulus) -> Words:
    """Return the values of polynomials with coefficients -1, 0 and 1, one from every word."""
    small = np.empty_like(words)
    code().ternary(words, small, m.p)
    return m.forward(small)


def scaling(p: int, plain: int, q: int) -> tuple[int, int, int, int]:
    """Return what `scaled` needs for round(q m / t) modulo p: p, t, q modulo t, and 1 / t modulo p."""
    return p, plain, q % plain, pow(plain, -1, p)


def zeros_added(public: Ciphertexts, out: list[Words], source: Source) -> None:
    """Add fresh encryptions of zero to polynomials, and leave all of them as coefficients.

    For every prime `out` has [2, answers, N]. Without this c_1 of an answer would be the asker's own, times
    the columns: they could be divided out.
    """
    ring = public.parameters
    words, noise = source.words(*out[0].shape[1:]), source.words(*out[0].shape)
    for k, m in enumerate(ring.moduli):
        m.add_products(public.values[k, 0], ternary_values(words, m), out[k])
        m.inverse(out[k])
        code().errors(noise, out[k], m.p)


def packed(words: Words, bits: int) -> bytes:
    """Return words of this many bits side by side."""
    room = np.empty(words.size // 8 * bits, dtype=np.uint8)
    code().pack(words, room, bits)
    return room.tobytes()


class Reader:
    """Reads a message from its bytes: all of them, and nothing that no sender would write."""

    def __init__(self, data: bytes, what: str) -> None:
        self._data, self._what, self._at = memoryview(data), what, 0

    def take(self, count: int) -> bytes:
        """Return the next bytes."""
        part = self._data[self._at : self._at + count]
        if len(part) != count:
            raise MalformedMessage(
                f"{self._what} end after {len(self._data)} bytes, before they are complete"
            )
        self._at += count
        return bytes(part)

    def words(self, out: Words, bits: int, below: int) -> None:
        """Fill an array with words of this many bits, all of them below a limit."""
        part = np.frombuffer(self.take(out.size // 8 * bits), dtype=np.uint8)
        code().unpack(part, out, bits)
        if not (out < np.uint64(below)).all():
            raise MalformedMessage(f"{self._what} have a number that is not below {below}")

    def end(self) -> None:
        """Refuse bytes that are left over."""
        if self._at != len(self._data):
            raise MalformedMessage(f"{self._what} have {len(self._data) - self._at} bytes too many")


def residues(numbers: NDArray[np.int64], p: int) -> Words:
    """Return whole numbers, of either sign and smaller than p, modulo p."""
    return (numbers + p * (numbers < 0)).view(np.uint64)


def centred(words: Words, p: int) -> NDArray[np.int64]:
    """Return numbers modulo p as those of least size."""
    numbers = words.astype(np.int64)
    numbers -= p * (numbers > p // 2)
    return numbers
