"""Fixed-point numbers of a blind run, at the label holder: what is sent, what comes back, and that it fits.

Columns have `columns.BITS` bits of fraction, what is added has `bits`, so a vector of weights has both and
its scores have the columns' twice. A score out of range would wrap around and give a plausible wrong model,
so every score is bounded before it is read: a row's score was s when it was last read, and since then vectors
moved by X'u for coefficients u that the label holder knows, so it is now within s and R |X| |u|, where R is
the length of the longest row and |X|^2 the sum of all rows' squared lengths.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from colonnade.arrays import Floats, Rows, Words
from colonnade.conversations.blind.columns import BITS
from colonnade.errors import FixedPointOverflow

MOST_BITS = 34
COARSE = 12  # significant bits of a usual coefficient below which they are rounded at random
FEWEST = 4  # significant bits of a usual coefficient below which nothing is learnt
ROOM = 32.0  # times the largest score of an epoch's movement: the room that a vector is given


@dataclass(frozen=True)
class Lengths:
    """How long the owners' rows are: the longest of all, and |X|, the root of all squares."""

    longest: float
    all: float

    @staticmethod
    def of(total: Floats) -> Lengths:
        """From the sums of the owners' squared lengths (`columns.lengths`)."""
        return Lengths(math.sqrt(float(total[0])), math.sqrt(float(total[1])))

    def reach(self, squares: float) -> float:
        """The largest score that coefficients give whose squares have this sum."""
        return self.longest * self.all * math.sqrt(squares)


def bits_for(largest: float) -> int:
    """The bits that coefficients may have, so that scores up to this size fit."""
    return min(MOST_BITS, 62 - 2 * BITS - math.ceil(math.log2(max(largest, 2.0**-20))))


def check_room(rows: int, scores: int, lengths: Lengths) -> None:
    """Refuse rows that leave no room for steps of any size, as far as lengths are known before training.

    Steps that are twice as large have twice the bits, and take twice the room.
    """
    significant = 62 - 2 * BITS - math.log2(ROOM * lengths.reach(rows * scores))
    if significant < FEWEST:
        raise _no_room(rows, lengths.longest, significant)


def _no_room(rows: int, longest: float, significant: float) -> FixedPointOverflow:
    fewer = rows * 2.0 ** (significant - FEWEST)  # the room grows with all steps together
    return FixedPointOverflow(
        f"blind training: {rows:,} rows of length up to {longest:.3g} leave no room for steps in words of 64 "
        f"bits; scale the columns (data.scale = 'zscore'), clip outliers, train on about {fewer:,.0f} rows, "
        "or set secure.labels = 'clear'"
    )


@dataclass
class Slot:
    """One shared vector a class: how its numbers are written, and how far its scores may have come."""

    lengths: Lengths
    bits: int
    rng: np.random.Generator
    read: Floats  # the size of every row's score when it was last read, and what it may have been off by
    seen: Floats = field(init=False)  # `moved` at that time
    highest: float = field(init=False)  # no row was ever read to be larger
    moved: float = 0.0  # the sum of squares of all coefficients that were sent

    def __post_init__(self) -> None:
        self.seen = np.zeros(len(self.read))
        self.highest = float(self.read.max(initial=0.0))

    def coarse(self, usual: float) -> bool:
        """Whether coefficients of this size are rounded at random; an error if they would be lost."""
        significant = self.bits + math.log2(max(usual, 1e-300))
        if significant < FEWEST:
            raise _no_room(len(self.read), self.lengths.longest, significant)
        return significant < COARSE

    def write(self, t: Floats, *, coarse: bool = False) -> tuple[Words, Floats]:
        """Coefficients as words, [classes, rows], and the numbers that these words are."""
        scaled = t * 2.0**self.bits
        if not float(np.abs(scaled).max(initial=0.0)) < 2.0**62:
            raise FixedPointOverflow("a step of blind training does not fit the fixed-point range")
        rounded = np.floor(scaled + self.rng.random(scaled.shape)) if coarse else np.rint(scaled)
        sent = rounded * 2.0**-self.bits
        self.moved += float(np.vdot(sent, sent))
        return np.atleast_2d(rounded.astype(np.int64).view(np.uint64).T), sent

    def value(
        self, total: Words, rows: Rows | None = None, *, asked: float | None = None, reach: float = 0.0
    ) -> Floats:
        """Scores that came back as words, as [rows, classes]; refused if they could have wrapped around.

        `rows` are rows of training, and `asked` is `moved` at the time when they were scored, if that was
        before now; new rows have `reach`, the largest score that there can be.
        """
        limit = 2.0 ** (63 - 2 * BITS - self.bits)
        largest = reach if rows is None else self._bound(rows, limit)
        if not largest < limit:
            raise FixedPointOverflow(
                f"blind training: a score may have reached {largest:.3g}, beyond the range of {limit:.3g}; "
                "use a smaller step, scale the columns, or set secure.labels = 'clear'"
            )
        z: Floats = total.view(np.int64).T.astype(np.float64) * 2.0 ** -(2 * BITS + self.bits)
        if rows is not None:
            sizes = np.abs(z)
            self.read[rows] = sizes[:, 0] if sizes.shape[1] == 1 else sizes.max(axis=1)
            self.highest = max(self.highest, float(sizes.max(initial=0.0)))
            self.seen[rows] = self.moved if asked is None else asked
        return z

    def _bound(self, rows: Rows, limit: float) -> float:
        """A size that none of these rows' scores has now; they are looked at one by one if it must be."""
        anyone = self.highest + self.lengths.reach(1.0) * math.sqrt(2 * self.moved)
        return anyone if anyone < limit else float(self.bounds(rows).max(initial=0.0))

    def bounds(self, rows: Rows) -> Floats:
        """The largest score that each of these rows can have now."""
        # a row may be used twice between two looks at another one
        apart: Floats = np.sqrt(2 * (self.moved - self.seen[rows]))
        return self.read[rows] + self.lengths.reach(1.0) * apart
