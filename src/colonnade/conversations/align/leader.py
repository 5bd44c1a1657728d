"""The leader of an alignment: it has the fewest ids, asks every other party about them, and finds the answer.

It tells the others of every step that it finishes, so that no wait is longer than a step.
"""

from __future__ import annotations

import asyncio
import os

import numpy as np

from colonnade.arrays import Digests, Rows, Words
from colonnade.conversations.align.layout import (
    Step,
    bucket_of,
    buckets_for,
    capacity,
    chunk_at,
    chunks_for,
    keys_of,
    rows_of,
    tag,
)
from colonnade.conversations.align.order import share_of_zero
from colonnade.conversations.align.side import Side, check_common
from colonnade.messages import Found, Hints, Points
from colonnade.net.expect import Number, octets, said_by, words
from colonnade.secure import oprf
from colonnade.secure.curve import POINT, read
from colonnade.secure.hints import read_table, size_for

_NOTHING = np.empty(0, dtype=np.uint8)


async def lead(side: Side, minimum: int) -> Rows:
    """Find the common ids, tell every peer which they are, and return the own rows that hold them."""
    return await _Leader(side).find(minimum)


class _Leader:
    def __init__(self, side: Side) -> None:
        self.side, self.net, self.crew = side, side.net, side.crew
        shuffled = np.random.Generator(np.random.PCG64(int.from_bytes(os.urandom(16), "big")))
        self.order: Rows = shuffled.permutation(len(side.ids))  # points must not tell the order of the file
        self.width = oprf.width_for(len(side.ids))
        # F of every own id by peer, and the exclusive or of all that must cancel: both in shuffled order
        self.values = {peer: np.empty((len(side.ids), 2), dtype=np.uint64) for peer in self.net.peers}
        self.rest = np.zeros((len(side.ids), 2), dtype=np.uint64)
        self.done = 0

    async def find(self, minimum: int) -> Rows:
        keys = {peer: await self._key(peer) for peer in self.net.peers}
        # what is under way: as much as keeps workers here and at peers busy, and no more
        room = asyncio.Semaphore(4 + 3 * self.crew.size)
        async with asyncio.TaskGroup() as group:
            for peer in self.net.peers:
                group.create_task(self._read_tables(peer))
            for chunk in range(self.side.chunks):
                await room.acquire()
                group.create_task(self._ask(chunk, keys, room))
        common = np.flatnonzero(~self.rest.any(axis=1))
        if len(common) < minimum:
            common = common[:0]  # how many there are is nobody's business: too few, and that is all
        for peer in self.net.peers:
            names = self.values[peer][common]
            await self._tell(peer, names[np.argsort(names[:, 0])])
        check_common(len(common), minimum)
        found: Rows = self.order[common]
        return found

    async def _key(self, peer: str) -> bytes:
        points = (await self.net.recv(Points, peer, tag(Step.KEY), points=octets(1, POINT))).points
        with said_by(peer):
            read(points)
        return points.tobytes()

    async def _ask(self, chunk: int, keys: dict[str, bytes], room: asyncio.Semaphore) -> None:
        """Send some of the own ids to all peers, blinded, and learn F of them under every peer's key."""
        part = chunk_at(chunk)
        ids = self._ids(part)
        blinding = oprf.draw(len(ids), self.width)
        points = await self.crew.run(oprf.blind, ids, blinding, self.width)
        await self.net.broadcast(Points(tag(Step.BLIND, chunk), points))
        self._cancel(part, await self.crew.run(share_of_zero, ids, list(self.side.secrets.values())))

        async def answer(peer: str) -> None:
            size = octets(len(ids), POINT)
            answers = (await self.net.recv(Points, peer, tag(Step.EVALUATED, chunk), points=size)).points
            with said_by(peer):
                values = await self.crew.run(oprf.unblind, ids, answers, blinding, self.width, keys[peer])
            self.values[peer][part] = values
            self._cancel(part, values)
            await self._tick()

        async with asyncio.TaskGroup() as group:
            for peer in self.net.peers:
                group.create_task(answer(peer))
        room.release()

    async def _read_tables(self, peer: str) -> None:
        """Read a peer's tables at each of our ids, bucket by bucket."""
        size = self.side.sizes[peer]
        buckets, places = buckets_for(size), size_for(capacity(size))
        where = np.concatenate(
            [bucket_of(self._ids(chunk_at(chunk)), buckets) for chunk in range(chunks_for(len(self.order)))]
        )
        for bucket in range(buckets):
            hints = await self.net.recv(
                Hints, peer, tag(Step.TABLE, bucket), table=words(places, 2), seed=Number(0, 2**64 - 1)
            )
            mine = rows_of(where, bucket)
            keys = keys_of(self.side.ids[self.order[mine]])
            self._cancel(mine, await self.crew.run(read_table, hints.table, hints.seed, keys))
            await self._tick()

    def _cancel(self, rows: slice | Rows, values: Words) -> None:
        """Let what was found out about some ids cancel with the rest."""
        self.rest[rows] ^= values

    def _ids(self, part: slice) -> Digests:
        """Some of the own ids, in shuffled order."""
        ids: Digests = self.side.ids[self.order[part]]
        return ids

    async def _tick(self) -> None:
        """Count one finished step and tell all peers, who would otherwise give up waiting."""
        self.done += 1
        self.side.progress(self.done, self.side.steps)
        await self.net.broadcast(Points(tag(Step.TICK, self.done), _NOTHING))

    async def _tell(self, peer: str, names: Words) -> None:
        for chunk in range(max(1, chunks_for(len(names)))):
            await self.net.send(peer, Found(tag(Step.FOUND, chunk), len(names), names[chunk_at(chunk)]))
