"""Numbers that others can add up without reading them: ElGamal with the number in the exponent.

The key holder has a secret x and shows X = xG. A number m is sealed as (rG, rX + mG) with a new random r.
Adding two sealed numbers point by point seals their sum; adding a sealed zero makes the sum look like
any other. The key holder finds mG and, since its numbers are counts, m itself by baby steps and giant steps.

What each side learns: without x a sealed number tells nothing, if the decisional Diffie-Hellman problem is
hard on secp256k1 (about 128 bits, not against a quantum computer). The key holder, who knows every r, learns
the sums and nothing of which numbers are in them: an adder seals each sum anew with its own randomness.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from coincurve import PublicKey
from numpy.typing import NDArray

from colonnade.arrays import Rows
from colonnade.errors import SumError
from colonnade.secure.curve import ORDER

Sealed: TypeAlias = NDArray[
    np.uint8
]  # [n, 130]: two points each, not compressed: these parse six times faster

POINT = 65
BABY_STEPS = 4096
_Pair: TypeAlias = tuple[PublicKey, PublicKey]


@dataclass(frozen=True)
class SealingKey:
    """The secret of whoever seals numbers and reads sums. It lives for one conversation."""

    secret: int

    @staticmethod
    def new() -> SealingKey:
        """A key that nobody has had before."""
        return SealingKey(_random())

    @property
    def public(self) -> bytes:
        """What an adder needs to seal its sums anew."""
        return _base(self.secret).format(compressed=False)

    def seal(self, numbers: Sequence[int]) -> Sealed:
        """Every number, sealed. Since x is known here, both points are multiples of G, which are quick."""
        points = []
        for number in numbers:
            r = _random()
            points.append(_base(r).format(compressed=False))
            points.append(_base(r * self.secret + number).format(compressed=False))
        return _array(points)

    def read(self, sums: Sealed, most: Sequence[int]) -> list[int]:
        """The sums, each of which is a count from 0 to its entry in `most`; SumError if one is not."""
        minus = _bytes(-self.secret)
        steps = _Steps(min(BABY_STEPS, max(most, default=0)))
        found = []
        for (one, two), limit in zip(pairs_of(sums), most, strict=True):
            mask = one.multiply(minus)
            # the library has no name for the neutral point, which is what 0 G would be
            empty = mask.format() == _negated(two.format())
            count = 0 if empty else steps.logarithm(PublicKey.combine_keys([two, mask]), limit)
            if count is None:
                raise SumError("a peer sent a sealed sum that is no count of its rows")
            found.append(count)
        return found


class Adder:
    """Sums of sealed numbers by groups, kept while the numbers arrive in parts.

    `groups` says how many groups each of several partitions has, as a column has bins.
    """

    def __init__(self, public: bytes, groups: Sequence[int]) -> None:
        self._public = _point(public)
        self._sums: list[list[_Pair | None]] = [[None] * count for count in groups]

    def add(self, sealed: Sealed, codes: Sequence[Rows]) -> None:
        """Add these numbers to the group that each partition puts them in (a code below 0: none)."""
        pairs = pairs_of(sealed)
        ones, twos = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        for sums, code in zip(self._sums, codes, strict=True):
            order = np.argsort(code, kind="stable")
            cuts = np.searchsorted(code[order], np.arange(len(sums) + 1))
            rows = order.tolist()
            for group, (start, end) in enumerate(pairwise(cuts.tolist())):
                if start < end:
                    mine = rows[start:end]
                    before = sums[group]
                    sums[group] = (
                        _sum([ones[i] for i in mine], before and before[0]),
                        _sum([twos[i] for i in mine], before and before[1]),
                    )

    def totals(self) -> Sealed:
        """The sum of every group, sealed anew: nothing about it but the total can be recognised."""
        points = []
        for sums in self._sums:
            for pair in sums:
                s = _bytes(_random())
                again = PublicKey.from_secret(s), self._public.multiply(s)
                for mine, new in zip(pair or (None, None), again, strict=True):
                    points.append(_sum([new], mine).format(compressed=False))
        return _array(points)


def pairs_of(sealed: Sealed) -> list[_Pair]:
    """The points of sealed numbers; SumError if something else came."""
    if sealed.dtype != np.uint8 or sealed.ndim != 2 or sealed.shape[1] != 2 * POINT:
        raise SumError(f"a peer sent sealed numbers of shape {sealed.shape}, [n, {2 * POINT}] was due")
    data = sealed.tobytes()
    points = [_point(data[at : at + POINT]) for at in range(0, len(data), POINT)]
    return list(zip(points[::2], points[1::2], strict=True))


class _Steps:
    """Small logarithms: a table of jG for j up to `size`, and steps of that size."""

    def __init__(self, size: int) -> None:
        self._size = max(size, 1)
        one = point = _base(1)
        self._table = {point.format(): 1}
        for j in range(2, self._size + 1):
            point = PublicKey.combine_keys([point, one])
            self._table[point.format()] = j
        self._back = _base(-self._size)

    def logarithm(self, point: PublicKey, most: int) -> int | None:
        """The m from 1 to `most` with mG = point, or None."""
        for walked in range(0, most + 1, self._size):
            found = self._table.get(point.format())
            if found is not None:
                return walked + found if walked + found <= most else None
            point = PublicKey.combine_keys([point, self._back])
        return None


def _sum(points: list[PublicKey], before: PublicKey | None) -> PublicKey:
    try:
        return PublicKey.combine_keys(points if before is None else [before, *points])
    except ValueError:  # random points cancel once in 2^256: somebody made them so
        raise SumError("a peer sent sealed numbers that cancel each other") from None


def _point(data: bytes) -> PublicKey:
    try:
        return PublicKey(data)
    except ValueError:
        raise SumError("a peer sent bytes that are no point of the curve") from None


def _base(multiple: int) -> PublicKey:
    """A multiple of G."""
    return PublicKey.from_secret(_bytes(multiple))


def _random() -> int:
    """A secret multiplier; 64 bytes, so that the remainder is as good as uniform and never 0."""
    return int.from_bytes(os.urandom(64), "big") % (ORDER - 1) + 1


def _bytes(number: int) -> bytes:
    return (number % ORDER).to_bytes(32, "big")


def _negated(point: bytes) -> bytes:
    """The compressed form of the opposite point."""
    return bytes([5 - point[0]]) + point[1:]


def _array(points: list[bytes]) -> Sealed:
    return np.frombuffer(b"".join(points), dtype=np.uint8).reshape(-1, 2 * POINT)
