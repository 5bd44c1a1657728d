"""Histograms between two parties alone: numbers travel encrypted, and their owner of columns adds them up.

The label holder A has g and h of every row, the owner P bins. Level by level, for every node that is summed:

    A -> P:  a public key, made for this level alone, and g and h of the node's rows, encrypted together
    P -> A:  which bins are joined; their sums with noise (`trees.told`), out of a fresh encryption of zero,
             the products and a flood (`secure.lattice.histograms`); the sum of every column's noise
    A opens them: what is told in clear text, bit for bit.

The first joined bin of every column is not summed: A knows what the node has in all, so its sum follows
from the others, and with the noise of all bins so does what P would tell of it. A column of yes and no is one
sum of few rows then, as if it were bundled with columns that exclude it. Nodes of which nothing would be
summed are not encrypted.

P learns nothing of g and h, as long as ring learning with errors is hard. A learns what is told, and from
the noise of what it opens nothing more but by a chance that `SumParameters.told` bounds. Both see which rows
share a node, as in every run of trees. Nobody else is there who could help either to learn more.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from colonnade.arrays import Numbers, Rows, Words
from colonnade.conversations.boost.wire import ends_told, from_few_bytes, in_few_bytes, tag_for
from colonnade.conversations.peer_line import PeerLine
from colonnade.errors import JobError, MalformedMessage
from colonnade.job import Trees
from colonnade.job.plan import Plan
from colonnade.messages import Gradients, Joined, Topic
from colonnade.net.endpoint import Endpoint
from colonnade.secure.lattice.ciphertexts import Ciphertexts, SecretKey
from colonnade.secure.lattice.histograms import (
    SumAnswer,
    chunks_of,
    decrypted_sums,
    encrypted_rows,
    rows_together,
    sums_over_bins,
)
from colonnade.secure.lattice.parameters import MOST_SUM_BITS, SumParameters, sum_ring
from colonnade.trees.bins import BinGrid, Counts, Flags
from colonnade.trees.estimate import Told
from colonnade.trees.frontier import Frontier, HistogramRows
from colonnade.trees.gradients import joined, most_of, parted
from colonnade.trees.grow import Level
from colonnade.trees.own_columns import OwnColumns
from colonnade.trees.told import by_column, first_told, told_in, with_first, without

NOTHING = np.zeros(0, dtype=np.uint8)
WORK = 30.0  # numbers of a column that a row's part of a product takes the time of


def seals(plan: Plan[Any]) -> bool:
    """Return whether histograms are encrypted: labels are blind, and two parties are alone."""
    return plan.blind is not None and len(plan.parties) == 2


def sum_bits(rows: int, rules: Trees) -> int:
    """Return how many bits a sum of this many rows has, with its sign and its noise."""
    most = most_of(rules.bits)
    noise = 2 * (rules.noise * most) ** 2 + 32  # half of all coins, the number of which is rounded
    return int(rows * most + noise).bit_length() + 1


def check(rules: Trees, rows: int) -> None:
    """Refuse trees whose sums two parties cannot make under encryption."""
    if not rules.bits:
        raise JobError(
            "trees.bits = 0: exact histograms do not fit what two parties encrypt; drop the key, add a "
            "neutral party as secure.helper, or set secure.labels = 'clear'"
        )
    if sum_bits(rows, rules) > MOST_SUM_BITS:
        most = 2 ** (MOST_SUM_BITS - 1) // most_of(rules.bits)
        raise JobError(
            f"secure.labels = 'blind': {rows:,} training rows are too many for histograms that two parties "
            f"encrypt, which have room for about {most:,} with trees.bits = {rules.bits}; take fewer bits, "
            "add a neutral party as secure.helper, or set secure.labels = 'clear'"
        )


@dataclass(frozen=True)
class SealedSums:
    """What both ends know of the sums of a level, so that neither tells the other."""

    ring: SumParameters
    half: int  # bits of each of two sums
    apart: tuple[int, ...]  # of every slot: how many rows share a ciphertext

    @staticmethod
    def of(rules: Trees, summed: Counts, grid: BinGrid) -> SealedSums:
        rows = int(summed.max(initial=0))
        half = sum_bits(rows, rules)
        ring = sum_ring(half, rows * grid.columns)
        apart = [rows_together(ring, count, _summed_at_most(count, grid, rules)) for count in summed.tolist()]
        return SealedSums(ring, half, tuple(apart))

    def packed(self, words: Words) -> Words:
        """Return words of g and h as one number modulo t."""
        g, h = parted(words, signed=True)
        found: Words = ((g << self.half) + h).view(np.uint64) & np.uint64(self.ring.plain - 1)
        return found

    def unpacked(self, numbers: Words) -> Words:
        """Return the words that `packed` made this of."""
        h = _signed(numbers, self.half)
        return joined(_signed((numbers - h.view(np.uint64)) >> np.uint64(self.half), self.half), h)


def _summed_at_most(rows: int, grid: BinGrid, rules: Trees) -> int:
    """Return how many bins are summed of a node of this many rows, at the most."""
    if rows < rules.node_rows:
        return 0
    return int(np.minimum(grid.width, max(1, rows // max(rules.bin_rows, 1))).sum()) - grid.columns


def _signed(words: Words, bits: int) -> Counts:
    """Return the lowest bits of words as numbers from minus half of what fits on."""
    shift = np.uint64(64 - bits)
    return (words << shift).view(np.int64) >> np.int64(shift)


@dataclass
class SealedTeller:
    """P: adds up what it cannot read."""

    line: PeerLine
    own: OwnColumns

    @staticmethod
    def at(net: Endpoint, root: str, own: OwnColumns) -> SealedTeller:
        return SealedTeller(PeerLine(net, root), own)

    async def begin(self, tree: int, message: Gradients, sampled: Flags) -> None:
        """Refuse numbers in clear: they come with every level."""
        if message.words.size:
            raise MalformedMessage("gradients that are not encrypted, in a run whose labels are blind")

    async def histograms(self, tree: int, depth: int, frontier: Frontier, sent: int) -> Joined:
        """Hear the numbers of a level, answer with their sums, and return which bins they are of."""
        own, asked = self.own, frontier.asked
        grid, rules = own.chosen.grid, own.sampling.rules
        ends, most, place = own.joined_bins(own.counts(frontier))
        summed = without(ends, first_told(place, grid))
        sums = SealedSums.of(rules, asked.counts, grid)
        self.line.let_open(int(summed.sum()), Topic.TRAIN)
        noise = np.zeros(ends.shape, dtype=np.uint64)
        noise[ends] = own.noise(tree, depth, int(ends.sum()))
        public = await self.line.opened(partial(Ciphertexts.read, sums.ring, 1, 1))
        begin = 0
        for slot, (rows, apart) in enumerate(zip(asked.counts.tolist(), sums.apart, strict=True)):
            here = asked.rows[begin : begin + rows]
            begin += rows
            if rows < rules.node_rows:
                continue
            heard = await self.line.opened(partial(Ciphertexts.read, sums.ring, 1, chunks_of(rows, apart)))
            if summed[slot].any():
                bins = _summed_bins(own, here, summed[slot], place[slot])
                added = sums.packed(noise[slot, summed[slot]])
                await self.line.seal(sums_over_bins(public, heard, bins, added, apart))
        of_columns = in_few_bytes(by_column(noise, grid).ravel())
        return Joined(tag_for(tree, depth), of_columns, np.packbits([ends, most]), NOTHING, sent)

    def divided(self, level: Level, rows: Rows, left: Flags, frontier: Frontier) -> None:
        """Do nothing: nothing is kept."""


def _summed_bins(own: OwnColumns, rows: Rows, summed: Flags, place: Counts) -> Counts:
    """Return for every column and row in which of the bins of a slot that are summed it is, -1 for none;
    [columns, rows]."""
    number = np.where(summed, np.cumsum(summed) - 1, -1)[place]
    start = own.chosen.grid.start
    codes = own.chosen.codes
    found = np.empty((len(codes), len(rows)), dtype=np.int64)
    for column, first in enumerate(start.tolist()):
        found[column] = number[first + codes[column].take(rows).astype(np.int64)]
    return found


@dataclass
class SealedReader:
    """A: encrypts the numbers of a level, and opens their sums."""

    line: PeerLine
    rules: Trees
    _words: Words = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))  # of all rows
    _key: SecretKey | None = None

    @staticmethod
    def at(net: Endpoint, owner: str, rules: Trees) -> SealedReader:
        return SealedReader(PeerLine(net, owner), rules)

    def gradients(self, words: Words) -> Numbers:
        """Keep the words of all rows for a tree; the owner is sent nothing before its first level."""
        self._words = words
        return NOTHING

    async def ask(self, frontier: Frontier, grid: BinGrid) -> None:
        """Send the numbers of a level under a key of its own."""
        asked = frontier.asked
        sums = SealedSums.of(self.rules, asked.counts, grid)
        self._key = SecretKey(sums.ring)
        await self.line.seal(self._key.public())
        for words, apart in zip(self._of_slots(asked), sums.apart, strict=True):
            if len(words) >= self.rules.node_rows:
                await self.line.seal(encrypted_rows(self._key, sums.ring, sums.packed(words), apart))

    async def told(self, message: Joined, frontier: Frontier, grid: BinGrid) -> Told:
        """Return the joined bins that the owner tells."""
        if self._key is None or message.spots.size:
            raise MalformedMessage("sums that are not encrypted, in a run whose labels are blind")
        asked = frontier.asked
        sums = SealedSums.of(self.rules, asked.counts, grid)
        ends, most = ends_told(message, asked.slots, grid)
        noise = from_few_bytes(message.sums, asked.slots * grid.columns).reshape(asked.slots, -1)
        first = first_told(told_in(ends, grid), grid)
        summed = without(ends, first)
        if summed[asked.counts < self.rules.node_rows].any():
            raise MalformedMessage(f"bins of a node of fewer than {self.rules.node_rows} rows")
        found = np.zeros(ends.shape, dtype=np.uint64)
        np.put_along_axis(found, first, noise, axis=1)
        for slot, (here, apart) in enumerate(zip(summed, sums.apart, strict=True)):
            if here.any():
                answer = await self.line.opened(partial(SumAnswer.read, sums.ring, int(here.sum()), apart))
                found[slot, here] = sums.unpacked(decrypted_sums(self._key, answer, apart))
        self._key = None
        whole = np.array([words.sum() for words in self._of_slots(asked)], dtype=np.uint64)
        return Told(with_first(found, first, whole, grid), ends, most)

    def _of_slots(self, asked: HistogramRows) -> list[Words]:
        """Return the words of the rows of every slot."""
        return np.split(self._words[asked.rows], np.cumsum(asked.counts)[:-1])
