"""Messages with a number for every row may be longer than a message can be: the rest follows in pieces.

The receiver knows how long the array will be, so nothing announces the pieces. What fits one message travels
as if there were none of this.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from msgspec import structs

from colonnade.arrays import Numbers
from colonnade.errors import ProtocolError
from colonnade.messages import (
    TOPIC_SHIFT,
    DealtSums,
    Gradients,
    Histograms,
    Joined,
    Message,
    Rest,
    Shuffled,
    Sides,
    tag_of,
    topic_of,
)
from colonnade.net.expect import PACKED
from colonnade.net.network import Network

PIECE = 2**23
"""The most bytes of an array in one message."""

LONG = {
    Gradients: "words",
    Histograms: "spots",
    Sides: "left",
    Shuffled: "words",
    Joined: "spots",
    DealtSums: "sums",
}
"""The messages that may be long, and the array that makes them so."""

_PARTS = 12  # bits of the number of a piece
_KINDS: tuple[type[Message], ...] = (Gradients, Histograms, Sides, Shuffled)
_ALIKE: dict[type[Message], type[Message]] = {
    Joined: Histograms,
    DealtSums: Gradients,
}  # of which nobody sends both with one tag
Long = Gradients | Histograms | Sides | Shuffled | Joined | DealtSums
M = TypeVar("M", Gradients, Histograms, Sides, Shuffled, Joined, DealtSums)


async def send_long(net: Network, to: str, message: Long) -> None:
    """Send a message in as many pieces as it takes."""
    field = LONG[type(message)]
    values: Numbers = getattr(message, field)
    size = PIECE // values.itemsize
    if len(values) <= size:
        await net.send(to, message)
        return
    await net.send(to, structs.replace(message, **{field: values[:size]}))
    for part, start in enumerate(range(size, len(values), size)):
        await net.send(to, Rest(_rest_tag(message, part), values[start : start + size]))


async def complete(net: Network, sender: str, message: M, count: int) -> M:
    """Return the whole of a message whose array has this many numbers, once its first piece is there."""
    field = LONG[type(message)]
    first: Numbers = getattr(message, field)
    size = PIECE // first.itemsize
    if count <= size or not len(first):
        return message
    whole = np.empty(count, dtype=first.dtype)
    for part, start in enumerate(range(0, count, size)):
        room = whole[start : start + size]
        piece = first if part == 0 else await _rest(net, sender, message, part - 1)
        if piece.dtype != whole.dtype or piece.shape != room.shape:
            raise ProtocolError(f"{sender} sent a piece of {piece.shape} numbers for {room.shape}")
        room[:] = piece
    return structs.replace(message, **{field: whole})


async def _rest(net: Network, sender: str, message: Long, part: int) -> Numbers:
    """Return one of the pieces that follow a message."""
    return (await net.recv(Rest, sender, _rest_tag(message, part), values=PACKED)).values


def _rest_tag(message: Long, part: int) -> int:
    """Return the tag of a piece: no two messages of a run share one."""
    kind, number = (
        _KINDS.index(_ALIKE.get(type(message), type(message))),
        message.tag & (1 << TOPIC_SHIFT) - 1,
    )
    return tag_of(topic_of(message.tag), (number * len(_KINDS) + kind) << _PARTS | part)
