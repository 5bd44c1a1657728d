"""Who asks whom for which product, and what each keeps: `secure.lattice` between two parties on a line.

    theta      A asks with f_r in slots; P answers with sum_r f_r g_r plus uniform words, which it keeps
    gradient   one asks with its part of theta; the other adds its own part to what is encrypted, multiplies
               by its columns and sends c_1; the asker returns its part of the answer with noise of its own

Every call makes a key that lives no longer. The noise is what an owner cannot take off its gradient.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from colonnade.arrays import Floats, Rows, Words
from colonnade.conversations.linear.encrypted.home_columns import ROWS, HomeColumns
from colonnade.conversations.peer_line import PeerLine, parts_of
from colonnade.errors import FixedPointOverflow
from colonnade.secure.lattice import slots as rows_of_slots
from colonnade.secure.lattice.ciphertexts import Ciphertexts, SecretKey, residues
from colonnade.secure.lattice.columns import (
    CoefficientAnswer,
    askers_part,
    encrypted_vector,
    in_chunks,
    opened,
)
from colonnade.secure.lattice.parameters import CoefficientParameters, SlotParameters
from colonnade.secure.lattice.slots import SlotAnswer

AT_ONCE = 2**23  # bytes of ciphertexts in a message, about
UNDER_WAY = 2  # messages that an asker is ahead of answers
TERMS = 16  # products by which ring sizes go


@dataclass(frozen=True)
class Asked:
    """What an asker knows of another's columns: how many, how many share an answer, how large they are."""

    rows: int
    width: int
    together: int
    codes: Rows
    stretch: int = ROWS

    @property
    def cuts(self) -> list[slice]:
        """Stretches of rows that have a table each, at the owner."""
        return [slice(at, min(at + self.stretch, self.rows)) for at in range(0, self.rows, self.stretch)]


def ring_of(slots: SlotParameters, terms: int) -> SlotParameters:
    """Return the ring for sums of this many products: more of them leave less room for the flood."""
    return replace(slots, terms=TERMS * max(1, -(-terms // TERMS)))


def _stretches(ring: SlotParameters, terms: int, rows: int) -> list[slice]:
    chunk = terms * ring.degree * len(ring.primes) * 7
    step = ring.degree * max(1, AT_ONCE // chunk)
    return [slice(at, min(at + step, rows)) for at in range(0, rows, step)]


async def ask_rows(line: PeerLine, slots: SlotParameters, numbers: NDArray[np.int64]) -> Words:
    """Return the asker's part of a sum of products, row by row, modulo t; numbers are [terms, rows]."""
    terms, rows = numbers.shape
    part = np.zeros(rows, dtype=np.uint64)
    if not terms:
        return part
    ring = ring_of(slots, terms)
    key = SecretKey(ring)
    await line.seal(key.public())
    cuts = _stretches(ring, terms, rows)
    answered = 0
    for number in range(len(cuts) + UNDER_WAY):
        if number < len(cuts):
            await line.seal(rows_of_slots.encrypted(key, ring, numbers[:, cuts[number]]))
        if number >= UNDER_WAY or number >= len(cuts):
            if answered == len(cuts):
                break
            cut = cuts[answered]
            count = cut.stop - cut.start
            got = await line.opened(lambda data, n=count: SlotAnswer.read(ring, ring.chunks(n), data))  # type: ignore[misc]
            part[cut] = rows_of_slots.decrypted(key, got, count)
            answered += 1
    return part


async def answer_rows(line: PeerLine, slots: SlotParameters, numbers: NDArray[np.int64]) -> Words:
    """Return the owner's part of the same sum."""
    terms, rows = numbers.shape
    part = np.zeros(rows, dtype=np.uint64)
    if not terms:
        return part
    ring = ring_of(slots, terms)
    public = await line.opened(lambda data: Ciphertexts.read(ring, 1, 1, data))
    for cut in _stretches(ring, terms, rows):
        chunks = ring.chunks(cut.stop - cut.start)
        asked = await line.opened(lambda data, n=chunks: Ciphertexts.read(ring, n, terms, data))  # type: ignore[misc]
        answer, part[cut] = rows_of_slots.answer(ring, public, asked, numbers[:, cut])
        await line.seal(answer)
    return part


class GradientAsker:
    """The asker's side of the gradient of another's columns, in two steps: `ask`, and `give_back`."""

    def __init__(self, line: PeerLine, ring: CoefficientParameters, asked: Asked) -> None:
        self.line, self.ring, self.asked = line, ring, asked
        self.key = SecretKey(ring)

    async def ask(self, theta: Words) -> None:
        """Send the own part of theta, encrypted, with a public key."""
        asked = self.asked
        vectors = [encrypted_vector(self.key, self.ring, theta[cut], asked.together) for cut in asked.cuts]
        await self.line.seal(self.key.public(), *vectors)

    async def give_back(self, noise: Rows) -> None:
        """Return the own part of the answer, with noise."""
        asked, ring = self.asked, self.ring
        self.line.let_open(asked.width)
        every, answers = ring.degree // asked.together, -(-asked.width // asked.together)
        part = noise.astype(np.int64).view(np.uint64).copy()
        for _ in asked.cuts:
            got = await self.line.opened(lambda data: CoefficientAnswer.read(ring, answers, data))
            part += askers_part(self.key, got, asked.width, every)
        await self.line.seal((part & np.uint64(2**ring.cut - 1)).astype("<u8").tobytes())


class GradientOwner:
    """The owner's side: `answer` what was asked, and `open` what comes back."""

    def __init__(self, line: PeerLine, ring: CoefficientParameters, columns: HomeColumns) -> None:
        self.line, self.ring, self.columns = line, ring, columns
        self._own = np.zeros(len(columns.kept), dtype=np.uint64)

    async def answer(self, theta: Words) -> None:
        """Add the own part of theta to what is encrypted, multiply by the columns, and answer."""
        ring, columns = self.ring, self.columns
        public = await self.line.opened(lambda data: Ciphertexts.read(ring, 1, 1, data))
        for table, cut in zip(columns.tables, columns.cuts, strict=True):
            asked = await self.line.opened(
                lambda data, n=table.chunks: Ciphertexts.read(ring, 1, n, data)  # type: ignore[misc]
            )
            whole = asked.plus(in_chunks(ring, theta[cut], columns.together))
            answer, own = table.gradient(public, whole)
            self._own += own
            await self.line.seal(answer)

    async def open(self, bits: int) -> Floats:
        """Return the mean gradient, theta having this many bits of fraction."""
        width, mask = len(self.columns.kept), np.uint64(2**self.ring.cut - 1)
        back = await self.line.opened(lambda data: parts_of(data, width))
        sums = opened(self.ring, self._own & mask, back & mask)
        found: Floats = sums / self.columns.scale / self.columns.rows * 2.0**-bits
        return found


def modulo(numbers: NDArray[np.int64], plain: int) -> Words:
    """Return whole numbers modulo t; FixedPointOverflow if one does not fit."""
    if 2 * int(np.abs(numbers).max(initial=0)) >= plain:
        raise FixedPointOverflow("theta of a row does not fit the range of sums; raise train.l2")
    return residues(numbers, plain)
