"""What a message must be: declared where it is received, and checked before anybody acts on it.

A peer that is authenticated can still send anything at any time. The net already keeps apart who sent what
under which kind and tag; what remains is the content. The receiver of a message says what each of its fields
must be,

    told = await net.recv(Announce, root, tag, values=floats(3, low=0))

and gets a message that is so, or a ProtocolError that names the sender. A kind with arrays cannot be received
without such a declaration (`tests/net/test_expect.py`). Where the shape is known only once the message is
there, as with what is read as a stream, `expect` is called with it. `said_by` puts the sender's name to what
a decoder finds wrong.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from colonnade.arrays import Numbers
from colonnade.errors import AlignmentError, MalformedMessage, ProtocolError, SumError
from colonnade.messages import Message

MOST = 1e60
"""No number that training needs is larger; its square and the square of that are still numbers."""


_ANY = (-math.inf, math.inf)
_FLOAT, _WORD = np.dtype(np.float64), np.dtype(np.uint64)


class Expected(Protocol):
    """What one field of a message must be."""

    def wrong(self, value: object) -> str:
        """Return what is wrong with a value, in words; empty if nothing is."""
        ...


@dataclass(frozen=True, slots=True)
class Array:
    """An array of this type and shape (None: any length) with every entry from `low` to `high`, or empty."""

    dtype: np.dtype[Any]
    shape: tuple[int | None, ...]
    low: float = -math.inf
    high: float = math.inf
    or_nothing: bool = False

    def wrong(self, value: object) -> str:
        if not isinstance(value, np.ndarray):
            return f"a {type(value).__name__} where an array was due"
        if value.shape == self.shape and value.dtype is self.dtype:
            # what nearly all messages are, found out with one look: a sum of squares bounds every entry, and
            # NaN is never smaller
            if self.high == math.inf and self.low == -math.inf:
                return ""
            if self.low == -MOST and self.high == MOST and (entries := value.ravel()).dot(entries) <= MOST:
                return ""
        if value.dtype != self.dtype or not self._fits(value.shape):
            due = ", ".join("any" if size is None else str(size) for size in self.shape)
            return f"{value.shape} {value.dtype} values; ({due}) {self.dtype} were due"
        # a comparison with NaN is never true, so that one look at both ends finds it
        bounded = value.size and (self.low, self.high) != _ANY
        if bounded and not (self.low <= value.min() and value.max() <= self.high):
            found = f"{value.min():.3g} to {value.max():.3g}"
            return f"values from {found}; from {self.low:g} to {self.high:g} may be"
        return ""

    def _fits(self, shape: tuple[int, ...]) -> bool:
        if self.or_nothing and shape == (0,):
            return True
        return len(shape) == len(self.shape) and all(
            due is None or size == due for size, due in zip(shape, self.shape, strict=True)
        )


@dataclass(frozen=True, slots=True)
class Number:
    """A single number from `low` to `high`, or none where it may be missing."""

    low: float
    high: float
    optional: bool = False

    def wrong(self, value: object) -> str:
        if value is None and self.optional:
            return ""
        if isinstance(value, int | float) and self.low <= value <= self.high:
            return ""
        return f"{value}; a number from {self.low:g} to {self.high:g} was due"


@lru_cache(maxsize=256)
def floats(*shape: int | None, low: float = -MOST, high: float = MOST) -> Array:
    """Return what expects finite numbers in double precision.

    >>> floats(2).wrong(np.array([1.0, np.nan]))
    'values from nan to nan; from -1e+60 to 1e+60 may be'
    >>> floats(2).wrong(np.zeros(3)), floats(None, 2, low=0).wrong(np.ones((5, 2)))
    ('(3,) float64 values; (2) float64 were due', '')
    """
    return Array(_FLOAT, shape, low, high)


@lru_cache(maxsize=256)
def words(*shape: int | None) -> Array:
    """Return what expects elements of the ring: any will do."""
    return Array(_WORD, shape)


def whole(*shape: int | None, low: int = 0, high: int = 2**53, dtype: str = "int64") -> Array:
    """Return what expects whole numbers."""
    return Array(np.dtype(dtype), shape, low, high)


def like(own: Numbers) -> Array:
    """Return what expects an array of the type and shape of one that this party has itself."""
    return Array(own.dtype, own.shape)


def octets(*shape: int | None) -> Array:
    """Return what expects bytes."""
    return Array(np.dtype(np.uint8), shape)


@dataclass(frozen=True, slots=True)
class Packed:
    """An array that its decoder checks, with `said_by` around it."""

    def wrong(self, value: object) -> str:
        return "" if isinstance(value, np.ndarray) else f"a {type(value).__name__} where an array was due"


def finite(values: Numbers) -> Numbers:
    """Return the same numbers; MalformedMessage if one is not finite, or larger than training needs."""
    if values.size and not (float(values.min()) >= -MOST and float(values.max()) <= MOST):
        raise MalformedMessage(f"numbers from {values.min():.3g} to {values.max():.3g}")
    return values


PACKED = Packed()
NOTHING = Array(_FLOAT, (0,))
"""An array without entries: a message that says something by being sent."""


def expect(sender: str, message: Message, due: Mapping[str, Expected]) -> None:
    """Raise ProtocolError, which names the sender, unless every field named in `due` is what it must be."""
    for field, each in due.items():
        if wrong := each.wrong(getattr(message, field)):
            tag = getattr(message, "tag", None)
            of = "" if tag is None else f" {tag}"
            raise ProtocolError(f"{sender} sent {type(message).__name__}{of} with {field} of {wrong}")


def out_of_turn(sender: str, message: Message, why: str) -> ProtocolError:
    """Return the error for a message that is not its sender's to send, or not now."""
    return ProtocolError(f"{sender} sent {type(message).__name__} {getattr(message, 'tag', '')}: {why}")


@contextmanager
def said_by(sender: str) -> Iterator[None]:
    """Name the sender of what turns out wrong while it is decoded."""
    try:
        yield
    except (AlignmentError, MalformedMessage, ProtocolError, SumError) as error:
        raise ProtocolError(f"{sender} sent what cannot be: {error}") from error
