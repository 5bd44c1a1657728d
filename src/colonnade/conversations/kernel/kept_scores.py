"""Scores of a machine whose coefficients all move: an owner keeps phi of every row it has met.

A row is projected once, on all features there will be, and once more in a run that goes on after a crash.
Without a cache the projections of a round are forgotten when the round is over, and asked for again at the
next visit, as the paper's Algorithm 2 has it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from colonnade.arrays import Floats
from colonnade.conversations.context import Context
from colonnade.conversations.kernel.features import LOOKAHEAD, MULTIPLICATIONS, STRETCH, FeatureScores
from colonnade.conversations.kernel.phases import Phases, features_of, pack, phases
from colonnade.conversations.kernel.settings import KernelSettings
from colonnade.conversations.kernel.setup import FeatureLayout
from colonnade.conversations.pacing.one_order import OneOrder
from colonnade.messages import Announce, Topic, tag_of
from colonnade.models.random_features import RandomFeatures
from colonnade.net.expect import floats
from colonnade.state import UNCHANGED


class KeptScores(FeatureScores[RandomFeatures]):
    """f as a product of coefficients with what is kept, so no running score has to be stored beside it."""

    STATE = UNCHANGED  # what is kept is found again

    def __init__(
        self,
        context: Context[KernelSettings],
        layout: FeatureLayout,
        window: OneOrder,
        features: list[RandomFeatures],
    ) -> None:
        super().__init__(context, layout, window, features)
        owned = 0 if self.owner is None else layout.width(self.owner)
        self.kept: Floats = np.empty((context.train.rows, owned if layout.cached else 0))
        self._passing: dict[int, Floats] = {}  # phi of the rounds under way

    def takers(self, number: int) -> Sequence[int]:
        return [at for at in range(len(self.layout.owners)) if self.layout.wanted(number, at)]

    async def project(self, number: int, owner: int) -> Phases:
        table, bits = self.context.train, self.context.plan.settings.bits
        rows, count = self.layout.rows(number), self.layout.wanted(number, owner)
        await self.charge(len(rows), count)
        part = self.features[owner].project(table.X[rows], count)
        width = max(1, STRETCH // len(rows))
        most = -(-self.layout.features * self.layout.schedule.largest // STRETCH) + 1
        found = []
        for stretch, first in enumerate(range(0, count, width)):
            some = part[:, first : first + width]
            exchange = (number * len(self.layout.owners) + owner) * most + stretch
            words = await self.summed(pack(some, bits), owner, exchange)
            found.append(phases(words, some.shape, bits))
        return np.hstack(found)

    def take(self, number: int, projections: Phases) -> None:
        values = self._passing[number] = features_of(projections)
        if self.layout.cached:
            self.kept[self.layout.rows(number)] = values

    async def find_again(self) -> None:
        """Have phi of all rows again: it is too much to be stored at every gate.

        Rows are projected in the batches in which they were met first, so every number is the same to the
        last bit.
        """
        if not self.layout.cached or not self.context.gates.position:
            return
        net = self.context.net
        for number in range(self.layout.schedule.per_epoch):
            for owner in range(len(self.layout.owners)):
                projections = await self.project(number, owner)
                if owner == self.owner:
                    self.kept[self.layout.rows(number)] = features_of(projections)
            if number % LOOKAHEAD == LOOKAHEAD - 1:  # nobody is further ahead than that
                tag = tag_of(Topic.GATE, number)  # gates themselves come after the first pass
                await net.broadcast(Announce(tag, np.empty(0)))
                await net.gather(Announce, tag, values=floats(0))

    async def phi(self, number: int) -> Floats:
        """Return phi of a round's rows on the own features; gathered once for the scores and the update."""
        await self.ready(number)
        if number not in self._passing:
            self._passing[number] = self.kept[self.layout.rows(number)]
        return self._passing[number]

    async def of(self, number: int, alpha: Floats) -> Floats:
        values = await self.phi(number)
        await self.context.charge(len(values) * len(alpha) / MULTIPLICATIONS)
        f: Floats = values[:, : len(alpha)] @ alpha
        return f

    def of_all(self, alpha: Floats) -> Floats | None:
        return self.kept[:, : len(alpha)] @ alpha if self.layout.cached else None

    async def new(self, number: int) -> Floats:
        values = await self.known(number)
        return values[:, self.layout.place(number)]

    async def known(self, number: int) -> Floats:
        values = await self.phi(number)
        await self.context.charge(values.size / MULTIPLICATIONS)
        return values

    def follow(self, number: int, decay: float, alpha: Floats | None) -> None:
        """Do nothing: the next scores are computed from what is kept."""

    def forget(self, number: int) -> None:
        super().forget(number)
        self._passing.pop(number, None)
