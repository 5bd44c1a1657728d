"""Histograms of numbers that their owner of columns never sees: a third party deals words that hide them.

For one tree and one owner P of columns, the label holder A has a word x for every row. From streams of words
(`secure.streams`) A and the dealer T know r, a word for every row, and s_j, a word for every row and column;
P and T know rho_j, an order of the rows for every column.

    A -> P:  x + r
    T -> P:  rho_j(r) - s_j           so P has rho_j(x) + s_j, and nothing of x; and rho_j, of few rows
    P -> A:  the bin of every row in the order rho_j, and level by level which of them go left, in that order;
             the sums of rho_j(x) + s_j for every slot and bin
    A takes the sums of s_j off: the exact histogram, as it would be in clear text.

P and T learn nothing of x, that is of g and h. A learns histograms, and how many rows there are in every bin
of every node; the order rho_j keeps it from knowing which. It is new for every tree and column, and so are r
and s_j: with an old order A would know a row by its ways through several trees.

What breaks it: P and T together read x, A and T together read the bins of P's columns.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from colonnade.arrays import Numbers, Rows, Words
from colonnade.conversations.boost.long_messages import complete, send_long
from colonnade.conversations.boost.wire import told_of
from colonnade.errors import MalformedMessage, ProtocolError
from colonnade.messages import Gradients, Histograms, Joined, Shuffled, Topic, tag_of
from colonnade.net.expect import PACKED, expect, whole
from colonnade.net.network import Network
from colonnade.secure.streams import PairStreams, Roles
from colonnade.trees.bins import BinGrid, Counts, Flags
from colonnade.trees.estimate import Told
from colonnade.trees.frontier import Frontier, Pairs
from colonnade.trees.grow import Level
from colonnade.trees.mapped_arrays import empty_array
from colonnade.trees.own_columns import OwnColumns
from colonnade.trees.row_paths import RowPaths
from colonnade.trees.told import added_up, told_in

GRADIENTS = "gradients"  # r, which hides a row's word: for A and T
BINS = "bins"  # s_j, which hides it in a column's order: for A and T
ORDER = "order"  # rho_j: for P and T
NO_BINS = np.zeros(0, dtype=np.int64)
MANY = 2**20  # rows beyond which the bits of an index leave too few for chance
TOLD = 2**16  # rows up to which the dealer tells orders: two bytes a row cost less than to draw them twice
NOTHING = np.zeros(0, dtype=np.uint16)
_EXPONENT, _NORMAL = np.uint64(3 << 61), np.uint64(1 << 61)  # the upper bits of an exponent


def order_of(words: Words) -> Rows:
    """Return an order of as many rows as there are random words, which are used up: all orders are equally
    likely.

    Sorting words whose low bits are the rows' numbers is faster than to sort with numbers beside, and as
    floating-point numbers, all of them normal and within 2, they are sorted faster than as words. At least 42
    bits are left to chance, 47 of 30,000 rows: there, one column in 300,000 has two rows that are equal, and
    only these two are not in an order by chance.
    """
    n = len(words)
    if n > MANY:
        return np.argsort(words, kind="stable")
    low = np.uint64((1 << max(n - 1, 0).bit_length()) - 1)
    words &= ~(low | _EXPONENT)
    words |= _numbered(n)
    words.view(np.float64).sort()
    words &= low
    return words.view(np.int64)


@lru_cache(maxsize=2)
def _numbered(rows: int) -> Words:
    """Return the numbers of rows as words to be sorted."""
    return np.arange(rows, dtype=np.uint64) | _NORMAL


def told(order: Rows) -> Numbers:
    """Return an order as the dealer tells it: of few rows only."""
    return order.astype(np.uint16) if len(order) <= TOLD else NOTHING


def tag_for_column(tree: int, column: int) -> int:
    """Return the tag of a column's words in a tree."""
    return tag_of(Topic.TRAIN, tree << 16 | column)


@dataclass(frozen=True)
class HistogramDealer:
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
            drawn = order_of(order.once(tag, rows))
            shuffled = r.take(drawn)
            shuffled -= hide.once(tag, rows)
            await send_long(net, owner, Shuffled(tag, shuffled, told(drawn)))


@dataclass
class BlindTeller:
    """P: sums words that say nothing to it."""

    net: Network
    roles: Roles
    streams: PairStreams
    own: OwnColumns
    _orders: list[Numbers] = field(default_factory=list)  # of every column, as rows of the table
    _words: Words = field(default_factory=lambda: np.zeros((0, 0), dtype=np.uint64))  # rho_j(x) + s_j
    _ways: RowPaths = field(default_factory=lambda: RowPaths([], NO_BINS))
    _spots: Numbers = field(default_factory=lambda: np.zeros(0, dtype=np.uint8))

    async def begin(self, tree: int, message: Gradients, sampled: Flags) -> None:
        rows, dealer = np.flatnonzero(sampled), self.roles.dealer
        if message.words.dtype != np.uint64 or message.words.shape != rows.shape:
            raise MalformedMessage(f"gradients of shape {message.words.shape} for {len(rows)} rows")
        codes = self.own.chosen.codes
        checked = secrets.randbelow(max(len(codes), 1))
        if self._words.shape != (len(codes), len(rows)):
            self._words = empty_array((len(codes), len(rows)), np.uint64)
        self._spots = np.empty(len(codes) * len(rows), dtype=np.uint8)
        self._orders, spots = [], list(self._spots.reshape(len(codes), -1)) if len(codes) else []
        for column in range(len(codes)):
            tag = tag_for_column(tree, column)
            dealt = await self.net.recv(Shuffled, dealer, tag, words=PACKED, order=PACKED)
            heard = (await complete(self.net, dealer, dealt, len(rows))).words
            if heard.dtype != np.uint64 or heard.shape != rows.shape:
                raise ProtocolError(f"{dealer} dealt {heard.shape} words for {len(rows)} rows")
            order = self._order(dealt, len(rows), check=column == checked)
            message.words.take(order, out=self._words[column], mode="clip")  # a mode that needs no copy
            self._words[column] -= heard
            order = order if len(rows) == len(sampled) else rows.take(order)
            self._orders.append(order if len(order) <= MANY else order.astype(np.int32))
            codes[column].take(order, out=spots[column], mode="clip")
        self._ways = RowPaths(spots, self.own.chosen.grid.width)

    def _order(self, dealt: Shuffled, rows: int, *, check: bool) -> Rows:
        """Return the order of a column: drawn or, of few rows, told by the dealer.

        A dealer that tells another order than that of its stream could tell one that the label holder knows.
        So one column of every tree, chosen by chance, is drawn, too.
        """
        dealer, owner = self.roles.dealer, self.roles.owner
        stream = self.streams.shared(dealer, ORDER, self.roles)
        if rows > TOLD:
            return order_of(stream.words(dealt.tag, rows))
        expect(dealer, dealt, {"order": whole(rows, high=max(rows - 1, 0), dtype="uint16")})
        if check and not np.array_equal(dealt.order, order_of(stream.words(dealt.tag, rows))):
            raise ProtocolError(f"{dealer} told another order of rows than it shares with {owner}")
        return dealt.order.astype(np.int64)

    def sums(self, frontier: Frontier) -> Words:
        return self._ways.sums(self._words)

    def counts(self, frontier: Frontier) -> Counts:
        return self._ways.counts()

    def spots(self) -> Numbers:
        return self._spots

    def divided(self, level: Level, rows: Rows, left: Flags, frontier: Frontier) -> None:
        side = np.zeros(len(frontier.sampled), dtype=np.uint8)
        side[rows] = left.view(np.uint8)  # as numbers: of another type they are copied first
        sides = [side.take(order) for order in self._orders]
        self._spots = np.concatenate([side[:0], *(np.packbits(each) for each in sides)])
        self._ways.divide(level, pairs_of(frontier))
        self._ways.turn(sides)


@dataclass
class BlindReader:
    """A: hides words from one owner, and takes what hides them off its sums."""

    roles: Roles
    streams: PairStreams
    rows: int = 0
    bins: Counts = field(default_factory=lambda: NO_BINS)  # of every column
    tree: int = 0
    hide: list[Words] = field(default_factory=list)  # s_j of every column, if they are few rows
    ways: RowPaths | None = None  # of rows in every column's order; None before the first answer

    @property
    def spots(self) -> int:
        return len(self.bins) * (self.rows if self.ways is None else -(-self.rows // 8))

    def gradients(self, tree: int, words: Words, bins: Counts) -> Numbers:
        dealer, self.rows, self.bins, self.ways = self.roles.dealer, len(words), bins, None
        self.tree = tree
        self.hide = list(self._hide()) if self.rows <= MANY else []
        r = self.streams.shared(dealer, GRADIENTS, self.roles).once(tag_for_column(tree, 0), self.rows)
        return words + r

    def sums(self, message: Histograms) -> Words:
        sums: Words = message.sums - self._hidden(message.spots)
        return sums

    def told(self, message: Joined, slots: int, grid: BinGrid) -> Told:
        told = told_of(message, slots, grid)
        told.sums[:] -= added_up(self._hidden(message.spots), told_in(told.ends, grid))
        return told

    def _hidden(self, spots: Numbers) -> Words:
        """Return the sums of the words that hide those of this level; `spots` are the owner's."""
        if self.ways is None:
            self.ways = RowPaths(self._codes(spots), self.bins)
        else:
            self.ways.turn(np.unpackbits(bits, count=self.rows) for bits in self._bits(spots))
        return self.ways.sums(self.hide or self._hide())

    def _hide(self) -> Iterator[Words]:
        """Return the words s_j, column by column: many rows have no room for all of them."""
        stream = self.streams.shared(self.roles.dealer, BINS, self.roles)
        return (
            stream.words(tag_for_column(self.tree, column), self.rows) for column in range(len(self.bins))
        )

    def divided(self, level: Level, frontier: Frontier) -> None:
        if self.ways is not None:
            self.ways.divide(level, pairs_of(frontier))

    def _codes(self, spots: Numbers) -> list[Numbers]:
        """Return the bins of all rows in every column's order; checked."""
        if spots.dtype != np.uint8 or spots.shape != (len(self.bins) * self.rows,):
            raise MalformedMessage(f"{self.roles.owner} sent {spots.shape} bins")
        codes = list(spots.reshape(len(self.bins), -1)) if len(self.bins) else []
        most = [int(each.max(initial=0)) for each in codes]
        if (np.array(most, dtype=np.int64) >= self.bins).any():
            raise MalformedMessage(f"{self.roles.owner} sent bins that its columns do not have")
        return codes

    def _bits(self, spots: Numbers) -> Numbers:
        """Return the sides of all rows in every column's order, as bits; checked."""
        width = -(-self.rows // 8)
        if spots.dtype != np.uint8 or spots.shape != (len(self.bins) * width,):
            raise MalformedMessage(f"{self.roles.owner} sent {spots.shape} bytes of sides")
        return spots.reshape(len(self.bins), width)


def pairs_of(frontier: Frontier) -> Pairs:
    """Return the siblings of a frontier that was divided."""
    if frontier.pairs is None:
        raise RuntimeError("a frontier that was divided has pairs")
    return frontier.pairs
