"""What a leader has found out, however it asks: F of its ids under every peer's key, and what is left over.

It tells the others of every step that it finishes, so that no wait is longer than a step.
"""

from __future__ import annotations

import os

import numpy as np

from colonnade.arrays import Digests, Rows, Words
from colonnade.conversations.align.layout import AlignStep, capacity, chunk_at, chunks_for, keys_of, tag
from colonnade.conversations.align.side import AlignSide, check_common
from colonnade.messages import Found, Hints, Points
from colonnade.net.expect import Number, words
from colonnade.secure.hints import read_table, size_for

_NOTHING = np.empty(0, dtype=np.uint8)


class IdSearch:
    """A leader's search for the common ids, which are counted in a shuffled order."""

    def __init__(self, side: AlignSide) -> None:
        self.side, self.net, self.pool = side, side.net, side.pool
        shuffled = np.random.Generator(np.random.PCG64(int.from_bytes(os.urandom(16), "big")))
        # messages must not tell the order of the file
        self._order: Rows = shuffled.permutation(len(side.ids))
        # F of every own id by peer, and the exclusive or of all that must cancel
        self._values = {peer: np.empty((len(side.ids), 2), dtype=np.uint64) for peer in self.net.peers}
        self._rest = np.zeros((len(side.ids), 2), dtype=np.uint64)
        self._done = 0

    def ids(self, rows: slice | Rows) -> Digests:
        """Return some of the own ids."""
        ids: Digests = self.side.ids[self._order[rows]]
        return ids

    def cancel(self, rows: slice | Rows, values: Words) -> None:
        """Let what was found out about some ids cancel with the rest."""
        self._rest[rows] ^= values

    async def learnt(self, peer: str, rows: slice | Rows, values: Words) -> None:
        """Keep F of some ids under a peer's key."""
        self._values[peer][rows] = values
        self.cancel(rows, values)
        await self.tick()

    async def read_table(self, peer: str, number: int, rows: Rows) -> None:
        """Read a peer's table at those of the own ids that belong to it."""
        places = size_for(capacity(self.side.sizes[peer], self.side.tables(peer)))
        hints = await self.net.recv(
            Hints, peer, tag(AlignStep.TABLE, number), table=words(places, 2), seed=Number(0, 2**64 - 1)
        )
        self.cancel(rows, await self.pool.run(read_table, hints.table, hints.seed, keys_of(self.ids(rows))))
        await self.tick()

    async def end(self, minimum: int) -> Rows:
        """Tell every peer which ids are common, and return the own rows that hold them."""
        common = np.flatnonzero(~self._rest.any(axis=1))
        if len(common) < minimum:
            common = common[:0]  # how many there are is nobody's business: too few, and that is all
        for peer in self.net.peers:
            names = self._values[peer][common]
            await self._tell(peer, names[np.argsort(names[:, 0])])
        check_common(len(common), minimum)
        found: Rows = self._order[common]
        return found

    async def tick(self) -> None:
        """Count one finished step and tell all peers, who would otherwise give up waiting."""
        self._done += 1
        self.side.progress(self._done, self.side.steps)
        await self.net.broadcast(Points(tag(AlignStep.TICK, self._done), _NOTHING))

    async def _tell(self, peer: str, names: Words) -> None:
        for chunk in range(max(1, chunks_for(len(names)))):
            await self.net.send(peer, Found(tag(AlignStep.FOUND, chunk), len(names), names[chunk_at(chunk)]))
