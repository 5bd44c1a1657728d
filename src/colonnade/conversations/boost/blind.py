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
from colonnade.net.network import Network
from colonnade.secure.streams import PairStreams, Roles
from colonnade.trees.bins import Codes, Counts, Flags
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
        found = np.zeros((len(codes), len(sampled)), dtype=np.uint64)
        spots = np.empty((len(codes), len(rows)), dtype=np.uint8)
        self._orders = []
        for column in range(len(codes)):
            tag = tag_for_column(tree, column)
            heard = (await self.net.recv(Shuffled, dealer, tag)).words
            if heard.dtype != np.uint64 or heard.shape != rows.shape:
                raise MalformedMessage(f"{dealer} dealt {heard.shape} words for {len(rows)} rows")
            mixed = order_of(order.words(tag, len(rows)))
            self._orders.append(mixed if sampled.all() else rows.take(mixed))
            # back in the order of rows, where sums are made as ever
            found[column, self._orders[-1]] = message.words.take(mixed) - heard
            spots[column] = codes[column].take(self._orders[-1])
        self._spots = spots.ravel()
        return found

    def spots(self) -> Numbers:
        return self._spots

    def divided(self, frontier: Frontier, left: Flags) -> None:
        side = np.zeros(len(frontier.sampled), dtype=np.uint8)
        side[frontier.rows] = left
        self._spots = np.packbits(np.concatenate([side[:0], *(side.take(order) for order in self._orders)]))


@dataclass
class BlindReader:
    """A: hides words from one owner, and takes what hides them off its sums."""

    roles: Roles
    streams: PairStreams
    rows: int = 0
    hide: Words = field(init=False)  # s_j, column after column
    place: Numbers = field(
        init=False
    )  # in every column's order: the node of a row, by a number of this class
    bin: Numbers = field(init=False)  # and its bin among all
    bins: Counts = field(init=False)
    open: Counts = field(init=False)  # the open node of the tree that a number stands for; too large: none
    moves: Numbers | None = None  # (number, side) -> number on the next level
    slots: int = 1

    def gradients(self, tree: int, words: Words, bins: Counts) -> Numbers:
        dealer, self.rows, self.bins = self.roles.dealer, len(words), bins
        hide = self.streams.shared(dealer, BINS, self.roles)
        drawn = [hide.words(tag_for_column(tree, column), self.rows) for column in range(len(bins))]
        self.hide = np.concatenate([words[:0], *drawn])
        self.place = np.zeros(len(self.hide), dtype=np.uint8)
        self.open, self.moves, self.slots = np.zeros(1, dtype=np.int64), None, 1
        r = self.streams.shared(dealer, GRADIENTS, self.roles).once(tag_for_column(tree, 0), self.rows)
        return words + r

    def sums(self, message: Histograms) -> Words:
        total = int(self.bins.sum())
        found = np.zeros(self.slots * total, dtype=np.uint64)
        if self.moves is None:
            self.bin = self._bins(message.spots)
            add_up(found, self.bin, self.hide)
        else:
            size = len(self.hide)
            if message.spots.dtype != np.uint8 or message.spots.shape != (-(-size // 8),):
                raise MalformedMessage(f"{self.roles.owner} sent {message.spots.shape} bytes of sides")
            side = np.unpackbits(message.spots, count=size)
            self.place = looked_up(self.moves, self.place + self.place + side)
            summed = np.flatnonzero(self.place < self.slots)
            where = self.bin.take(summed)
            where += self.place.take(summed) * np.int32(total)
            add_up(found, where, self.hide.take(summed))
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
        self.place = self.place.astype(kind, copy=False)
        places = np.where(level.stays, np.cumsum(level.stays) - 1, frontier.open)
        self.open = places[order]

    def _bins(self, codes: Codes) -> Numbers:
        """The bins of all rows in every column's order, counted through all columns; checked."""
        if codes.dtype != np.uint8 or codes.shape != (len(self.hide),):
            raise MalformedMessage(f"{self.roles.owner} sent {codes.shape} bins")
        table = codes.reshape(len(self.bins), -1).astype(np.int32)
        if (table >= self.bins[:, None]).any():
            raise MalformedMessage(f"{self.roles.owner} sent bins that its columns do not have")
        table += (np.cumsum(self.bins) - self.bins).astype(np.int32)[:, None]
        return table.ravel()


def looked_up(table: Numbers, key: Numbers) -> Numbers:
    """The table's entry for every key; of bytes by what is made for text, several times as fast."""
    if table.dtype != np.uint8 or key.dtype != np.uint8:
        return table.take(key)
    whole = np.zeros(256, dtype=np.uint8)
    whole[: len(table)] = table
    return np.frombuffer(key.tobytes().translate(whole.tobytes()), dtype=np.uint8)
