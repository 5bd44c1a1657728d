"""Histograms of numbers that their owner of columns never sees: a third party deals words that hide them.

For one tree and one owner P of columns, the label holder A has a word x for every row. From streams of words
(`secure.streams`) A and the dealer T know r, a word for every row, and s_j, a word for every row and column;
P and T know rho_j, an order of the rows for every column.

    A -> P:  x + r
    T -> P:  rho_j(r) - s_j           so P has rho_j(x) + s_j, and nothing of x
    P -> A:  the bin of every row in the order rho_j, and level by level which of them go left, in that order;
             the sums of rho_j(x) + s_j for every slot and bin
    A takes the sums of s_j off: the exact histogram, as it would be in clear text.

P and T learn nothing of x, that is of g and h. A learns histograms, and how many rows there are in every bin
of every node; the order rho_j keeps it from knowing which. It is new for every tree and column, and so are r
and s_j: with an old order A would know a row by its ways through several trees.

What breaks it: P and T together read x, A and T together read the bins of P's columns.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from colonnade.arrays import Numbers, Rows, Words
from colonnade.errors import MalformedMessage
from colonnade.messages import Gradients, Histograms, Shuffled, Topic, tag_of
from colonnade.net.expect import words as words_due
from colonnade.net.network import Network
from colonnade.secure.streams import PairStreams, Roles
from colonnade.trees.bins import Counts, Flags
from colonnade.trees.frontier import Frontier
from colonnade.trees.grow import Level
from colonnade.trees.histogram import add_up
from colonnade.trees.own import OwnColumns

GRADIENTS = "gradients"  # r, which hides a row's word: for A and T
BINS = "bins"  # s_j, which hides it in a column's order: for A and T
ORDER = "order"  # rho_j: for P and T
MANY = 2**20  # rows beyond which the bits of an index leave too few for chance


def order_of(words: Words) -> Rows:
    """An order of as many rows as there are random words: that of the words themselves.

    Sorting words whose low bits are the rows' numbers is twice as fast as to sort with numbers beside. At
    least 44 bits are left to chance, so that one run in dozens has two rows of a column that are equal.
    """
    n = len(words)
    if n > MANY:
        return np.argsort(words, kind="stable")
    low = np.uint64((1 << max(n - 1, 0).bit_length()) - 1)
    keys = np.sort((words & ~low) | np.arange(n, dtype=np.uint64))
    return (keys & low).astype(np.int64)


def tag_for_column(tree: int, column: int) -> int:
    """The tag of a column's words in a tree."""
    return tag_of(Topic.TRAIN, tree << 16 | column)


@dataclass(frozen=True)
class Dealer:
    """T: deals words to one owner, of whose columns it knows the number alone."""

    roles: Roles
    streams: PairStreams

    async def deal(self, net: Network, tree: int, columns: int, rows: int) -> None:
        """Send the owner, for each of its columns in a tree, what lets it undo r in its order."""
        asker, owner, _ = self.roles
        r = self.streams.shared(asker, GRADIENTS, self.roles).once(tag_for_column(tree, 0), rows)
        hide = self.streams.shared(asker, BINS, self.roles)
        order = self.streams.shared(owner, ORDER, self.roles)
        for column in range(columns):
            tag = tag_for_column(tree, column)
            shuffled = r.take(order_of(order.once(tag, rows)))
            shuffled -= hide.once(tag, rows)
            await net.send(owner, Shuffled(tag, shuffled))


@dataclass
class BlindTeller:
    """P: sums words that say nothing to it."""

    net: Network
    roles: Roles
    streams: PairStreams
    own: OwnColumns
    _orders: list[Rows] = field(default_factory=list)  # of every column, as rows of the table
    _spots: Numbers = field(default_factory=lambda: np.zeros(0, dtype=np.uint8))

    async def words(self, tree: int, message: Gradients, sampled: Flags) -> Words:
        rows, dealer = np.flatnonzero(sampled), self.roles.dealer
        if message.words.dtype != np.uint64 or message.words.shape != rows.shape:
            raise MalformedMessage(f"gradients of shape {message.words.shape} for {len(rows)} rows")
        order = self.streams.shared(dealer, ORDER, self.roles)
        codes = self.own.chosen.codes
        found = np.empty((len(codes), len(sampled)), dtype=np.uint64)
        spots = np.empty((len(codes), len(rows)), dtype=np.uint8)
        words, dealt = np.zeros((2, len(sampled)), dtype=np.uint64)
        words[rows], self._orders = message.words, []
        for column in range(len(codes)):
            tag = tag_for_column(tree, column)
            heard = (await self.net.recv(Shuffled, dealer, tag, words=words_due(*rows.shape))).words
            mixed = order_of(order.words(tag, len(rows)))
            self._orders.append(rows.take(mixed))
            # back in the order of rows, where sums are made as ever
            dealt[self._orders[-1]] = heard
            np.subtract(words, dealt, out=found[column])
            spots[column] = codes[column].take(self._orders[-1])
        self._spots = spots.ravel()
        return found

    def spots(self) -> Numbers:
        return self._spots

    def divided(self, frontier: Frontier, left: Flags) -> None:
        side = np.zeros(len(frontier.sampled), dtype=np.uint8)
        side[frontier.rows] = left
        bits = [np.packbits(side.take(order)) for order in self._orders]
        self._spots = np.concatenate([side[:0], *bits])


@dataclass
class BlindReader:
    """A: hides words from one owner, and takes what hides them off its sums."""

    roles: Roles
    streams: PairStreams
    rows: int = 0
    bins: Counts = field(init=False)  # of every column
    hide: list[Words] = field(default_factory=list)  # s_j of every column
    codes: list[Numbers] = field(default_factory=list)  # in every column's order: the bin of a row
    place: list[Numbers] = field(default_factory=list)  # and its node, by a number of this class alone
    open: Counts = field(init=False)  # the open node of the tree that a number stands for; too large: none
    moves: Numbers | None = None  # (number, side) -> number on the next level
    slots: int = 1

    def gradients(self, tree: int, words: Words, bins: Counts) -> Numbers:
        dealer, self.rows, self.bins = self.roles.dealer, len(words), bins
        hide = self.streams.shared(dealer, BINS, self.roles)
        self.hide = [hide.words(tag_for_column(tree, column), self.rows) for column in range(len(bins))]
        self.place = [np.zeros(self.rows, dtype=np.uint8)] * len(bins)
        self.open, self.moves, self.slots = np.zeros(1, dtype=np.int64), None, 1
        r = self.streams.shared(dealer, GRADIENTS, self.roles).once(tag_for_column(tree, 0), self.rows)
        return words + r

    def sums(self, message: Histograms) -> Words:
        total, starts = int(self.bins.sum()), (np.cumsum(self.bins) - self.bins).astype(np.int32)
        found = np.zeros(self.slots * total, dtype=np.uint64)
        if self.moves is None:
            self.codes = self._codes(message.spots)
            for codes, hide, start in zip(self.codes, self.hide, starts, strict=True):
                add_up(found, codes + start, hide)
        else:
            # a number below that of slots is the slot itself
            offset = (np.arange(self.slots) * total).astype(np.int32)
            for column, bits in enumerate(self._bits(message.spots)):
                place = self.place[column]
                side = np.unpackbits(bits, count=self.rows)
                place = self.place[column] = looked_up(self.moves, place + place + side)
                summed = np.flatnonzero(place < self.slots)
                where = self.codes[column].take(summed) + (offset + starts[column]).take(place.take(summed))
                add_up(found, where, self.hide[column].take(summed))
        sums: Words = message.sums - found.reshape(self.slots, total)
        return sums

    def divided(self, level: Level, nodes: int, frontier: Frontier) -> None:
        pairs = frontier.pairs
        if pairs is None:
            raise RuntimeError("a frontier that was divided has pairs")
        self.slots = len(pairs.parent)
        # children have numbers of their own here: first those that are summed, so that one look-up will do
        ranks = np.flatnonzero(np.isin(np.flatnonzero(level.split), pairs.parent))
        left, right = ranks, ranks + int(level.split.sum())
        summed, others = np.where(pairs.left, left, right), np.where(pairs.left, right, left)
        order = np.concatenate([summed, others[level.stays[others]]])
        number = np.full(len(level.stays), len(order))
        number[order] = np.arange(len(order))
        after = np.full((nodes + 1, 2), len(order))
        after[np.flatnonzero(level.split)] = number.reshape(2, -1).T[:, ::-1]  # a side of 1 is left
        kind = np.uint8 if 2 * max(len(self.open), len(order)) + 2 <= 256 else np.int32
        self.moves = after[np.append(self.open, nodes)].ravel().astype(kind)
        self.place = [place.astype(kind, copy=False) for place in self.place]
        places = np.where(level.stays, np.cumsum(level.stays) - 1, frontier.open)
        self.open = places[order]

    def _codes(self, spots: Numbers) -> list[Numbers]:
        """The bins of all rows in every column's order; checked."""
        if spots.dtype != np.uint8 or spots.shape != (len(self.bins) * self.rows,):
            raise MalformedMessage(f"{self.roles.owner} sent {spots.shape} bins")
        codes = list(spots.reshape(len(self.bins), -1)) if len(self.bins) else []
        most = [int(each.max(initial=0)) for each in codes]
        if (np.array(most, dtype=np.int64) >= self.bins).any():
            raise MalformedMessage(f"{self.roles.owner} sent bins that its columns do not have")
        return codes

    def _bits(self, spots: Numbers) -> Numbers:
        """The sides of all rows in every column's order, as bits; checked."""
        width = -(-self.rows // 8)
        if spots.dtype != np.uint8 or spots.shape != (len(self.bins) * width,):
            raise MalformedMessage(f"{self.roles.owner} sent {spots.shape} bytes of sides")
        return spots.reshape(len(self.bins), width)


def looked_up(table: Numbers, key: Numbers) -> Numbers:
    """The table's entry for every key; of bytes by what is made for text, several times as fast."""
    if table.dtype != np.uint8 or key.dtype != np.uint8:
        return table.take(key)
    whole = np.zeros(256, dtype=np.uint8)
    whole[: len(table)] = table
    return np.frombuffer(key.tobytes().translate(whole.tobytes()), dtype=np.uint8)
