"""What a follower does however a leader asks: keeps F of its own ids, sends tables, hears the end."""

from __future__ import annotations

import asyncio
import os

import numpy as np

from colonnade.arrays import Digests, Rows, Words
from colonnade.conversations.align.layout import (
    AlignStep,
    bucket_of,
    capacity,
    chunk_at,
    chunks_for,
    due,
    keys_of,
    rows_of,
    tag,
)
from colonnade.conversations.align.side import AlignSide, check_common
from colonnade.errors import AlignmentError
from colonnade.messages import Found, Hints, Points
from colonnade.net.expect import PACKED, Number, expect, octets, words
from colonnade.secure.hints import write_table


class Help:
    """A follower's part of the leader's search."""

    def __init__(self, side: AlignSide) -> None:
        self.side, self.net, self.pool = side, side.net, side.pool
        self.tables = side.tables(self.net.me)
        self.room = capacity(len(side.ids), self.tables)  # for ids of a table
        self.secrets = list(side.secrets.values())
        self._values = np.empty((len(side.ids), 2), dtype=np.uint64)  # F of the own ids
        self._where = bucket_of(side.ids, self.tables)

    def rows_of(self, table: int) -> Rows:
        """Return the rows whose ids belong to a table."""
        return rows_of(self._where, table)

    def computed(self, rows: Rows, values: Words) -> None:
        """Keep F of some of the own ids, to recognise them by."""
        self._values[rows] = values

    async def send_table(self, number: int, seed: int, table: Words) -> None:
        """Send the leader a table."""
        await self.net.send(self.side.leader, Hints(tag(AlignStep.TABLE, number), seed, table))

    async def listen(self) -> None:
        """Hear of every step that the leader finishes."""
        for step in range(1, self.side.steps + 1):
            await self.net.recv(Points, self.side.leader, tag(AlignStep.TICK, step), points=octets(0))
            self.side.progress(step, self.side.steps)

    async def end(self, minimum: int) -> Rows:
        """Return the own rows that the leader names as common."""
        return await asyncio.to_thread(self._recognise, await self._found(minimum))

    async def _found(self, minimum: int) -> Words:
        """Return F of the common ids, as the leader names them."""
        leader = self.side.leader
        # no more can be common than the leader brought, which has the fewest
        brought = Number(0, self.side.sizes[leader])
        first = await self.net.recv(Found, leader, tag(AlignStep.FOUND), total=brought, names=PACKED)
        total = first.total
        check_common(total, minimum)
        names = np.empty((total, 2), dtype=np.uint64)
        for chunk in range(chunks_for(total)):
            part = first
            if chunk:
                part = await self.net.recv(Found, leader, tag(AlignStep.FOUND, chunk), names=PACKED)
            expect(leader, part, {"names": words(due(total, chunk), 2)})
            names[chunk_at(chunk)] = part.names
        return names

    def _recognise(self, names: Words) -> Rows:
        """Return the own rows whose F the leader named."""
        order = np.argsort(self._values[:, 0], kind="stable")
        place = np.searchsorted(self._values[order, 0], names[:, 0])
        rows: Rows = order[np.minimum(place, len(order) - 1)]
        if not (self._values[rows] == names).all() or len(np.unique(rows)) < len(rows):
            raise AlignmentError(
                f"{self.side.leader} named common ids that {self.net.me} did not bring, or twice"
            )
        return rows


def table_of(ids: Digests, entries: Words, room: int) -> tuple[int, Words]:
    """Return a table of entries for ids, filled up with noise as if there were as many as there is room
    for."""
    spare = np.frombuffer(os.urandom(32 * (room - len(ids))), dtype=np.uint64).reshape(-1, 4)
    return write_table(np.concatenate([keys_of(ids), spare[:, :2]]), np.concatenate([entries, spare[:, 2:]]))
