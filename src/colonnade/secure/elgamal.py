"""Numbers that others can add up without reading them: ElGamal with the number in the exponent.

The key holder has a secret x and shows X = xG. A number m is sealed as (rG, rX + mG) with a new random r.
Adding two sealed numbers point by point seals their sum; adding a sealed zero makes the sum look like
any other. The key holder finds mG and, since its numbers are counts, m itself by baby steps and giant steps.

What each side learns: without x a sealed number tells nothing, if the decisional Diffie-Hellman problem is
hard on secp256k1 (about 128 bits, not against a quantum computer). The key holder, who knows every r, learns
the sums and nothing of which numbers are in them: an adder seals each sum again with its own randomness.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from colonnade.arrays import Rows
from colonnade.errors import AlignmentError, SumError
from colonnade.secure.curve import (
    ORDER,
    POINT,
    Points,
    added,
    base_multiples,
    base_times,
    first_multiples,
    multiples,
    negative,
    one,
    read,
    times,
    totals,
)

Sealed: TypeAlias = NDArray[
    np.uint8
]  # [n, 130]: two points each, not compressed: these parse six times faster

BABY_STEPS = 4096


@dataclass(frozen=True)
class SealingKey:
    """The secret of the party that seals numbers and reads sums. It lives for one conversation."""

    secret: int

    @staticmethod
    def new() -> SealingKey:
        """Return a key that nobody has had before."""
        return SealingKey(_random())

    @property
    def public(self) -> bytes:
        """What an adder needs to seal its sums again."""
        return base_times(_bytes(self.secret))

    def seal(self, numbers: Sequence[int]) -> Sealed:
        """Return every number, sealed. Since x is known here, both points are multiples of G, which are
        quick."""
        secrets = []
        for number in numbers:
            r = _random()
            secrets += [_bytes(r), _bytes(r * self.secret + number)]
        return base_multiples(secrets).reshape(-1, 2 * POINT)

    def read(self, sums: Sealed, most: Sequence[int]) -> list[int]:
        """Return the sums, each of which is a count from 0 to its entry in `most`; SumError if one is not."""
        steps = _SmallLogarithms(min(BABY_STEPS, max(most, default=0)))
        with _sum_errors():
            points = _points(sums)
            masks = times(points[::2], _bytes(-self.secret))
            found = []
            for two, mask, limit in zip(points[1::2], masks, most, strict=True):
                # the library has no name for the neutral point, which is what 0 G would be
                empty = mask.tobytes() == negative(two.tobytes())
                count = 0 if empty else steps.logarithm(added(two[None], mask[None]), limit)
                if count is None:
                    raise SumError("a peer sent a sealed sum that is no count of its rows")
                found.append(count)
        return found


class Adder:
    """Sums of sealed numbers by groups, kept while the numbers arrive in parts.

    `groups` says how many groups each of several partitions has, as a column has bins.
    """

    def __init__(self, public: bytes, groups: Sequence[int]) -> None:
        self._public = public
        with _sum_errors():
            read(one(public))
        self._sums: list[list[Points | None]] = [[None] * count for count in groups]

    def add(self, sealed: Sealed, codes: Sequence[Rows]) -> None:
        """Add these numbers to the group that each partition puts them in (a code below 0: none)."""
        with _sum_errors():
            parsed = parse(sealed)
            for sums, code in zip(self._sums, codes, strict=True):
                order = np.argsort(code, kind="stable")
                cuts = np.searchsorted(code[order], np.arange(len(sums) + 1))
                for group, (start, end) in enumerate(pairwise(cuts.tolist())):
                    if start < end:
                        ones = 2 * order[start:end]
                        both, before = totals(parsed, [ones, ones + 1]), sums[group]
                        sums[group] = both if before is None else added(before, both)

    def totals(self) -> Sealed:
        """Return the sum of every group, sealed again: nothing about it but the total can be recognised."""
        groups = [both for sums in self._sums for both in sums]
        secrets = [_bytes(_random()) for _ in groups]
        zeros = np.stack([base_multiples(secrets), multiples(self._public, secrets)], axis=1)
        with _sum_errors():
            sealed = [
                zero if both is None else added(zero, both) for both, zero in zip(groups, zeros, strict=True)
            ]
        return np.array(sealed, dtype=np.uint8).reshape(-1, 2 * POINT)


def parse(sealed: Sealed) -> Any:
    """Return the points of sealed numbers, two each, as the curve keeps them; SumError for anything else."""
    with _sum_errors():
        return read(_points(sealed))


class _SmallLogarithms:
    """Small logarithms: a table of jG for j up to `size`, and steps of that size."""

    def __init__(self, size: int) -> None:
        self._size = max(size, 1)
        table = first_multiples(base_times(_bytes(1)), self._size)
        self._table = {point.tobytes(): j for j, point in enumerate(table, start=1)}
        self._back = one(base_times(_bytes(-self._size)))

    def logarithm(self, point: Points, most: int) -> int | None:
        """Return the m from 1 to `most` with mG = point, or None."""
        for walked in range(0, most + 1, self._size):
            found = self._table.get(point.tobytes())
            if found is not None:
                return walked + found if walked + found <= most else None
            point = added(point, self._back)
        return None


@contextmanager
def _sum_errors() -> Iterator[None]:
    """Tell what the curve refuses as an error of sums. Points never cancel by chance."""
    try:
        yield
    except AlignmentError as error:
        raise SumError(str(error)) from None


def _points(sealed: Sealed) -> Points:
    if sealed.dtype != np.uint8 or sealed.ndim != 2 or sealed.shape[1] != 2 * POINT:
        raise SumError(f"a peer sent sealed numbers of shape {sealed.shape}, [n, {2 * POINT}] was due")
    return sealed.reshape(-1, POINT)


def _random() -> int:
    """Return a secret multiplier; 64 bytes, so that the remainder is as good as uniform and never 0."""
    return int.from_bytes(os.urandom(64), "big") % (ORDER - 1) + 1


def _bytes(number: int) -> bytes:
    return (number % ORDER).to_bytes(32, "big")
