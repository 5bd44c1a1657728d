"""Everybody but the leader of an alignment: it answers blinded ids, and writes tables of its own."""

from __future__ import annotations

import asyncio

import numpy as np

from colonnade.arrays import Digests, Rows, Words
from colonnade.conversations.align.follower_base import Help, table_of
from colonnade.conversations.align.key_holder import answer_transfers
from colonnade.conversations.align.layout import AlignStep, chunk_at, chunks_for, due, tag
from colonnade.conversations.align.order import share_of_zero
from colonnade.conversations.align.side import AlignSide
from colonnade.messages import Points
from colonnade.net.expect import octets, said_by
from colonnade.secure import oprf
from colonnade.secure.curve import POINT, scalar


async def follow(side: AlignSide, minimum: int) -> Rows:
    """Help the leader find the common ids, and return the own rows that hold them."""
    given = await asyncio.to_thread(Help, side)
    answers = answer_transfers(given) if side.method == "ot" else _Follower(given).answer()
    async with asyncio.TaskGroup() as group:
        group.create_task(answers)
        group.create_task(given.listen())
    return await given.end(minimum)


class _Follower:
    """Answers points of the curve, and computes F of its own ids beside that."""

    def __init__(self, given: Help) -> None:
        self.help, self.side, self.net, self.pool = given, given.side, given.net, given.pool
        self.key = scalar()

    async def answer(self) -> None:
        public = np.frombuffer(oprf.public_key(self.key), dtype=np.uint8).reshape(1, POINT)
        await self.net.send(self.side.leader, Points(tag(AlignStep.KEY), public))
        async with asyncio.TaskGroup() as group:
            group.create_task(self._evaluate())
            group.create_task(self._write_tables())

    async def _evaluate(self) -> None:
        """Answer the leader's blinded ids, chunk by chunk."""
        room, leader = asyncio.Semaphore(self.pool.size + 1), self.side.leader

        async def answer(chunk: int, points: Points) -> None:
            with said_by(leader):
                evaluated = await self.pool.run(oprf.evaluate, points.points, self.key)
            await self.net.send(leader, Points(tag(AlignStep.EVALUATED, chunk), evaluated))
            room.release()

        async with asyncio.TaskGroup() as group:
            for chunk in range(self.side.chunks):
                await room.acquire()
                size = octets(due(self.side.sizes[leader], chunk), POINT)
                points = await self.net.recv(Points, leader, tag(AlignStep.BLIND, chunk), points=size)
                group.create_task(answer(chunk, points))

    async def _write_tables(self) -> None:
        """Send the leader a table of s xor F for every bucket of the own ids."""
        room = asyncio.Semaphore(1 + self.pool.size // 4)  # a bucket has work for eight
        async with asyncio.TaskGroup() as group:
            for number in range(self.help.tables):
                await room.acquire()
                group.create_task(self._write_table(number, room))

    async def _write_table(self, number: int, room: asyncio.Semaphore) -> None:
        mine = self.help.rows_of(number)
        ids = self.side.ids[mine]
        parts = [chunk_at(chunk) for chunk in range(chunks_for(len(mine)))]
        work = (self.pool.run(_values, ids[part], self.key, self.help.secrets) for part in parts)
        entries = np.empty((len(mine), 2), dtype=np.uint64)
        for part, (values, zero) in zip(parts, await asyncio.gather(*work), strict=True):
            self.help.computed(mine[part], values)
            entries[part] = values ^ zero
        seed, table = await self.pool.run(table_of, ids, entries, self.help.room)
        await self.help.send_table(number, seed, table)
        room.release()


def _values(ids: Digests, key: bytes, secrets: list[bytes]) -> tuple[Words, Words]:
    """Return F and the share of zero of ids."""
    return oprf.compute(ids, key), share_of_zero(ids, secrets)
