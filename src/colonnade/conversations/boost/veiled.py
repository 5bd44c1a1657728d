"""Histograms of numbers that their owner of columns never sees, through columns that are veiled once.

With X a number for every row and bin but the first of a column, 1 where the row is in the bin, the
histogram of a node is X't over its rows, for t = g and t = h. Once a run, P sends A the veiled bins
E = X - M, where P and the dealer T know M. For every tree there are words a, for A and T, and for every level
words r, for P and T:

    A -> P, a tree:   t - a
    T -> A, a level:  M'a + r, for every node that is asked for
    P -> A, a level:  X'(t - a) - r, of joined bins and with noise (`trees.told`); in the place of a column's
                      first joined bin, the sum of the column's noise
    A adds E'a, of the same bins: what is told in clear text, bit for bit

The first bin of a column is always in its first joined bin. A knows what the node has in all, so the sum of
that follows from the others, and with the noise of all of them so does what P would tell of it. So a column
of yes and no is one number a row, as if it were bundled with columns that exclude it.

P and T learn nothing of t. A learns what is told and nothing else: not how many rows a bin has, which it does
where rows are put in order (`blind`). T hears which rows share a node, as owners do.

All is modulo 2^24 or, of many rows, 2^32: as many bits as sums of few bits need. What is sent once is large,
so this is for columns of few bins and runs of many trees (`pays`).

What breaks it: P and T together read g and h, A and T together the bins of P's columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from colonnade.arrays import Numbers, Words
from colonnade.conversations.boost.long_messages import complete, send_long
from colonnade.conversations.boost.wire import ends_told, tag_for
from colonnade.errors import MalformedMessage
from colonnade.job import Trees
from colonnade.messages import DealtSums, Gradients, Histograms, Joined, Topic, VeiledBins, tag_of
from colonnade.net.expect import PACKED, octets
from colonnade.net.network import Network
from colonnade.secure.streams import PairStreams, Roles
from colonnade.secure.words import sums_of
from colonnade.trees.bins import BinGrid, Codes, Counts, Flags
from colonnade.trees.estimate import Told
from colonnade.trees.frontier import Frontier, HistogramRows
from colonnade.trees.gradients import joined, most_of, parted
from colonnade.trees.grow import Level
from colonnade.trees.mapped_arrays import empty_array
from colonnade.trees.own_columns import OwnColumns
from colonnade.trees.told import added_up, by_column, first_told, told_in, with_first

VEIL = "veil of bins"  # M: for P and T
GRADIENTS = "veiled gradients"  # a: for A and T
SUMS = "veiled sums"  # r: for P and T
MOST = 2**30  # bytes of one owner's veiled bins at A, and of M at T
PIECE = 2**20  # words that are veiled, and sent, at once
NARROW = 3  # bytes of a word, if sums are small enough

Narrow = NDArray[np.uint32]


def veiled_of(grid: BinGrid) -> int:
    """Return how many bins are veiled: all but the first of every column."""
    return grid.total - grid.columns


def ring_bytes(rows: int, rules: Trees) -> int:
    """Return how many bytes a word has: sums of all rows, with noise, have half of the ring."""
    most = (rows + 16 * rules.noise) * most_of(rules.bits)
    return NARROW if most < 2 ** (8 * NARROW - 1) else 4


def pays(rules: Trees, rows: int, trees: int, grid: BinGrid) -> bool:
    """Return whether veiled bins send fewer bytes in all than an order of the rows for every tree and column.

    Both ends compute it, from what both know.
    """
    bins = veiled_of(grid)
    if not rules.bits or not bins or 4 * rows * bins > MOST:
        return False
    size = ring_bytes(rows, rules)
    slots = min(2 ** (rules.max_depth - 1), rows // max(rules.node_rows, 1) + 1)
    sums = slots * (3 * bins + 2 * grid.columns)
    veiled = size * (rows * bins + trees * (sums + 2 * rows))
    return bool(veiled < trees * rows * (8 + grid.columns * (11 + rules.max_depth / 8)))


def packed_words(words: Numbers, size: int) -> Numbers:
    """Return words as this many bytes each."""
    narrow = np.ascontiguousarray(words, dtype=np.uint32)
    return narrow.view(np.uint8).reshape(-1, 4)[:, :size].ravel()


def unpacked_words(packed: Numbers, size: int) -> Narrow:
    """Return the words that `packed_words` made this of."""
    wide = np.zeros((len(packed) // size, 4), dtype=np.uint8)
    wide[:, :size] = packed.reshape(-1, size)
    return wide.view(np.uint32).ravel()


def _narrow(words: Words, count: int) -> Narrow:
    """Return the first words of 32 bits in random ones of 64."""
    return words.view(np.uint32)[:count]


def _pieces(rows: int, width: int) -> Iterator[tuple[int, slice]]:
    """Yield the number and the rows of every piece of a table."""
    step = max(1, PIECE // max(width, 1))
    for number, start in enumerate(range(0, rows, step)):
        yield number, slice(start, min(start + step, rows))


@dataclass(frozen=True)
class VeilStreams:
    """The words of one owner's veiled bins, at those who can make them."""

    roles: Roles
    streams: PairStreams

    def veil(self, number: int, shape: tuple[int, int]) -> Narrow:
        """Return M of a piece of the rows, at P or T."""
        peer = self._other(self.roles.owner, self.roles.dealer)
        count = shape[0] * shape[1]
        stream = self.streams.shared(peer, VEIL, self.roles)
        return _narrow(stream.words(tag_of(Topic.TRAIN, number), -(-count // 2)), count).reshape(shape)

    def gradients(self, tree: int, rows: int) -> Narrow:
        """Return a of g and of h, [2, rows], at A or T."""
        peer = self._other(self.roles.asker, self.roles.dealer)
        stream = self.streams.shared(peer, GRADIENTS, self.roles)
        return _narrow(stream.once(tag_for(tree), rows), 2 * rows).reshape(2, rows)

    def sums(self, tree: int, depth: int, shape: tuple[int, int]) -> Narrow:
        """Return r of a level, [2, slots, bins], at P or T."""
        peer = self._other(self.roles.owner, self.roles.dealer)
        count = shape[0] * shape[1]
        stream = self.streams.shared(peer, SUMS, self.roles)
        return _narrow(stream.once(tag_for(tree, depth), count), 2 * count).reshape(2, *shape)

    def _other(self, one: str, another: str) -> str:
        return another if self.streams.me == one else one


def _among_all(sums: Narrow, grid: BinGrid) -> Narrow:
    """Return sums of veiled bins in their places among all bins, and 0 for the first of every column."""
    found = np.zeros((*sums.shape[:-1], grid.total), dtype=np.uint32)
    found[..., np.delete(np.arange(grid.total), grid.start)] = sums
    return found


def products(table: Narrow, asked: HistogramRows, words: Narrow) -> Narrow:
    """Return the sums of a table's rows, each times its word, [2, slots, bins]; words are [2, rows]."""
    found = np.empty((2, asked.slots, table.shape[1]), dtype=np.uint32)
    end = 0
    for slot, count in enumerate(asked.counts.tolist()):
        rows = asked.rows[end : end + count]
        end += count
        weights = np.ascontiguousarray(words[:, rows].astype(np.uint64))
        found[:, slot] = sums_of(table.view(np.int32), rows, weights)
    return found


@dataclass
class VeilDealer:
    """T: makes M, and what A lacks of the sums of every level."""

    words: VeilStreams
    bins: int
    size: int
    _veil: Narrow | None = None
    _gradients: Narrow = field(default_factory=lambda: np.zeros((2, 0), dtype=np.uint32))

    def begin(self, tree: int, sampled: Flags) -> None:
        if self._veil is None:
            self._veil = empty_array((len(sampled), self.bins), np.uint32)
            for number, rows in _pieces(len(sampled), self.bins):
                self._veil[rows] = self.words.veil(number, (rows.stop - rows.start, self.bins))
        self._gradients = np.zeros((2, len(sampled)), dtype=np.uint32)
        self._gradients[:, sampled] = self.words.gradients(tree, int(sampled.sum()))

    async def deal(self, net: Network, tree: int, depth: int, frontier: Frontier) -> None:
        """Send A its part of the sums of a level."""
        if self._veil is None:
            raise RuntimeError("a tree begins before its levels are dealt")
        asked = frontier.asked
        sums = products(self._veil, asked, self._gradients)
        sums += self.words.sums(tree, depth, (asked.slots, self.bins))
        told = DealtSums(tag_for(tree, depth), packed_words(sums, self.size))
        await send_long(net, self.words.roles.asker, told)


@dataclass
class VeiledTeller:
    """P: veils its bins once, and sums words that say nothing to it."""

    net: Network
    words: VeilStreams
    own: OwnColumns
    size: int
    tree: int = 0
    _gradients: Narrow = field(default_factory=lambda: np.zeros((2, 0), dtype=np.uint32))

    async def introduce(self) -> None:
        """Send A the veiled bins, piece by piece."""
        codes, grid = self.own.all.codes, self.own.grid
        bins = veiled_of(grid)
        for number, rows in _pieces(codes.shape[1], bins):
            veiled = -self.words.veil(number, (rows.stop - rows.start, bins))
            veiled = _with_ones(veiled, codes[:, rows], grid)
            packed = packed_words(veiled, self.size)
            await self.net.send(self.words.roles.asker, VeiledBins(tag_of(Topic.TRAIN, number), packed))

    def due(self, rows: int) -> int:
        return 2 * rows * self.size

    async def begin(self, tree: int, message: Gradients, sampled: Flags) -> None:
        rows = int(sampled.sum())
        if message.words.dtype != np.uint8 or message.words.shape != (self.due(rows),):
            raise MalformedMessage(f"veiled gradients of shape {message.words.shape} for {rows} rows")
        self.tree = tree
        self._gradients = np.zeros((2, len(sampled)), dtype=np.uint32)
        self._gradients[:, sampled] = unpacked_words(message.words, self.size).reshape(2, rows)

    def histograms(self, tree: int, depth: int, frontier: Frontier, sent: int) -> Histograms | Joined:
        """Return what is told of the histograms of a level."""
        own, grid = self.own, self.own.chosen.grid
        ends, most, place = own.joined_bins(own.counts(frontier))
        first = first_told(place, grid)
        hide = self.words.sums(tree, depth, (len(ends), veiled_of(own.grid)))
        hide = _among_all(hide, own.grid)[:, :, own.chosen_bins]
        noise = parted(own.noise(tree, depth, int(ends.sum())), signed=True)
        sums = np.empty((2, int(ends.sum())), dtype=np.uint32)
        for part in range(2):
            added = np.zeros(ends.shape, dtype=np.uint64)
            added[ends] = noise[part].view(np.uint64)
            exact = own.sums(self._gradients[part].astype(np.uint64), frontier) - hide[part]
            told = added_up(exact, place) + added
            np.put_along_axis(told, first, by_column(added, grid), axis=1)
            sums[part] = told[ends].astype(np.uint32)
        nothing = np.zeros(0, dtype=np.uint8)
        bits = np.packbits([ends, most])
        return Joined(tag_for(tree, depth), packed_words(sums, self.size), bits, nothing, sent)

    def divided(self, level: Level, rows: Numbers, left: Flags, frontier: Frontier) -> None:
        """Do nothing: nothing is kept."""


def _with_ones(veiled: Narrow, codes: Codes, grid: BinGrid) -> Narrow:
    """Return words with 1 added in every row's bin of every column, but for rows in the first."""
    starts = grid.start - np.arange(grid.columns)  # of the columns' second bins
    for code, start in zip(codes, starts.tolist(), strict=True):
        rows = np.flatnonzero(code)
        veiled[rows, start - 1 + code[rows].astype(np.int64)] += np.uint32(1)
    return veiled


@dataclass
class VeiledReader:
    """A: has the veiled bins, hides g and h, and puts the sums of a level together."""

    net: Network
    words: VeilStreams
    rows: int
    size: int
    grid: BinGrid
    spots = 0
    _veiled: Narrow = field(default_factory=lambda: np.zeros((0, 0), dtype=np.uint32))
    _gradients: Narrow = field(default_factory=lambda: np.zeros((2, 0), dtype=np.uint32))
    _words: Words = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))
    _chosen: Counts = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    async def introduce(self) -> None:
        """Hear the veiled bins."""
        bins = veiled_of(self.grid)
        self._veiled = empty_array((self.rows, bins), np.uint32)
        for number, rows in _pieces(self.rows, bins):
            due = octets((rows.stop - rows.start) * bins * self.size)
            tag = tag_of(Topic.TRAIN, number)
            heard = await self.net.recv(VeiledBins, self.words.roles.owner, tag, words=due)
            self._veiled[rows] = unpacked_words(heard.words, self.size).reshape(-1, bins)

    def gradients(self, tree: int, words: Words, sampled: Flags, columns: Counts) -> Numbers:
        """Return what the owner is sent for a tree, from the words of its rows."""
        hide = self.words.gradients(tree, len(words))
        self._gradients = np.zeros((2, len(sampled)), dtype=np.uint32)
        self._gradients[:, sampled] = hide
        self._words = np.zeros(len(sampled), dtype=np.uint64)
        self._words[sampled] = words
        self._chosen = np.flatnonzero(np.isin(self.grid.column, columns))
        g, h = (part.astype(np.uint32) for part in parted(words))
        return packed_words(np.stack([g, h]) - hide, self.size)

    async def told(self, message: Joined, frontier: Frontier, grid: BinGrid) -> Told:
        """Return the joined bins that the owner tells, with the dealer's part of them."""
        asked, dealer = frontier.asked, self.words.roles.dealer
        count = 2 * asked.slots * veiled_of(self.grid) * self.size
        dealt = await self.net.recv(DealtSums, dealer, message.tag, sums=PACKED)
        dealt = await complete(self.net, dealer, dealt, count)
        if dealt.sums.dtype != np.uint8 or dealt.sums.shape != (count,):
            raise MalformedMessage(f"{dealer} dealt {dealt.sums.shape} bytes of sums for {count}")
        own = products(self._veiled, asked, self._gradients)
        own += unpacked_words(dealt.sums, self.size).reshape(own.shape)
        ends, most = ends_told(message, asked.slots, grid)
        due = 2 * int(ends.sum()) * self.size
        if message.sums.dtype != np.uint8 or message.sums.shape != (due,):
            raise MalformedMessage(f"{message.sums.shape} bytes of sums of {int(ends.sum())} joined bins")
        heard, place = unpacked_words(message.sums, self.size).reshape(2, -1), told_in(ends, grid)
        own, first = _among_all(own, self.grid)[:, :, self._chosen], first_told(place, grid)
        parts = []
        for part, whole in enumerate(_wholes(self._words, asked)):
            sums = added_up(own[part].astype(np.uint64), place)
            np.put_along_axis(sums, first, np.uint64(0), axis=1)
            sums[ends] += heard[part]
            parts.append(_signed(with_first(sums, first, whole, grid)[ends], self.size))
        found = np.zeros(ends.shape, dtype=np.uint64)
        found[ends] = joined(*parts)
        return Told(found, ends, most)

    def divided(self, level: Level, frontier: Frontier) -> None:
        """Do nothing: nothing is kept."""


def _wholes(words: Words, asked: HistogramRows) -> Words:
    """Return what every slot has in all, [2, slots]: of g and of h."""
    slot = np.repeat(np.arange(asked.slots), asked.counts)
    found = np.zeros((2, asked.slots), dtype=np.uint64)
    for part, numbers in enumerate(parted(words[asked.rows])):
        np.add.at(found[part], slot, numbers.view(np.uint64))
    return found


def _signed(words: Words, size: int) -> Counts:
    """Return words of a small ring as numbers from minus half of it on."""
    shift = 64 - 8 * size
    return (words << np.uint64(shift)).view(np.int64) >> shift
