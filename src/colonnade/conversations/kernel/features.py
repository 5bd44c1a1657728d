"""Algorithm 3 of FDSKL: projections on random features, summed to their owner.

A projection does not depend on the model, and everybody knows the schedule, so it is sent before it is
asked for. What an owner makes of it differs: where every round only adds features it keeps a running score
of every row (`running`); where all coefficients move it keeps phi of every row (`kept`).
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Sequence
from typing import Generic, TypeVar

from colonnade.arrays import Floats, Words
from colonnade.conversations.context import Context
from colonnade.conversations.kernel.phases import Phases
from colonnade.conversations.kernel.settings import KernelSettings
from colonnade.conversations.kernel.setup import FeatureLayout
from colonnade.conversations.pacing.one_order import OneOrder
from colonnade.messages import Topic, tag_of
from colonnade.models.random_features import RandomFeatures, SeededFeatures

# rounds whose projections may be under way before their turn
LOOKAHEAD = 3
# values of one message: a round's projections travel in stretches
STRETCH = 2**20
# the cost of a projection beside its multiplications (its mask, its cosine), counted in touched numbers
EXTRA = 20
MULTIPLICATIONS = 16  # how many of a matrix product take the time of one touched number


Part = TypeVar("Part", RandomFeatures, SeededFeatures)


class FeatureScores(ABC, Generic[Part]):
    """f_l of rows, from the projections on the features that this party owns; it sends its part of others'.

    `features` are this party's part of every owner's features.
    """

    def __init__(
        self,
        context: Context[KernelSettings],
        layout: FeatureLayout,
        window: OneOrder,
        features: list[Part],
    ) -> None:
        self.context, self.layout, self.window = context, layout, window
        self.features: list[Part] = features
        self.owner = layout.owners.index(context.me) if context.me in layout.owners else None
        self.arrived: dict[int, asyncio.Future[None]] = defaultdict(asyncio.get_running_loop().create_future)

    @abstractmethod
    def takers(self, number: int) -> Sequence[int]:
        """Return the owners on whose features rows are projected with a round."""

    @abstractmethod
    async def project(self, number: int, owner: int) -> Phases:
        """Send this party's part of a round's projections to their owner, who gets the total."""

    @abstractmethod
    def take(self, number: int, projections: Phases) -> None:
        """Take in the projections of a round on the own features."""

    async def find_again(self) -> None:
        """Have again what no checkpoint has, in a run that goes on."""

    @abstractmethod
    async def of(self, number: int, alpha: Floats) -> Floats:
        """Return f_l of a round's rows; these are the coefficients of the own features so far."""

    @abstractmethod
    def of_all(self, alpha: Floats) -> Floats | None:
        """Return f_l of all rows; None where their projections have to be asked for."""

    @abstractmethod
    async def new(self, number: int) -> Floats:
        """Return phi of a round's rows on the features that come with it; they are this party's."""

    @abstractmethod
    async def known(self, number: int) -> Floats:
        """Return phi of a round's rows on all own features."""

    @abstractmethod
    def follow(self, number: int, decay: float, alpha: Floats | None) -> None:
        """Let scores follow a round: coefficients decayed, and new features, if they are own, got these."""

    async def ready(self, number: int) -> None:
        """Wait until the projections of a round have come, if some come with it."""
        if self.place in self.takers(number):
            await self.arrived[number]

    def forget(self, number: int) -> None:
        """Drop what only this round needed."""
        self.arrived.pop(number, None)

    async def send(self) -> None:
        """Send this party's part of the projections to their owners, ahead of their round."""
        for number in range(self.window.base, self.layout.schedule.rounds):
            for owner in self.takers(number):
                if owner == self.owner:
                    continue
                if not await self.window.opens(self._turn(number)):
                    return
                await self.project(number, owner)
                # let the owner take it in: a party that never waits would fill its mailbox
                await asyncio.sleep(0)

    async def receive(self) -> None:
        """Collect the projections on the own features round by round; only owners call this."""
        for number in range(self.window.base, self.layout.schedule.rounds):
            if self.place not in self.takers(number):
                continue
            if not await self.window.opens(self._turn(number)):
                return
            self.take(number, await self.project(number, self.place))
            self.arrived[number].set_result(None)

    def _turn(self, number: int) -> int:
        """Return the round with which a round's projections may be sent; none is under way across a gate."""
        return number if number >= self.window.gate else number - LOOKAHEAD

    @property
    def place(self) -> int:
        """This party's place among the owners."""
        if self.owner is None:
            raise RuntimeError(f"{self.context.me} owns no features")
        return self.owner

    async def summed(self, piece: Words, owner: int, exchange: int) -> Words:
        """Return the sum of all parties' pieces at the owner; elsewhere the own one, which was sent.

        Its tag lies above those of scores, which are numbers of rounds.
        """
        tag = tag_of(Topic.TRAIN, self.layout.schedule.rounds + exchange)
        if owner == self.owner:
            return await self.context.sum.collect(piece, tag=tag)
        await self.context.sum.give(piece, root=self.layout.owners[owner], tag=tag)
        return piece

    async def charge(self, rows: int, features: int) -> None:
        """Take the time that projecting takes."""
        await self.context.charge(rows * features * (self.context.train.width / MULTIPLICATIONS + EXTRA))
