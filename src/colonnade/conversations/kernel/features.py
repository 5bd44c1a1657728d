"""Algorithm 3 of FDSKL: projections on random features, summed to their owner and kept there.

A projection does not depend on the model, and everybody knows the schedule, so it is sent before it is
asked for. The owner keeps phi of every row it has met; a row is projected once, and once more in a run that
goes on after a crash. Without a cache the projections of a round are forgotten when the round is over, and
asked for again at the next visit.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict

import numpy as np

from colonnade.arrays import Floats
from colonnade.conversations.context import Context
from colonnade.conversations.kernel.phases import pack, unpack
from colonnade.conversations.kernel.settings import KernelSettings
from colonnade.conversations.kernel.setup import FeatureLayout
from colonnade.conversations.pacing.one_order import OneOrder
from colonnade.messages import Announce, Topic, tag_of
from colonnade.models.random_features import RandomFeatures, phi
from colonnade.net.expect import floats

# rounds whose projections may be under way before their turn
LOOKAHEAD = 3
# values of one message: a round's projections travel in stretches of columns
STRETCH = 2**20
# the cost of a projection beside its multiplications (its mask, its cosine), counted in touched numbers
EXTRA = 20
MULTIPLICATIONS = 16  # how many of a matrix product take the time of one touched number


class Projections:
    """Sends one party's part of all projections, and keeps phi of the features that it owns."""

    def __init__(
        self,
        context: Context[KernelSettings],
        layout: FeatureLayout,
        features: list[RandomFeatures],
        window: OneOrder,
    ) -> None:
        self._context, self._layout, self._window = context, layout, window
        self._features = features
        self.owner = layout.owners.index(context.me) if context.me in layout.owners else None
        owned = 0 if self.owner is None else layout.width(self.owner)
        self.kept: Floats = np.empty((context.train.rows, owned if layout.cached else 0))
        self._passing: dict[int, Floats] = {}  # phi of the rounds under way
        self._arrived: dict[int, asyncio.Future[None]] = defaultdict(asyncio.get_running_loop().create_future)

    async def send(self) -> None:
        """Send this party's part of the projections to their owners, ahead of their round."""
        for number in range(self._window.base, self._layout.schedule.rounds):
            for owner, name in enumerate(self._layout.owners):
                if name == self._context.me or not self._layout.wanted(number, owner):
                    continue
                if not await self._window.opens(self._turn(number)):
                    return
                await self._summed(number, owner)
                # let the owner take it in: a party that never waits would fill its mailbox
                await asyncio.sleep(0)

    def _turn(self, number: int) -> int:
        """Return the round with which a round's projections may be sent; none is under way across a gate."""
        return number if number >= self._window.gate else number - LOOKAHEAD

    async def receive(self) -> None:
        """Collect the projections on the own features round by round, and keep phi; only owners call this."""
        owner = self._own_place()
        for number in range(self._window.base, self._layout.schedule.rounds):
            if not self._layout.wanted(number, owner):
                continue
            if not await self._window.opens(self._turn(number)):
                return
            values = self._passing[number] = phi(await self._summed(number, owner))
            if self._layout.cached:
                self.kept[self._layout.rows(number)] = values
            self._arrived[number].set_result(None)

    async def find_again(self) -> None:
        """Have phi of all rows again in a run that goes on: it is too much to be stored at every gate.

        Rows are projected in the batches in which they were met first, so every number is the same to the
        last bit.
        """
        if not self._layout.cached or not self._context.gates.position:
            return
        net = self._context.net
        for number in range(self._layout.schedule.per_epoch):
            for owner in range(len(self._layout.owners)):
                values = await self._summed(number, owner)
                if owner == self.owner:
                    self.kept[self._layout.rows(number)] = phi(values)
            if number % LOOKAHEAD == LOOKAHEAD - 1:  # nobody is further ahead than that
                tag = tag_of(Topic.GATE, number)  # gates themselves come after the first pass
                await net.broadcast(Announce(tag, np.empty(0)))
                await net.gather(Announce, tag, values=floats(0))

    async def phi(self, number: int) -> Floats:
        """Return phi of a round's rows on the own features; waits until their projections have come."""
        if self._layout.wanted(number, self._own_place()):
            await self._arrived[number]
        values = self._passing.get(number)
        if values is None:
            # gathered once for the scores and the update of a round
            values = self._passing[number] = self.kept[self._layout.rows(number)]
        return values

    def _own_place(self) -> int:
        """Return this party's place among the owners."""
        if self.owner is None:
            raise RuntimeError(f"{self._context.me} owns no features")
        return self.owner

    def forget(self, number: int) -> None:
        """Drop what only this round needed."""
        self._passing.pop(number, None)
        self._arrived.pop(number, None)

    async def _summed(self, number: int, owner: int) -> Floats:
        """Return a round's rows projected on an owner's features: the total at the owner, elsewhere the own
        part."""
        table, secure = self._context.train, self._context.sum
        bits = self._context.plan.settings.bits
        rows, count = self._layout.rows(number), self._layout.wanted(number, owner)
        await self._context.charge(len(rows) * count * (table.width / MULTIPLICATIONS + EXTRA))
        part = self._features[owner].project(table.X[rows], count)
        width = max(1, STRETCH // len(rows))
        for first in range(0, count, width):
            stretch = slice(first, first + width)
            some, tag = part[:, stretch], self._tag(number, owner, first // width)
            piece = pack(some, bits)
            if owner == self.owner:
                part[:, stretch] = unpack(await secure.collect(piece, tag=tag), some.shape, bits)
            else:
                await secure.give(piece, root=self._layout.owners[owner], tag=tag)
        return part

    def _tag(self, number: int, owner: int, stretch: int) -> int:
        """Return the tag of a stretch of projections; it lies above those of scores, which are numbers of
        rounds."""
        schedule, owners = self._layout.schedule, len(self._layout.owners)
        most = -(-self._layout.features * schedule.largest // STRETCH) + 1
        return tag_of(Topic.TRAIN, schedule.rounds + (number * owners + owner) * most + stretch)
