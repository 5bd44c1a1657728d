"""The leader of an alignment has the fewest ids, and asks every peer about them by points of the curve."""

from __future__ import annotations

import asyncio

import numpy as np

from colonnade.arrays import Rows
from colonnade.conversations.align.asker import ask_by_transfers
from colonnade.conversations.align.layout import AlignStep, bucket_of, chunk_at, chunks_for, rows_of, tag
from colonnade.conversations.align.order import share_of_zero
from colonnade.conversations.align.search import IdSearch
from colonnade.conversations.align.side import AlignSide
from colonnade.messages import Points
from colonnade.net.expect import octets, said_by
from colonnade.secure import oprf
from colonnade.secure.curve import POINT, read


async def lead(side: AlignSide, minimum: int) -> Rows:
    """Find the common ids, tell every peer which they are, and return the own rows that hold them."""
    search = IdSearch(side)
    try:
        await (ask_by_transfers(search) if side.method == "ot" else _CurveAsker(search).ask_all())
    finally:
        oprf.forget_keys()  # megabytes, where ids are many
    return await search.end(minimum)


class _CurveAsker:
    """Learns F of ids chunk by chunk, while tables of the peers arrive."""

    def __init__(self, search: IdSearch) -> None:
        self.search, self.side, self.net, self.pool = search, search.side, search.net, search.pool
        self.width = oprf.width_for(len(self.side.ids))

    async def ask_all(self) -> None:
        keys = {peer: await self._key(peer) for peer in self.net.peers}
        # what is under way: as much as keeps workers here and at peers busy, and no more
        room = asyncio.Semaphore(4 + 3 * self.pool.size)
        async with asyncio.TaskGroup() as group:
            for peer in self.net.peers:
                group.create_task(self._read_tables(peer))
            for chunk in range(self.side.chunks):
                await room.acquire()
                group.create_task(self._ask(chunk, keys, room))

    async def _key(self, peer: str) -> bytes:
        points = (await self.net.recv(Points, peer, tag(AlignStep.KEY), points=octets(1, POINT))).points
        with said_by(peer):
            read(points)
        return points.tobytes()

    async def _ask(self, chunk: int, keys: dict[str, bytes], room: asyncio.Semaphore) -> None:
        """Send some of the own ids to all peers, blinded, and learn F of them under every peer's key."""
        part = chunk_at(chunk)
        ids = self.search.ids(part)
        blinding = oprf.draw(len(ids), self.width)
        points = await self.pool.run(oprf.blind, ids, blinding, self.width)
        await self.net.broadcast(Points(tag(AlignStep.BLIND, chunk), points))
        zero = await self.pool.run(share_of_zero, ids, list(self.side.secrets.values()))
        self.search.cancel(part, zero)

        async def answer(peer: str) -> None:
            size = octets(len(ids), POINT)
            answers = (await self.net.recv(Points, peer, tag(AlignStep.EVALUATED, chunk), points=size)).points
            with said_by(peer):
                values = await self.pool.run(oprf.unblind, ids, answers, blinding, self.width, keys[peer])
            await self.search.learnt(peer, part, values)

        async with asyncio.TaskGroup() as group:
            for peer in self.net.peers:
                group.create_task(answer(peer))
        room.release()

    async def _read_tables(self, peer: str) -> None:
        """Read a peer's tables at each of our ids, bucket by bucket."""
        tables, chunks = self.side.tables(peer), chunks_for(len(self.side.ids))
        where = np.concatenate(
            [bucket_of(self.search.ids(chunk_at(chunk)), tables) for chunk in range(chunks)]
        )
        for number in range(tables):
            await self.search.read_table(peer, number, rows_of(where, number))
