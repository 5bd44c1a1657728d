"""A follower that answers by oblivious transfers: it checks each lot before it writes the tables of it."""

from __future__ import annotations

import asyncio
import os

import numpy as np

from colonnade.arrays import Digests, Words
from colonnade.conversations.align.follower_base import Help, table_of
from colonnade.conversations.align.layout import AlignStep, capacity, tag
from colonnade.conversations.align.order import share_of_zero
from colonnade.conversations.align.side import NONE, context_of
from colonnade.messages import Points, Transfer
from colonnade.net.expect import Number, octets, said_by, words
from colonnade.secure.curve import POINT
from colonnade.secure.ot import base, extension, function
from colonnade.secure.ot.bits import SUMS
from colonnade.secure.ot.code import LENGTH, WIDTH


async def answer_transfers(given: Help) -> None:
    """Answer all lots of the leader's ids."""
    await _KeyHolder(given).answer()


class _KeyHolder:
    def __init__(self, given: Help) -> None:
        self.help, self.side, self.net, self.pool = given, given.side, given.net, given.pool
        self.leader = self.side.leader
        self.room = capacity(self.side.sizes[self.leader], self.side.lots)  # for ids of the leader's in a lot

    async def answer(self) -> None:
        key = await self._choose()
        under_way = asyncio.Semaphore(1 + self.pool.size)

        async def answer(lot: int) -> None:
            await self._answer(lot, key)
            under_way.release()

        async with asyncio.TaskGroup() as group:
            for lot in range(self.side.lots):
                await under_way.acquire()
                group.create_task(answer(lot))

    async def _choose(self) -> function.TransferKey:
        """Take one of two seeds for every column, by secret choices."""
        context = context_of(self.side.secrets[self.leader])
        choices = np.unpackbits(np.frombuffer(os.urandom(LENGTH // 8), dtype=np.uint8)).astype(np.bool_)
        offers, secrets = await self.pool.run(base.choose, choices, context)
        await self.net.send(self.leader, Points(tag(AlignStep.CHOICES), offers))
        answers = await self.net.recv(Points, self.leader, tag(AlignStep.KEY), points=octets(LENGTH, POINT))
        size = octets(LENGTH, 2, base.SEED)
        hidden = await self.net.recv(Transfer, self.leader, tag(AlignStep.SEEDS), rows=size, seed=NONE)
        with said_by(self.leader):
            both = (answers.points, hidden.rows)
            seeds = await self.pool.run(base.opened, choices, secrets, offers, both, context)
        return function.TransferKey(extension.packed(choices), seeds, context)

    async def _answer(self, lot: int, key: function.TransferKey) -> None:
        """Answer a lot: nothing that depends on the key leaves before the leader has proved its rows."""
        size = words(function.rows_for(self.room), WIDTH)
        seed = Number(0, 2**64 - 1)
        covered = await self.net.recv(
            Transfer, self.leader, tag(AlignStep.COVERED, lot), rows=size, seed=seed
        )
        rows = await self.pool.run(extension.uncovered, key.seeds, key.choices, lot, covered.rows)
        challenge = np.frombuffer(os.urandom(8 * extension.CHALLENGE), dtype=np.uint64)
        await self.net.send(self.leader, Transfer(tag(AlignStep.CHALLENGE, lot), 0, challenge))
        sums = words(SUMS, extension.PROOF)
        proof = await self.net.recv(Transfer, self.leader, tag(AlignStep.PROOF, lot), rows=sums, seed=NONE)
        with said_by(self.leader):
            await self.pool.run(extension.check, rows, key.choices, challenge, proof.rows)
        for number in range(lot, self.help.tables, self.side.lots):  # a table's number tells its lot
            mine = self.help.rows_of(number)
            values, table_seed, table = await self.pool.run(
                _answered,
                self.side.ids[mine],
                (self.room, covered.seed, rows, key),
                self.help.secrets,
                self.help.room,
            )
            self.help.computed(mine, values)
            await self.help.send_table(number, table_seed, table)


def _answered(
    ids: Digests, asked: tuple[int, int, Words, function.TransferKey], secrets: list[bytes], room: int
) -> tuple[Words, int, Words]:
    """Return F of own ids, and their table of s xor F."""
    values = function.compute(ids, *asked)
    return values, *table_of(ids, values ^ share_of_zero(ids, secrets), room)
