"""Gradients in clear: every owner is sent g and h of every row, and what it answers is read as it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from colonnade.arrays import Numbers, Rows, Words
from colonnade.conversations.boost.wire import told_of, words_of
from colonnade.errors import MalformedMessage
from colonnade.messages import Gradients, Histograms, Joined
from colonnade.trees.bins import BinGrid, Counts, Flags
from colonnade.trees.estimate import Told
from colonnade.trees.frontier import Frontier
from colonnade.trees.gradients import packed
from colonnade.trees.grow import Level
from colonnade.trees.own_columns import OwnColumns

NOTHING = np.zeros(0, dtype=np.uint8)


class HistogramReader(Protocol):
    """The label holder's end of what passes between it and one owner."""

    @property
    def spots(self) -> int:
        """How many numbers the owner's next answer has beside sums."""
        ...

    def gradients(self, tree: int, words: Words, bins: Counts) -> Numbers:
        """Return what the owner is sent for a tree, from the words of its rows; `bins` are those of its
        columns."""
        ...

    def sums(self, message: Histograms) -> Words:
        """Return the sums that the owner's answer stands for."""
        ...

    def told(self, message: Joined, slots: int, grid: BinGrid) -> Told:
        """Return the joined bins that the owner's answer stands for; `grid` are the bins of its columns."""
        ...

    def divided(self, level: Level, frontier: Frontier) -> None:
        """Hear how a level was divided, before the next answer is read."""
        ...


class Teller(Protocol):
    """An owner's end of it."""

    async def begin(self, tree: int, message: Gradients, sampled: Flags) -> None:
        """Hear what a tree learns from."""
        ...

    def sums(self, frontier: Frontier) -> Words:
        """Return the histograms that the frontier asks for, [slots, bins]."""
        ...

    def counts(self, frontier: Frontier) -> Counts:
        """Return how many rows the sums are of, [slots, bins]."""
        ...

    def spots(self) -> Numbers:
        """Return what the label holder must know beside the sums of this level."""
        ...

    def divided(self, level: Level, rows: Rows, left: Flags, frontier: Frontier) -> None:
        """Hear how a level was divided: the rows of the nodes that were open, and which of them went left."""
        ...


@dataclass(frozen=True)
class ClearReader:
    """Sends words in four bytes each, few bits in two."""

    bits: int
    spots = 0

    def gradients(self, tree: int, words: Words, bins: Counts) -> Numbers:
        return packed(words, few=bool(self.bits))

    def sums(self, message: Histograms) -> Words:
        return message.sums

    def told(self, message: Joined, slots: int, grid: BinGrid) -> Told:
        return told_of(message, slots, grid)

    def divided(self, level: Level, frontier: Frontier) -> None:
        """Do nothing: nothing is kept."""


@dataclass(frozen=True)
class NoReader:
    """For a party without a dealer in a blind run: it has no columns, and gets nothing if it claims some."""

    party: str
    spots = 0

    def gradients(self, tree: int, words: Words, bins: Counts) -> Numbers:
        raise MalformedMessage(f"{self.party} says that it has columns, and nobody deals words for it")

    def sums(self, message: Histograms) -> Words:
        raise MalformedMessage(f"{self.party} sent histograms, and nobody deals words for it")

    def told(self, message: Joined, slots: int, grid: BinGrid) -> Told:
        raise MalformedMessage(f"{self.party} sent histograms, and nobody deals words for it")

    def divided(self, level: Level, frontier: Frontier) -> None:
        """Do nothing: nothing is kept."""


@dataclass
class ClearTeller:
    """Reads them."""

    own: OwnColumns
    words: Words = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))

    async def begin(self, tree: int, message: Gradients, sampled: Flags) -> None:
        self.words = words_of(message, sampled, self.own.sampling.rules.bits)

    def sums(self, frontier: Frontier) -> Words:
        return self.own.sums(self.words, frontier)

    def counts(self, frontier: Frontier) -> Counts:
        return self.own.counts(frontier)

    def spots(self) -> Numbers:
        return NOTHING

    def divided(self, level: Level, rows: Rows, left: Flags, frontier: Frontier) -> None:
        """Do nothing: nothing is kept."""
