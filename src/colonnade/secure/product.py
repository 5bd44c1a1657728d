"""Products of one party's columns and another's vectors, which neither learns: a third party deals words.

The roles are those of one block: the asker A knows a vector, the owner P the columns X (n rows), the dealer T
neither. Once, P sends A the veiled columns E = X - M, where M are words that P and T share; T makes rows of M
again whenever it needs them. A vector of one word for every column is *shared* if P and A hold words that add
up to it. A may ask several owners at once: what they veiled lies side by side. Everything is exact in the
ring of integers modulo 2^64.

    scores    X w of a shared w = p + s, into a sum with root A: A -> P: s - v;
              P adds X (p + s - v), T adds M v, A adds E v                      v: words of A and T
    add       X' t into a shared vector, for t at A: A -> P: t - a; T -> A: M'a + r;
              P adds X'(t - a) - r to its part, A adds E'a + (M'a + r) to its own   a: A and T, r: P and T

P sees s - v and t - a, T sees nothing, A sees E, M'a + r and the total: all but the total are uniform words.
Two of the three together break it: P and T know t and s, A and T know X (docs/blind.md).

A `Lot` is some batches of rows that are served together, as A and T can do nearly all of their work before
anybody knows w or t. Its words have the lot's tag, and a tag is good for one lot.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from colonnade.arrays import Floats, Rows, Words
from colonnade.errors import SumError
from colonnade.secure.protocol import UsedTags
from colonnade.secure.streams import PairStreams, Roles, Stream
from colonnade.secure.words import products_of, scores_of, sums_of

COLUMNS = "columns"  # M, which veils columns: for P and T
SCORED = "scored"  # v, which hides weights: for A and T
ADDED = "added"  # a, which hides what is added: for A and T
DEALT = "dealt"  # r, which hides what T deals: for P and T
LINE = 64  # bytes of memory that a processor reads at once


@dataclass(frozen=True)
class Lot:
    """Batches of rows of one table, with the numbers of vectors that are scored and that are added to."""

    tag: int
    table: str
    batches: tuple[Rows, ...]
    scored: int
    added: int

    @cached_property
    def rows(self) -> int:
        """How many rows all batches have."""
        return sum(map(len, self.batches))

    @cached_property
    def cuts(self) -> list[slice]:
        """Where every batch lies among the rows."""
        return cuts_of(len(batch) for batch in self.batches)

    def masks(self, streams: Sequence[Stream]) -> list[Words]:
        """Return words for all that is added, [streams, vectors, rows] for every batch."""
        words = np.stack([_once(stream, self.tag, self.added * self.rows) for stream in streams])
        found = []
        for rows, cut in zip(self.batches, self.cuts, strict=True):
            own = words[:, self.added * cut.start : self.added * cut.stop]
            found.append(own.reshape(len(streams), self.added, len(rows)))
        return found


@dataclass(frozen=True, eq=False)
class Columns:
    """P's columns: numbers that are small take less memory, and less time to be gathered from it."""

    values: NDArray[np.int16] | NDArray[np.int32] | NDArray[np.int64]

    @staticmethod
    def of(X: Words) -> Columns:
        """Return columns given as words."""
        numbers = X.view(np.int64)
        return Columns.small(numbers, max(int(numbers.max(initial=0)), -int(numbers.min(initial=0))))

    @staticmethod
    def small(numbers: NDArray[np.int64] | Floats, largest: float) -> Columns:
        """Return columns of whole numbers that are at most so large."""
        if largest < 2**31:
            return Columns(numbers.astype(np.int16) if largest < 2**15 else numbers.astype(np.int32))
        return Columns(numbers.astype(np.int64))

    @staticmethod
    def joined(parts: Sequence[Columns]) -> Columns:
        """Return rows of the same columns, some after some."""
        values = [part.values for part in parts]
        room = _in_lines(sum(map(len, values)), parts[0].width, np.result_type(*values))
        return Columns(np.concatenate(values, out=room))

    def __len__(self) -> int:
        return len(self.values)

    @property
    def width(self) -> int:
        return int(self.values.shape[1])

    def taken(self, rows: Rows) -> Words:
        """Return some rows, as words."""
        found = self.values.take(rows, axis=0)
        return found.astype(np.int64, copy=False).view(np.uint64)

    def stretch(self, start: int, end: int) -> Words:
        """Return a copy of neighbouring rows, as words."""
        return self.values[start:end].astype(np.int64).view(np.uint64)


class Owner:
    """P: the columns of one block, by table."""

    def __init__(self, streams: PairStreams, roles: Roles, tables: Mapping[str, Columns]) -> None:
        self._streams, self._roles, self._tables = streams, roles, tables
        self._dealt = streams.shared(roles.dealer, DEALT, roles)
        self.width = next(iter(tables.values())).width

    def veiled(self, table: str, size: int) -> Iterator[tuple[int, Words]]:
        """Yield the veiled columns of a table in stretches of `size` rows, each with its first row."""
        count = len(self._tables[table])
        for start in range(0, count, size):
            rows = np.arange(start, min(start + size, count))
            yield start, self._veil(table, rows, self._tables[table].stretch(start, start + size))

    def veiled_rows(self, table: str, rows: Rows) -> Words:
        """Return the veiled columns of some rows."""
        return self._veil(table, rows, self._tables[table].taken(rows))

    def _veil(self, table: str, rows: Rows, values: Words) -> Words:
        masks = self._streams.shared(self._roles.dealer, COLUMNS, self._roles, table)
        values -= masks.table(rows, self.width)
        values.setflags(write=False)  # so that nobody in this process needs a copy of it
        return values

    def take(self, lot: Lot) -> OwnerLot:
        """Return the lot's words that only P and T know."""
        hidden = _once(self._dealt, lot.tag, len(lot.batches), lot.added, self.width)
        return OwnerLot(lot, self._tables[lot.table], hidden)


@dataclass(frozen=True, eq=False)
class OwnerLot:
    """P's side of a lot."""

    lot: Lot
    X: Columns
    hidden: Words

    def scores(self, batch: int, vectors: Words) -> Words:
        """Return what P adds to the sum of scores: of its part plus what A sent."""
        _check(vectors, (self.lot.scored, self.X.width))
        return scores_of(self.X.values, self.lot.batches[batch], vectors)

    def add(self, batch: int, moved: Words) -> Words:
        """Return what P adds to its part of the vectors, from t - a."""
        _check(moved, (self.lot.added, len(self.lot.batches[batch])))
        change: Words = sums_of(self.X.values, self.lot.batches[batch], moved) - self.hidden[batch]
        return change


class Dealer:
    """T of one block: it makes words, and sees none of anybody's.

    Rows of M are made again for every batch: to keep them and to gather them takes as long, and memory.
    """

    def __init__(self, streams: PairStreams, roles: Roles, width: int) -> None:
        self._streams, self.roles, self.width = streams, roles, width
        self._scored = streams.shared(roles.asker, SCORED, roles)
        self._added = streams.shared(roles.asker, ADDED, roles)
        self._dealt = streams.shared(roles.owner, DEALT, roles)
        self._columns = np.array((0, width))

    def deal(self, lot: Lot) -> tuple[list[Words], Words]:
        """Return what T adds to the scores of every batch, and what it sends to A: [batches, added,
        columns]."""
        shape = len(lot.batches), lot.scored, self.width
        v, a = _once(self._scored, lot.tag, *shape), lot.masks([self._added])
        masks = self._streams.shared(self.roles.owner, COLUMNS, self.roles, lot.table)
        found = []
        for k, rows in enumerate(lot.batches):
            M = masks.table(rows, self.width)
            found.append(products_of(M, np.arange(len(M)), v[k], a[k], self._columns))
        r = _once(self._dealt, lot.tag, len(found), lot.added, self.width)
        return [scores for scores, _ in found], r + np.stack([sums for _, sums in found])


class Asker:
    """A of some blocks, with the width of each: it holds their veiled columns side by side, by table."""

    def __init__(self, streams: PairStreams, blocks: Mapping[Roles, int], veiled: dict[str, Words]) -> None:
        self._scored = [streams.shared(roles.dealer, SCORED, roles) for roles in blocks]
        self._added = [streams.shared(roles.dealer, ADDED, roles) for roles in blocks]
        self._veiled, self._widths = veiled, list(blocks.values())
        self.cuts = cuts_of(self._widths)
        self._ends = np.array([0, *accumulate(self._widths)])

    @property
    def width(self) -> int:
        """The columns of all blocks."""
        return sum(self._widths)

    def take(self, lot: Lot) -> AskerLot:
        """Make everything that A needs for a lot; nothing of it depends on w or t."""
        v, a = self._hiding(lot), lot.masks(self._added)
        E = self._veiled[lot.table]
        found = [products_of(E, rows, v[k], a[k], self._ends) for k, rows in enumerate(lot.batches)]
        return AskerLot(v, a, [scores for scores, _ in found], [sums for _, sums in found])

    def _hiding(self, lot: Lot) -> Words:
        """Return the words that hide A's part of the vectors: [batches, scored, columns of all blocks]."""
        parts = [
            _once(stream, lot.tag, len(lot.batches), lot.scored, width)
            for stream, width in zip(self._scored, self._widths, strict=True)
        ]
        return np.concatenate(parts, axis=2)


@dataclass(frozen=True, eq=False)
class AskerLot:
    """A's side of a lot: masks, each good for one value, and the products of the veiled columns with them.

    `scores` and `sums` have an array for every batch, of all blocks: their total, and side by side.
    """

    v: Words
    a: list[Words]
    scores: list[Words]
    sums: list[Words]
    _hidden: tuple[UsedTags, UsedTags] = field(default_factory=lambda: (UsedTags(), UsedTags()))

    def veil(self, batch: int, part: Words) -> Words:
        """Return A's part of the vectors as the owners may see it, each its own columns."""
        self._hidden[0].use(batch)
        veiled: Words = part - self.v[batch]
        return veiled

    def moved(self, batch: int, t: Words) -> Words:
        """Return what is added as the owners may see it, each its own: [blocks, vectors, rows]."""
        self._hidden[1].use(batch)
        moved: Words = t - self.a[batch]
        moved.setflags(write=False)
        return moved


def _in_lines(rows: int, width: int, kind: np.dtype[Any]) -> NDArray[Any]:
    """Return an empty array whose rows each begin a line of memory, unless that takes over a quarter more of
    it.

    Rows are gathered from anywhere, and a row that lies across two lines is waited for twice.
    """
    size = width * kind.itemsize
    pitch = -(-size // LINE) * LINE
    if pitch > 1.25 * size:
        return np.empty((rows, width), dtype=kind)
    room = np.empty(rows * pitch + LINE, dtype=np.uint8)
    start = -room.ctypes.data % LINE
    return room[start : start + rows * pitch].view(kind).reshape(rows, pitch // kind.itemsize)[:, :width]


def cuts_of(widths: Iterable[int]) -> list[slice]:
    """Return where parts of these widths lie side by side.

    >>> cuts_of([2, 3])
    [slice(0, 2, None), slice(2, 5, None)]
    """
    ends = [0, *accumulate(widths)]
    return [slice(start, end) for start, end in pairwise(ends)]


def _once(stream: Stream, tag: int, *shape: int) -> Words:
    """Return the words of a tag, to hide values of this shape."""
    count = math.prod(shape)
    return (stream.once(tag, count) if count else _NONE).reshape(shape)


def _check(words: Words, shape: tuple[int, ...]) -> None:
    if words.dtype != np.uint64 or words.shape != shape:
        raise SumError(f"{words.shape} {words.dtype} values came for a product, {shape} uint64 were due")


_NONE: Words = np.zeros(0, dtype=np.uint64)
