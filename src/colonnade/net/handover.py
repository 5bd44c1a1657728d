"""A message as another party of this process gets it: nobody can change what another has, and bytes count.

In general that is what is decoded from its encoding. What a round sends most often, arrays with a tag, is
copied instead, and its size is computed: that is the same to the last byte, without writing or reading one.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from colonnade.arrays import Numbers
from colonnade.messages import Backward, Dealt, Message, Piece, Shuffled, Veil, Veiled, decode, encode

_WORDS = frozenset((np.dtype(np.float64), np.dtype(np.uint64)))
_OF_ONE_ARRAY = (Piece, Dealt, Veiled)  # made once: a union would be made for every message
_HEAD = 2  # bytes of a list and of the kind of a message, where both are small
_TYPED = 3  # of a list, a type code and a list of lengths
_SMALL, _BYTE, _SHORT, _LONG = 2**7, 2**8, 2**16, 2**32


def handed(message: Message) -> tuple[Message, int]:
    """Return the message for its receiver, and how many bytes its encoding has."""
    if isinstance(message, _OF_ONE_ARRAY) and _plain(values := message.values):
        copy = type(message)(message.tag, _copied(values))
        return copy, _HEAD + _number(message.tag) + _array(values)
    if isinstance(message, Backward) and _plain(theta := message.theta) and len(message.seen) < 16:
        numbers = _number(message.tag) + 1 + sum([_number(count) for count in message.seen])
        return Backward(message.tag, _copied(theta), message.seen), _HEAD + numbers + _array(theta)
    if isinstance(message, Veil) and _plain(moved := message.moved) and _plain(weights := message.weights):
        veil = Veil(message.tag, _copied(moved), _copied(weights), message.version)
        numbers = _number(message.tag) + _number(message.version)
        return veil, _HEAD + numbers + _array(moved) + _array(weights)
    if isinstance(message, Shuffled) and _plain(words := message.words) and message.order.dtype == np.uint16:
        dealt = Shuffled(message.tag, _copied(words), _copied(message.order))
        return dealt, _HEAD + _number(message.tag) + _array(words) + _array(message.order)
    payload = encode(message)
    return decode(payload), len(payload)


def _plain(values: Numbers) -> bool:
    return values.dtype in _WORDS and values.ndim < 16


def _copied(values: Numbers) -> Numbers:
    """Return the same numbers, which nobody can change: a copy, unless nobody can as it is."""
    if not values.flags.writeable and (values.base is None or not _writeable(values.base)):
        return values
    copy = values.copy()
    copy.setflags(write=False)  # in a third of the time of `copy.flags.writeable = False`
    return copy


def _writeable(base: object) -> bool:
    return not isinstance(base, np.ndarray) or base.flags.writeable


def _number(value: int) -> int:
    """Return the bytes of a whole number that is not negative."""
    if value < _SMALL:
        return 1
    if value < _SHORT:
        return 2 if value < _BYTE else 3
    return 5 if value < _LONG else 9


def _array(values: Numbers) -> int:
    """Return the bytes of an array."""
    return _shaped(values.shape, values.nbytes)


@lru_cache(maxsize=256)  # a run has arrays of few shapes
def _shaped(shape: tuple[int, ...], bytes_: int) -> int:
    """Return the bytes of an array: its type and shape, how many bytes follow, and these."""
    length = 2 if bytes_ < _BYTE else 3 if bytes_ < _SHORT else 5
    return _TYPED + sum([_number(size) for size in shape]) + length + bytes_
