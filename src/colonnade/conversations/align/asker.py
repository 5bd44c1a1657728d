"""A leader that asks by oblivious transfers: lots of ids go out covered, and end when their tables are read.

`secure.ot` is the function. A few transfers on the curve begin it; then each lot takes one exchange: covered
codewords, the peer's challenge, the sums that prove them, the peer's tables.
"""

from __future__ import annotations

import asyncio
import os

import numpy as np

from colonnade.arrays import Digests, Rows
from colonnade.conversations.align.layout import (
    AlignStep,
    bucket_of,
    capacity,
    chunk_at,
    chunks_for,
    rows_of,
    tag,
)
from colonnade.conversations.align.order import share_of_zero
from colonnade.conversations.align.search import IdSearch
from colonnade.conversations.align.side import NONE, context_of
from colonnade.messages import Points, Transfer
from colonnade.net.expect import octets, said_by, words
from colonnade.secure.curve import POINT
from colonnade.secure.ot import base, extension, function
from colonnade.secure.ot.code import LENGTH

_Seeds = tuple[base.Seeds, base.Seeds]


async def ask_by_transfers(search: IdSearch) -> None:
    """Learn F of all ids from every peer, and read the tables of all."""
    await _TransferAsker(search).ask_all()


class _TransferAsker:
    def __init__(self, search: IdSearch) -> None:
        self.search, self.side, self.net, self.pool = search, search.side, search.net, search.pool
        self.room = capacity(len(self.side.ids), self.side.lots)  # for ids of a lot
        self.seeds: dict[str, _Seeds] = {}

    async def ask_all(self) -> None:
        self.seeds = {peer: await self._give_seeds(peer) for peer in self.net.peers}
        chunks, lots = chunks_for(len(self.side.ids)), self.side.lots
        where = np.concatenate([bucket_of(self.search.ids(chunk_at(chunk)), lots) for chunk in range(chunks)])
        under_way = asyncio.Semaphore(1 + self.pool.size)

        async def ask(lot: int) -> None:
            await self._ask(lot, rows_of(where, lot))
            under_way.release()

        async with asyncio.TaskGroup() as group:
            for lot in range(lots):
                await under_way.acquire()
                group.create_task(ask(lot))

    async def _give_seeds(self, peer: str) -> _Seeds:
        """Let a peer choose one of two seeds, for every column."""
        size = octets(2 * LENGTH, POINT)
        choices = await self.net.recv(Points, peer, tag(AlignStep.CHOICES), points=size)
        zero, one = np.frombuffer(os.urandom(2 * LENGTH * base.SEED), dtype=np.uint8).reshape(2, LENGTH, -1)
        with said_by(peer):
            answers, hidden = await self.pool.run(
                base.give, choices.points, (zero, one), context_of(self.side.secrets[peer])
            )
        await self.net.send(peer, Points(tag(AlignStep.KEY), answers))
        await self.net.send(peer, Transfer(tag(AlignStep.SEEDS), 0, hidden))
        await self.search.tick()
        return zero, one

    async def _ask(self, lot: int, rows: Rows) -> None:
        """Ask all peers about a lot of the own ids."""
        ids = self.search.ids(rows)
        table = await self.pool.run(function.write, ids, self.room)
        zero = await self.pool.run(share_of_zero, ids, list(self.side.secrets.values()))
        self.search.cancel(rows, zero)
        async with asyncio.TaskGroup() as group:
            for peer in self.net.peers:
                group.create_task(self._ask_peer(peer, lot, rows, ids, table))

    async def _ask_peer(self, peer: str, lot: int, rows: Rows, ids: Digests, table: function.IdTable) -> None:
        messages = table.rows()
        covered, own = await self.pool.run(extension.cover, self.seeds[peer], lot, messages)
        await self.net.send(peer, Transfer(tag(AlignStep.COVERED, lot), table.seed, covered))
        size = words(extension.CHALLENGE)
        told = await self.net.recv(Transfer, peer, tag(AlignStep.CHALLENGE, lot), rows=size, seed=NONE)
        proof = await self.pool.run(extension.proof, own, messages, told.rows)
        await self.net.send(peer, Transfer(tag(AlignStep.PROOF, lot), 0, proof))
        context = context_of(self.side.secrets[peer])
        values = await self.pool.run(function.learn, ids, self.room, table.seed, own, context)
        await self.search.learnt(peer, rows, values)
        tables = self.side.tables(peer)
        where = bucket_of(ids, tables)
        for number in range(lot, tables, self.side.lots):  # a table's number tells its lot
            await self.search.read_table(peer, number, rows[rows_of(where, number)])
