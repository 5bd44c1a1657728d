"""Both parties' blocks of columns times weights and thetas that both have in parts; nothing is opened.

Each asks for products with the other's columns, with its parts encrypted; who owns the columns adds its own
parts to what is encrypted, multiplies, keeps c_0 and sends c_1 (`secure.lattice.columns`). So each has a word
of every product, of its own columns and of the other's.

    scores     from parts of weights modulo t    words of XW w~ of every row, and of penalty rows below
    gradients  from parts of theta and weights   words of (XW)' theta + D w~
"""

from __future__ import annotations

import numpy as np

from colonnade.arrays import Words
from colonnade.conversations.linear.encrypted.home_columns import cuts_of
from colonnade.conversations.peer_line import PeerLine
from colonnade.secure.lattice.ciphertexts import Ciphertexts, SecretKey
from colonnade.secure.lattice.columns import (
    CoefficientAnswer,
    TransformedColumns,
    askers_part,
    encrypted_vector,
    encrypted_weights,
    in_chunks,
    weights_in_groups,
)
from colonnade.secure.lattice.parameters import CoefficientParameters

Both = tuple[Words, Words]
"""Of the own block, and of the other's."""


class Blocks:
    """One party's end: its own tables, and how large the other's are."""

    def __init__(
        self,
        line: PeerLine,
        ring: CoefficientParameters,
        tables: list[TransformedColumns],
        rows: list[int],
        width: int,
        together: int = 1,
    ) -> None:
        """Hold the own tables; the other's have these rows, and this width."""
        self.line, self.ring, self.tables, self.rows, self.width = line, ring, tables, rows, width
        self.together = together
        self._mask = np.uint64(2**ring.cut - 1)

    async def scores(self, own: Words, others: Words) -> Both:
        """Return words of scores: of the own block, whose weights this party has a part of, and the
        other's."""
        key = SecretKey(self.ring)
        await self.line.seal(key.public(), encrypted_weights(key, self.ring, others))
        messages = weights_in_groups(self.ring, own)
        public = await self._read(1, 1)
        asked = (await self._read(*messages.shape[:2])).plus(messages)
        mine = []
        for table in self.tables:
            answer, part = table.scores(public, asked)
            mine.append(part)
            await self.line.seal(answer)
        theirs = []
        for rows in self.rows:
            got = await self._answers(-(-rows // self.ring.degree))
            theirs.append(askers_part(key, got, rows, 1))
        return np.concatenate(mine) & self._mask, np.concatenate(theirs) & self._mask

    async def gradients(self, own: list[Words], others: list[Words]) -> Both:
        """Return words of inner products with every column; vectors are by table, own ones and the
        other's."""
        key, ring = SecretKey(self.ring), self.ring
        asked = [encrypted_vector(key, ring, vector, self.together) for vector in others]
        await self.line.seal(key.public(), *asked)
        public = await self._read(1, 1)
        mine, theirs = np.zeros(self.tables[0].width, dtype=np.uint64), np.zeros(self.width, dtype=np.uint64)
        for table, vector in zip(self.tables, own, strict=True):
            messages = in_chunks(ring, vector, table.together)
            answer, part = table.gradient(public, (await self._read(1, table.chunks)).plus(messages))
            mine += part
            await self.line.seal(answer)
        for _ in others:
            got = await self._answers(-(-self.width // self.together))
            theirs += askers_part(key, got, self.width, ring.degree // self.together)
        return mine & self._mask, theirs & self._mask

    async def _read(self, groups: int, terms: int) -> Ciphertexts:
        return await self.line.opened(lambda data: Ciphertexts.read(self.ring, groups, terms, data))

    async def _answers(self, count: int) -> CoefficientAnswer:
        return await self.line.opened(lambda data: CoefficientAnswer.read(self.ring, count, data))


def with_weights(theta: Words, weights: Words) -> list[Words]:
    """Return theta by stretches of rows, the weights below the last."""
    parts = [theta[cut] for cut in cuts_of(len(theta))]
    return [*parts[:-1], np.concatenate([parts[-1], weights])]


def rows_of_tables(rows: int, width: int) -> list[int]:
    """Return how many rows the tables of a block have, the penalty's rows with them."""
    found = [cut.stop - cut.start for cut in cuts_of(rows)]
    return [*found[:-1], found[-1] + width]
