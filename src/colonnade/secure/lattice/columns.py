"""Inner products of one party's columns and another's encrypted vector, in two parts that tell nothing alone.

The asker puts N numbers of its vector t into the coefficients of a polynomial, the owner a column, backwards:
x_0 - x_{N-1} X - ... - x_1 X^{N-1}. Coefficient 0 of the product is their inner product; where few rows are
in a chunk, several columns fit one answer (`together`).

    gradient   asker -> owner   t encrypted; owner -> asker: c_1 of X't, for every column
    scores     asker -> owner   every weight encrypted as a constant; owner -> asker: c_1 of Xw, by N rows

Both parts of the product get a fresh encryption of zero. The owner keeps c_0 as its own part; the asker's is
c_1 s. Both are words of `cut` bits, and their sum is 2^cut / t times the inner product, give or take a little
noise. All that the asker sees is c_1, which looks uniform as long as ring learning with errors is hard: there
is no noise to read, so nothing needs a flood or a mask. A part that goes back to the owner must carry noise
(`least_noise`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from colonnade.arrays import Floats, Words
from colonnade.errors import SumError
from colonnade.secure.lattice.arithmetic import code
from colonnade.secure.lattice.ciphertexts import (
    Ciphertexts,
    Reader,
    SecretKey,
    centred,
    packed,
    residues,
    zeros_added,
)
from colonnade.secure.lattice.parameters import CoefficientParameters
from colonnade.secure.lattice.portable import LANES, WIDTH
from colonnade.secure.lattice.source import Source


@dataclass(frozen=True, eq=False)
class CoefficientAnswer:
    """c_1 of every answer, cut: [answers, N]. c_0 stays with its owner."""

    ring: CoefficientParameters
    c_1: Words

    def __bytes__(self) -> bytes:
        return packed(self.c_1, self.ring.cut)

    @staticmethod
    def read(ring: CoefficientParameters, answers: int, data: bytes) -> CoefficientAnswer:
        """Return this many answers, as `bytes` wrote them; refuse anything else."""
        reader = Reader(data, "answers")
        c_1 = np.empty((answers, ring.degree), dtype=np.uint64)
        reader.words(c_1, ring.cut, 2**ring.cut)
        reader.end()
        return CoefficientAnswer(ring, c_1)


class TransformedColumns:
    """Columns of whole numbers, transformed once for all passes; 8 bytes a number.

    The numbers lie as they are read: [blocks of slots][groups of answers][chunks][answers of a group][slots].
    """

    def __init__(
        self, ring: CoefficientParameters, X: NDArray[np.int64], largest: int, together: int = 1
    ) -> None:
        """Prepare columns for vectors of numbers that are at most so large; SumError if a sum could wrap."""
        if together < 1 or ring.degree % together:
            raise SumError(f"{together} columns do not share {ring.degree} coefficients")
        size = max((int(np.abs(column).sum()) for column in X.T), default=0)
        if 2 * size * largest >= ring.plain:
            raise SumError(
                f"a column whose numbers add up to {size} times numbers of up to {largest} is too large for "
                f"sums modulo {ring.plain}: take fewer bits, or a larger modulus"
            )
        self.ring, self.together, self.size = ring, together, size
        self.rows, self.width = X.shape
        self.of_a_chunk = ring.degree // together
        self.chunks = -(-self.rows // self.of_a_chunk)
        self.answers = -(-self.width // together)
        groups = -(-self.answers // WIDTH)
        shape = (ring.degree // LANES, groups, self.chunks, WIDTH, LANES)
        self._table: Words = np.empty(shape, dtype=np.uint64)
        for group in range(groups):  # one at a time: memory for a few columns beside the table
            first = group * WIDTH * together
            polynomials = self._backwards(X[:, first : first + WIDTH * together])
            values = ring.moduli[0].forward(residues(polynomials, ring.q))
            self._table[:, group] = values.reshape(WIDTH, self.chunks, -1, LANES).transpose(2, 1, 0, 3)

    def _backwards(self, X: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the polynomials of four answers, [answers, chunks, N]: column j lies from j L downwards."""
        L = self.of_a_chunk
        room = np.zeros((WIDTH * self.together, self.chunks * L), dtype=np.int64)
        room[: X.shape[1], : self.rows] = X.T
        by_chunk = room.reshape(WIDTH, self.together, self.chunks, L)
        out = np.zeros((WIDTH, self.chunks, self.ring.degree), dtype=np.int64)
        for j in range(self.together):
            rest = by_chunk[:, j, :, :0:-1]
            out[:, :, j * L] = by_chunk[:, j, :, 0]
            if j:
                out[:, :, (j - 1) * L + 1 : j * L] = rest
            else:
                out[:, :, self.ring.degree - L + 1 :] = -rest
        return out

    def gradient(
        self, public: Ciphertexts, asked: Ciphertexts, source: Source | None = None
    ) -> tuple[CoefficientAnswer, Words]:
        """Return c_1 of X't for the asker, and the owner's part of it, a word for every column."""
        self._expect(asked, 1, self.chunks)
        out = np.empty((2, self.answers, self.ring.degree), dtype=np.uint64)
        _, groups, _, _, _ = self._table.shape
        per_chunk = WIDTH * LANES
        strides = (groups * self.chunks * per_chunk, self.chunks * per_chunk, per_chunk, LANES)
        self.ring.moduli[0].products(asked.values[0, 0], self._table, out, strides, add=False)
        parts = self._finished(public, out, source)
        own = parts[0, :, :: self.of_a_chunk]
        return CoefficientAnswer(self.ring, parts[1]), own.reshape(-1)[: self.width]

    def scores(
        self, public: Ciphertexts, asked: Ciphertexts, source: Source | None = None
    ) -> tuple[CoefficientAnswer, Words]:
        """Return c_1 of Xw for the asker, and the owner's part of it, a word for every row.

        A column forwards has the values of one backwards in reverse order: so have weights and sums here.
        """
        if self.together > 1:
            raise SumError("scores take columns that were prepared one to an answer")
        _, groups, _, _, _ = self._table.shape
        self._expect(asked, groups, WIDTH)
        out = np.empty((2, self.chunks, self.ring.degree), dtype=np.uint64)
        per_chunk = WIDTH * LANES
        strides = (groups * self.chunks * per_chunk, WIDTH * per_chunk, LANES, per_chunk)
        for group in range(groups):
            weights = np.ascontiguousarray(asked.values[0, group, :, :, ::-1])
            table = self._table.reshape(-1)[group * self.chunks * per_chunk :]
            self.ring.moduli[0].products(weights, table, out, strides, add=group > 0)
        parts = self._finished(public, np.ascontiguousarray(out[:, :, ::-1]), source)
        return CoefficientAnswer(self.ring, parts[1]), parts[0].reshape(-1)[: self.rows]

    def _expect(self, asked: Ciphertexts, groups: int, terms: int) -> None:
        if asked.values.shape != (1, groups, 2, terms, self.ring.degree):
            raise SumError(
                f"{groups} times {terms} ciphertexts are due for {self.rows} x {self.width} numbers"
            )

    def _finished(self, public: Ciphertexts, out: Words, source: Source | None) -> Words:
        zeros_added(public, [out], source or Source.fresh())
        code().cut(out, self.ring.q, self.ring.cut)
        return out


def encrypted_vector(key: SecretKey, ring: CoefficientParameters, t: Words, together: int = 1) -> Ciphertexts:
    """Return a vector of numbers modulo t, encrypted for `gradient`."""
    return key.encrypt(in_chunks(ring, t, together))


def in_chunks(ring: CoefficientParameters, t: Words, together: int = 1) -> Words:
    """Return a vector as polynomials, as `gradient` takes it: [1, chunks, N]."""
    of_a_chunk = ring.degree // together
    messages = np.zeros((1, -(-len(t) // of_a_chunk), ring.degree), dtype=np.uint64)
    room = np.zeros(messages.shape[1] * of_a_chunk, dtype=np.uint64)
    room[: len(t)] = t
    messages[0, :, :of_a_chunk] = room.reshape(-1, of_a_chunk)
    return messages


def encrypted_weights(key: SecretKey, ring: CoefficientParameters, w: Words) -> Ciphertexts:
    """Return weights modulo t, each encrypted as a constant, for `scores`."""
    return key.encrypt(weights_in_groups(ring, w))


def weights_in_groups(ring: CoefficientParameters, w: Words) -> Words:
    """Return weights as constant polynomials, as `scores` takes them: [groups, weights of a group, N]."""
    groups = -(-len(w) // WIDTH)
    messages = np.zeros((groups * WIDTH, ring.degree), dtype=np.uint64)
    messages[: len(w), 0] = w
    return messages.reshape(groups, WIDTH, ring.degree)


def askers_part(key: SecretKey, got: CoefficientAnswer, count: int, every: int) -> Words:
    """Return the asker's part of an answer, a word of `cut` bits for every this many coefficients."""
    ring, p = got.ring, got.ring.q
    # centred, c_1 s is smaller than p / 2, so it is found as a whole number
    product = centred(key.times(0, residues(centred(got.c_1, 2**ring.cut), p)), p)
    words = product.view(np.uint64) & np.uint64(2**ring.cut - 1)
    return words[:, ::every].reshape(-1)[:count]


def opened(ring: CoefficientParameters, one: Words, other: Words) -> Floats:
    """Return the inner products that two parts add up to."""
    total = (one + other) & np.uint64(2**ring.cut - 1)
    return centred(total, 2**ring.cut).astype(np.float64) * ring.unit
