"""Fixed-point numbers of a blind run, at the label holder: what is sent, what comes back, and that it fits.

Columns have `Lengths.bits` bits of fraction, what is added has `bits`, so a vector of weights has both and
its scores have the columns' twice. A score out of range would wrap around and give a plausible wrong model,
so every score is bounded before it is read: none is larger than R |p|, where R is the length of the longest
row and |p| that of the vector. Nobody has the vector, but a batch that adds X'u to it changes

    |p|^2  by  2 u'Xp + |X'u|^2

where Xp are scores that the label holder has just read. An epoch has every row once, so the last terms of all
its batches add up to |X|^2 times the largest |u|^2 at most, where |X|^2 is the sum of rows' squared lengths.
With `ahead` batches in flight a batch was scored some changes before, and its last term counts 2 ahead - 1
times. Where all rows are measured |p|^2 is known: it is the product of coefficients and scores.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from colonnade.arrays import Floats, Words
from colonnade.conversations.blind.columns import COARSEST, FINEST
from colonnade.errors import FixedPointOverflow

MOST_BITS = 34
COARSE = 14  # significant bits of a usual coefficient below which they are rounded at random
FEWEST = 4  # significant bits of a usual coefficient below which nothing is learnt
ROOM = 4.0  # times the length that an epoch's steps usually give a vector: the room that it is given
WORD = 62  # bits that a score may have: as many as fit, and one to spare


@dataclass(frozen=True)
class Lengths:
    """How long the owners' rows are, the longest and |X|, the root of all squares; how they are written."""

    longest: float
    all: float
    bits: int = COARSEST  # of a column's fraction

    @staticmethod
    def of(total: Floats) -> Lengths:
        """Return the lengths that follow from the sums of the owners' squared lengths (`columns.lengths`)."""
        return Lengths(math.sqrt(float(total[0])), math.sqrt(float(total[1])))

    def reach(self, t: Floats) -> Floats:
        """Return the most that X't is long, for coefficients of rows: one number, or one a class."""
        sizes = np.abs(t)
        found: Floats = np.minimum(self.longest * sizes.sum(axis=0), self.all * np.sqrt((t * t).sum(axis=0)))
        return found


def column_bits(free: float, more: float) -> int:
    """Return how finely columns are written: scores have this many bits for columns, twice, and a usual
    coefficient.

    Coefficients get this many bits more than columns.
    """
    return min(FINEST, max(COARSEST, math.floor((free - more) / 3)))


def bits_for(largest: float, columns: int) -> int:
    """Return the bits that coefficients may have, so that scores up to this size fit."""
    return min(MOST_BITS, WORD - 2 * columns - math.ceil(math.log2(max(largest, 2.0**-20))))


def check_room(rows: int, batch: int, lengths: Lengths) -> None:
    """Refuse rows that leave no room for steps of any size, as far as lengths are known before training.

    Steps that are twice as large have twice the bits, and take twice the room.
    """
    room = ROOM * lengths.longest * lengths.all * math.sqrt(min(batch, rows))
    significant = WORD - 2 * COARSEST - math.log2(max(room, 1e-300))
    if significant < FEWEST:
        raise _no_room(rows, lengths.longest, significant)


def _no_room(rows: int, longest: float, significant: float) -> FixedPointOverflow:
    fewer = rows * 4.0 ** (significant - FEWEST)  # the room grows with the root of all squares
    return FixedPointOverflow(
        f"blind training: {rows:,} rows of length up to {longest:.3g} leave no room for steps in words of 64 "
        f"bits; scale the columns (data.scale = 'zscore'), clip outliers, train on about {fewer:,.0f} rows, "
        "or set secure.labels = 'clear'"
    )


@dataclass
class Slot:
    """One shared vector a class: how its numbers are written, and how long it may have become."""

    lengths: Lengths
    bits: int
    rng: np.random.Generator
    squares: Floats  # no vector's squared length was larger, before the batches of now
    ahead: int = 1  # batches in flight
    peak: Floats | float = 0.0  # of the batches of now, the largest squared length of coefficients
    grew: float = 0.0  # what the batches before them added to a length, at the most

    @property
    def length(self) -> Floats:
        """The most that a vector is long now, one number a class."""
        found: Floats = np.sqrt(np.maximum(self.squares, 0.0) + self._grown)
        return found

    @property
    def _grown(self) -> Floats | float:
        return (2 * self.ahead - 1) * self.lengths.all**2 * self.peak

    @property
    def limit(self) -> float:
        """The size from which on a score wraps around."""
        return 2.0 ** (WORD + 1 - 2 * self.lengths.bits - self.bits)

    def fits(self, length: float) -> bool:
        """Return whether scores of a vector so long can be read."""
        return self.lengths.longest * length < self.limit

    def coarse(self, usual: float, rows: int) -> bool:
        """Return whether coefficients of this size are rounded at random; an error if they would be lost."""
        significant = self.bits + math.log2(max(usual, 1e-300))
        if significant < FEWEST:
            raise _no_room(rows, self.lengths.longest, significant)
        return significant < COARSE

    def written(self, t: Floats, *, coarse: bool = False) -> tuple[Words, Floats]:
        """Return coefficients as words, [classes, rows], and the numbers that these words are."""
        scaled = t * 2.0**self.bits
        if not float(np.abs(scaled).max(initial=0.0)) < 2.0**62:
            raise FixedPointOverflow("a step of blind training does not fit the fixed-point range")
        rounded = np.floor(scaled + self.rng.random(scaled.shape)) if coarse else np.rint(scaled)
        words = np.atleast_2d(rounded.astype(np.int64).view(np.uint64).T)
        return words, rounded * 2.0**-self.bits

    def write(self, t: Floats, z: Floats, *, coarse: bool = False) -> tuple[Words, Floats]:
        """Return the same for a batch whose rows had the scores z when they were asked for: the vector
        moves."""
        words, sent = self.written(t, coarse=coarse)
        self.squares = self.squares + 2 * (sent * z).sum(axis=0)
        self.peak = np.maximum(self.peak, (sent * sent).sum(axis=0))
        return words, sent

    def settle(self, squares: Floats | None = None) -> None:
        """Begin to add up again: an epoch is over, or squared lengths are known."""
        if np.any(self.peak):
            self.grew = math.sqrt(float(np.max(self._grown)))
        self.squares, self.peak = self.length**2 if squares is None else squares, 0.0

    def value(self, total: Words, length: Floats | None = None) -> Floats:
        """Return scores that came back as words, as [rows, classes]; refused if they could have wrapped
        around.

        `length` is the vector's when it was asked for them, if that was before now.
        """
        longest = float(np.max(self.length if length is None else length))
        if not self.fits(longest):
            raise FixedPointOverflow(
                f"blind training: a score may have reached {self.lengths.longest * longest:.3g}, beyond the "
                f"range of {self.limit:.3g}; use a smaller step, scale the columns, or set secure.labels = "
                "'clear'"
            )
        z: Floats = total.view(np.int64).T.astype(np.float64) * 2.0 ** -(2 * self.lengths.bits + self.bits)
        return z
