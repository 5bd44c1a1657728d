"""Everybody but the leader of an alignment: it answers blinded ids, and writes tables of its own."""

from __future__ import annotations

import asyncio
import os

import numpy as np

from colonnade.arrays import Digests, Rows, Words
from colonnade.conversations.align.layout import (
    Buckets,
    Step,
    bucket_of,
    buckets_for,
    capacity,
    chunk_at,
    chunks_for,
    due,
    keys_of,
    rows_of,
    tag,
)
from colonnade.conversations.align.order import share_of_zero
from colonnade.conversations.align.side import Side, check_common
from colonnade.errors import AlignmentError
from colonnade.messages import Found, Hints, Points
from colonnade.net.expect import PACKED, Number, expect, octets, said_by, words
from colonnade.secure import oprf
from colonnade.secure.curve import POINT, scalar
from colonnade.secure.hints import write_table


async def follow(side: Side, minimum: int) -> Rows:
    """Help the leader find the common ids, and return the own rows that hold them."""
    return await _Follower(side).find(minimum)


class _Follower:
    def __init__(self, side: Side) -> None:
        self.side, self.net, self.crew = side, side.net, side.crew
        self.key = scalar()
        self.values = np.empty((len(side.ids), 2), dtype=np.uint64)  # F of the own ids

    async def find(self, minimum: int) -> Rows:
        public = np.frombuffer(oprf.public_key(self.key), dtype=np.uint8).reshape(1, POINT)
        await self.net.send(self.side.leader, Points(tag(Step.KEY), public))
        async with asyncio.TaskGroup() as group:
            group.create_task(self._evaluate())
            group.create_task(self._write_tables())
            group.create_task(self._listen())
        return self._recognise(await self._found(minimum))

    async def _evaluate(self) -> None:
        """Answer the leader's blinded ids, chunk by chunk."""
        room, leader = asyncio.Semaphore(self.crew.size + 1), self.side.leader

        async def answer(chunk: int, points: Points) -> None:
            with said_by(leader):
                evaluated = await self.crew.run(oprf.evaluate, points.points, self.key)
            await self.net.send(leader, Points(tag(Step.EVALUATED, chunk), evaluated))
            room.release()

        async with asyncio.TaskGroup() as group:
            for chunk in range(self.side.chunks):
                await room.acquire()
                size = octets(due(self.side.sizes[leader], chunk), POINT)
                points = await self.net.recv(Points, leader, tag(Step.BLIND, chunk), points=size)
                group.create_task(answer(chunk, points))

    async def _write_tables(self) -> None:
        """Send the leader a table of s xor F for every bucket of the own ids."""
        buckets = buckets_for(len(self.side.ids))
        where = bucket_of(self.side.ids, buckets)
        room = asyncio.Semaphore(1 + self.crew.size // 4)  # a bucket has work for eight
        async with asyncio.TaskGroup() as group:
            for bucket in range(buckets):
                await room.acquire()
                group.create_task(self._write_table(bucket, where, room))

    async def _write_table(self, bucket: int, where: Buckets, room: asyncio.Semaphore) -> None:
        mine = rows_of(where, bucket)
        ids = self.side.ids[mine]
        parts = [chunk_at(chunk) for chunk in range(chunks_for(len(mine)))]
        secrets = list(self.side.secrets.values())
        both = await asyncio.gather(*(self.crew.run(_values, ids[part], self.key, secrets) for part in parts))
        entries = np.empty((len(mine), 2), dtype=np.uint64)
        for part, (values, zero) in zip(parts, both, strict=True):
            self.values[mine[part]] = values
            entries[part] = values ^ zero
        # noise fills a bucket up to its capacity: its size must not tell how many ids fall into it
        count = capacity(len(self.side.ids)) - len(mine)
        spare = np.frombuffer(os.urandom(32 * count), dtype=np.uint64).reshape(-1, 4)
        seed, table = await self.crew.run(
            write_table,
            np.concatenate([keys_of(ids), spare[:, :2]]),
            np.concatenate([entries, spare[:, 2:]]),
        )
        await self.net.send(self.side.leader, Hints(tag(Step.TABLE, bucket), seed, table))
        room.release()

    async def _listen(self) -> None:
        for step in range(1, self.side.steps + 1):
            await self.net.recv(Points, self.side.leader, tag(Step.TICK, step), points=octets(0))
            self.side.progress(step, self.side.steps)

    async def _found(self, minimum: int) -> Words:
        """F of the common ids, as the leader names them."""
        leader = self.side.leader
        # no more can be common than the leader brought, which has the fewest
        brought = Number(0, self.side.sizes[leader])
        first = await self.net.recv(Found, leader, tag(Step.FOUND), total=brought, names=PACKED)
        total = first.total
        check_common(total, minimum)
        names = np.empty((total, 2), dtype=np.uint64)
        for chunk in range(chunks_for(total)):
            part = first
            if chunk:
                part = await self.net.recv(Found, leader, tag(Step.FOUND, chunk), names=PACKED)
            expect(leader, part, {"names": words(due(total, chunk), 2)})
            names[chunk_at(chunk)] = part.names
        return names

    def _recognise(self, names: Words) -> Rows:
        """The own rows whose F the leader named."""
        order = np.argsort(self.values[:, 0], kind="stable")
        place = np.searchsorted(self.values[order, 0], names[:, 0])
        rows: Rows = order[np.minimum(place, len(order) - 1)]
        if not (self.values[rows] == names).all() or len(np.unique(rows)) < len(rows):
            raise AlignmentError(
                f"{self.side.leader} named common ids that {self.net.me} did not bring, or twice"
            )
        return rows


def _values(ids: Digests, key: bytes, secrets: list[bytes]) -> tuple[Words, Words]:
    """F and the share of zero of ids."""
    return oprf.compute(ids, key), share_of_zero(ids, secrets)
