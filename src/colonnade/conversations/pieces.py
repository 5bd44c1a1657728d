"""Values of all rows travel in pieces: each far below the largest message, and few in memory at a time.

A sum over all rows is cut into sums of at most `PIECE` values, each under a tag of its own: masks are made
for one tag and used once. The party that sums takes one piece after another; those that give stay at most
`UNDER_WAY` pieces ahead of what was taken, so that neither side ever holds more, however many rows there are.
What fits into one piece travels as it would without any of this: one message, and no word in between.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from colonnade.arrays import Floats, Numbers
from colonnade.errors import ProtocolError
from colonnade.messages import Announce
from colonnade.net.expect import NOTHING, PACKED, Expected, expect
from colonnade.net.network import Network
from colonnade.secure.protocol import SecureSum

PIECE = 2**20
"""The most values of a piece: 8 MiB."""

UNDER_WAY = 2
"""Pieces that a party may give before the first of them is taken."""

_TAKEN = np.empty(0)


class Stretch(NamedTuple):
    """Some neighbouring rows of one of several tables."""

    table: int
    start: int
    end: int

    @property
    def rows(self) -> slice:
        return slice(self.start, self.end)


def stretches(tables: Sequence[int], width: int = 1, most: int | None = None) -> list[list[Stretch]]:
    """Return the rows of some tables, cut into pieces; a row has `width` values, a piece `most` of them
    (`PIECE`).

    A piece may have the end of one table and the beginning of the next. There is always one piece.

    >>> stretches([5, 3], width=1, most=4)
    [[Stretch(table=0, start=0, end=4)], [Stretch(table=0, start=4, end=5), Stretch(table=1, start=0, end=3)]]
    """
    pieces: list[list[Stretch]] = [[]]
    whole = max(1, (PIECE if most is None else most) // max(1, width))
    room = whole
    for table, rows in enumerate(tables):
        start = 0
        while start < rows:
            if not room:
                pieces.append([])
                room = whole
            end = min(rows, start + room)
            pieces[-1].append(Stretch(table, start, end))
            room -= end - start
            start = end
    return pieces


def runs(start: int, end: int, classes: tuple[int, ...] = ()) -> list[slice]:
    """Return neighbouring rows in stretches whose scores, one for each class if there are some, fit a
    piece."""
    size = max(1, PIECE // math.prod(classes))
    return [slice(first, min(end, first + size)) for first in range(start, end, size)]


def cut(values: Numbers) -> list[Numbers]:
    """Return a flat array in pieces; at least one."""
    return [values[start : start + PIECE] for start in range(0, max(1, len(values)), PIECE)]


async def give_pieces(
    net: Network, secure: SecureSum, pieces: Iterator[Floats], *, root: str, tags: Sequence[int]
) -> None:
    """Give one piece after another to the sums of another party, one for every tag."""
    for number, (tag, piece) in enumerate(zip(tags, pieces, strict=True)):
        if number >= UNDER_WAY:
            await net.recv(Announce, root, tags[number - UNDER_WAY], values=NOTHING)
        await secure.give(piece, root=root, tag=tag)


async def collect_pieces(
    net: Network, secure: SecureSum, pieces: Iterator[Floats], *, tags: Sequence[int]
) -> AsyncIterator[Floats]:
    """Yield the totals of one piece after another; the parties that give them may go on when one is taken."""
    for number, (tag, piece) in enumerate(zip(tags, pieces, strict=True)):
        total = await secure.collect(piece, tag=tag)
        if number + UNDER_WAY < len(tags):
            await net.broadcast(Announce(tag, _TAKEN))
        yield total


async def tell(net: Network, values: Floats, tags: Sequence[int]) -> None:
    """Tell all peers the values, in as many messages as they take."""
    pieces = _ended(values)
    if len(pieces) > len(tags):
        raise ValueError(f"{len(values)} values take {len(pieces)} tags, not {len(tags)}")
    for tag, piece in zip(tags, pieces, strict=False):
        await net.broadcast(Announce(tag, piece))


async def hear(net: Network, sender: str, tags: Sequence[int], due: Expected) -> Numbers:
    """Return what a peer tells everybody, and what it must be; a message that is full is followed by
    another."""
    heard: list[Numbers] = []
    for tag in tags:
        message = await net.recv(Announce, sender, tag, values=PACKED)
        heard.append(message.values)
        if heard[-1].size != PIECE:
            break
    if len(heard) > 1:
        if any(each.dtype != heard[0].dtype or each.ndim != 1 for each in heard):
            raise ProtocolError(f"{sender} sent numbers in pieces that do not fit together")
        message = Announce(message.tag, np.concatenate(heard))
    expect(sender, message, {"values": due})
    return message.values


def messages(values: int) -> int:
    """Return how many tags to keep for a sum of this many values and an answer that is no longer."""
    return values // PIECE + 1


def _ended(values: Floats) -> list[Floats]:
    """Return a flat array in pieces of which all but the last are full."""
    return [values[start : start + PIECE] for start in range(0, len(values) + 1, PIECE)]
