"""A party whose products are prepared in lots of rounds: what `algorithm.backward_in_lots` asks of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from colonnade.arrays import Words
from colonnade.conversations.context import Context, Outcome
from colonnade.conversations.linear.settings import LinearSettings
from colonnade.conversations.pacing.schedule import Round, Schedule

Lot = TypeVar("Lot")
Asked = TypeVar("Asked")


@dataclass(frozen=True)
class InLot(Generic[Lot]):
    """A round, and its place in the lot that its products are of."""

    batch: Round
    lot: Lot
    place: int


class PartyInLots(ABC, Generic[Lot, Asked]):
    """One party's side of a round: its share, theta and the step, of which it may know no number."""

    context: Context[LinearSettings]
    schedule: Schedule
    together: int  # rounds in a lot, at most

    @abstractmethod
    async def begin(self) -> None:
        """Do what is due before the first round, or before going on."""

    @abstractmethod
    async def next_rounds(self) -> range:
        """Return the rounds after which something else is due; none: the run is over."""

    @abstractmethod
    async def open(self, batches: Sequence[Round]) -> Lot:
        """Prepare the products of some rounds."""

    @abstractmethod
    async def give(self, at: InLot[Lot], behind: int) -> Asked:
        """Give the share of a round's scores, which miss the steps of this many rounds under way."""

    @abstractmethod
    async def reply(self, at: InLot[Lot], asked: Asked) -> Words | None:
        """Return what a round adds to all weights, or this party's part of it."""

    @abstractmethod
    async def step(self, at: InLot[Lot], added: Words | None) -> None:
        """Add it to the weights that this party has a part of."""

    @abstractmethod
    async def pause(self) -> None:
        """Do what is due once the rounds are finished."""

    @abstractmethod
    async def outcome(self) -> Outcome:
        """End the run, and return what this party has of it."""
