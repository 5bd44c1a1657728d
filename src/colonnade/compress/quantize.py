"""Quantisation to 8, 4, 2 or 1 bits: levels evenly spaced between the least and the greatest number.

A number between two levels goes to one of them by chance, the nearer the likelier, so that its mean is
the number itself (stochastic rounding): E[decode(encode(x))] = x and |decode(encode(x)) - x| < width, with
width = (max - min) / (2^bits - 1). VFL-CZOFO sends embeddings and deltas like this, C-VFL embeddings. Where a
later message makes good what this one got wrong (`compress.rows`), the nearest level is better.

On the wire: the range as two single-precision numbers, of the whole message or of every column, then the
levels, packed without gaps: 8 + ceil(n bits / 8) bytes. What each side learns: a coarser picture of what it
would see anyway. Rounding hides nothing that averaging over messages does not bring back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from colonnade.arrays import Numbers
from colonnade.compress.protocol import State, bytes_due
from colonnade.errors import Diverged, MalformedMessage
from colonnade.state import Declared

Bits = Literal[1, 2, 4, 8]

LARGEST = 1e38  # the range travels in single precision


@dataclass(frozen=True)
class Quantizer:
    """Rounding to 2^bits levels, by chance or, without a generator, to the nearest.

    `per` says whether columns share a range or have their own.
    """

    STATE = Declared(parts=("rng",))

    bits: Bits
    rng: np.random.Generator | None
    per: Literal["message", "column"] = "message"

    def init(self, shape: tuple[int, ...]) -> State:
        return None

    def size(self, shape: tuple[int, ...]) -> int:
        """Return the number of bytes on the wire.

        >>> Quantizer(4, np.random.default_rng(0)).size((64, 3))
        104
        """
        return 8 * self._ranges(shape) + -(-int(np.prod(shape)) * self.bits // 8)

    def encode(self, state: State, x: Numbers) -> tuple[Numbers, State]:
        table = np.asarray(x, dtype=np.float64).reshape(-1, self._ranges(x.shape))
        if not (np.abs(table) < LARGEST).all():  # also catches NaN
            raise Diverged("a number to be sent is too large or not finite; use a smaller step")
        low, high = _outwards(table.min(axis=0), -np.inf), _outwards(table.max(axis=0), np.inf)
        width = _width(low, high, self.bits)
        place = np.divide(table - low, width, out=np.zeros_like(table), where=width > 0)
        below = np.floor(place)
        chance = 0.5 if self.rng is None else self.rng.random(table.shape)
        levels = below + (chance < place - below)
        levels = np.minimum(levels, 2**self.bits - 1).astype(np.uint8)
        ranges = np.stack([low, high]).astype("<f4").view(np.uint8).ravel()
        return np.concatenate([ranges, _pack(levels.ravel(), self.bits)]), state

    def decode(self, packed: Numbers, shape: tuple[int, ...]) -> Numbers:
        bytes_due(packed, self.size(shape), f"numbers of {self.bits} bits")
        ranges = self._ranges(shape)
        low, high = packed[: 8 * ranges].view("<f4").astype(np.float64).reshape(2, ranges)
        if not (np.isfinite(low) & np.isfinite(high) & (low <= high)).all():
            raise MalformedMessage("the range of a quantised array is not a range")
        levels = _unpack(packed[8 * ranges :], self.bits, int(np.prod(shape)))
        decoded: Numbers = low + levels.reshape(-1, ranges) * _width(low, high, self.bits)
        return decoded.reshape(shape)

    def _ranges(self, shape: tuple[int, ...]) -> int:
        return shape[-1] if self.per == "column" else 1


def _width(low: Numbers, high: Numbers, bits: int) -> Numbers:
    """Return the distance of two neighbouring levels."""
    width: Numbers = (high.astype(np.float64) - low) / (2**bits - 1)
    return width


def _outwards(bound: Numbers, towards: float) -> Numbers:
    """Return a bound in single precision, rounded outwards: inside of what it bounds it would clip, a
    bias."""
    near = bound.astype(np.float32)
    inside = near > bound if towards < 0 else near < bound
    return np.where(inside, np.nextafter(near, np.float32(towards)), near)


def _pack(levels: Numbers, bits: int) -> Numbers:
    each = 8 // bits
    padded = np.zeros(-(-levels.size // each) * each, dtype=np.uint8)
    padded[: levels.size] = levels
    shifts = (np.arange(each) * bits).astype(np.uint8)
    packed: Numbers = np.bitwise_or.reduce(padded.reshape(-1, each) << shifts, axis=1)
    return packed


def _unpack(packed: Numbers, bits: int, count: int) -> Numbers:
    shifts = (np.arange(8 // bits) * bits).astype(np.uint8)
    levels: Numbers = (packed[:, None] >> shifts) & np.uint8(2**bits - 1)
    return levels.ravel()[:count]
