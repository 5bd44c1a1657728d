"""A party's own columns: rare ones left out, in whole numbers, with the noise that hides a row of them.

Columns are scaled so that all are equally long and no product can wrap around: |x_j| |theta| < t / 2 bounds
every inner product (Cauchy and Schwarz), |theta| being bounded in every pass again. The scale stays at home.
What is told of a column is how large its largest number is in that scale: noise of S rows is S times that.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from colonnade.arrays import Floats, Matrix, Rows
from colonnade.conversations.linear.noisy.rare import steady, stretches
from colonnade.conversations.own_noise import STEPS, largest_of
from colonnade.engines.engine import Engine
from colonnade.errors import FixedPointOverflow, JobError
from colonnade.secure.lattice.columns import TransformedColumns
from colonnade.secure.lattice.parameters import CoefficientParameters, SlotParameters

ROWS = 2**20  # of a table of transformed columns
LEAST_BITS = 0.5  # of a column's usual number: rounded more coarsely it would not be that column
MOST_BITS = 7.0
CIPHERTEXT, ANSWER = 6.25, 4.0  # bytes a coefficient
TRANSFORMED = 160  # bytes a row of a stretch, while four columns are transformed
TOLD = 240
"""Bytes a row that functions of scores take at once where gradients are told: 16 a term (each is there twice,
as made and as sent) of the loss of scores that reach to 8, which is 12 terms, and 48 for scores, theta and
labels. Where they reach to 22.6, which is as far as they count, 33 terms take 580."""
PARTED = 400
"""The same where weights are in parts: 8 for each of the 32 waves of the loss, twice for some thousand rows
alone, and 144 for words of both blocks, angles, theta and labels."""


def theta_bits(slots: SlotParameters, rows: int) -> int:
    """Return bits of a factor of theta: 6, and up to 8 where rows are few."""
    spare = np.log2(slots.plain / 2) - np.log2(max(rows, 1)) - 6
    return int(min(max(spare // 2, 6), 8))


def together_for(ring: CoefficientParameters, rows: int, width: int) -> int:
    """Return how many columns share an answer, so that vector and answers together are the fewest bytes."""

    def cost(together: int) -> float:
        return CIPHERTEXT * -(-rows * together // ring.degree) + ANSWER * -(-width // together)

    options = [1, 2, 4, 8, 16, 32, 64, 128]
    return min(options, key=cost)


def length_for(slots: SlotParameters, rows: int) -> float:
    """Return how long every column is in whole numbers, so that no sum with theta wraps around."""
    nominal = 2.0 ** (2 * theta_bits(slots, rows))
    usual = min(slots.plain / 2 / (nominal * 1.25 * rows), 2**MOST_BITS)  # number of a column
    if usual < 2**LEAST_BITS:
        raise FixedPointOverflow(
            f"secure.products = 'encrypted': {rows:,} rows leave columns less than a bit in sums modulo "
            f"{slots.plain}; train on fewer rows"
        )
    return float(usual * np.sqrt(rows))


def cuts_of(rows: int) -> list[slice]:
    """Return stretches of rows that have a table each."""
    return [slice(at, min(at + ROWS, rows)) for at in range(0, rows, ROWS)]


def refuse_large(rows: int, width: int, memory: int, of_scores: int, key: str) -> None:
    """Refuse columns that take more than a party may use: 16 bytes a number, as it is and transformed; and
    first 8 more, and `TRANSFORMED` a row, of the stretch that is prepared, later `of_scores` of every
    row."""
    preparing = (8 * width + TRANSFORMED) * min(rows, ROWS)
    due = 16 * rows * width + max(preparing, of_scores * rows)
    if due > memory:
        raise JobError(
            f"{key}: {rows:,} rows of {width:,} columns take {due // 2**20:,} MiB and the party may "
            f"use {memory // 2**20:,}; raise `memory` (data.memory on one machine, in a party's own settings "
            "between companies), or train on fewer rows"
        )


def whole_numbers(
    parts: Iterable[Floats], shape: tuple[int, int], rounding: np.random.Generator
) -> NDArray[np.int64]:
    """Return numbers that come in stretches of rows, rounded by chance: an error of a number, not of a
    column. What is left of the shape is 0."""
    whole, at = np.zeros(shape, dtype=np.int64), 0
    for part in parts:
        whole[at : at + len(part)] = np.floor(part + rounding.random(part.shape))
        at += len(part)
    return whole


class HomeColumns:
    """What a party computes with, all of it at home; `kept` are the places of columns that train."""

    def __init__(
        self,
        X: Matrix,
        slots: SlotParameters,
        ring: CoefficientParameters,
        memory: int,
        engine: Engine,
        rounding: np.random.Generator,
    ) -> None:
        self.X, self.rows = X, int(X.shape[0])
        self.width = int(X.shape[1])
        refuse_large(self.rows, self.width, memory, TOLD, "secure.products = 'encrypted'")
        self.kept: NDArray[np.intp] = steady(X)
        self._kernels = engine.rows(X)
        largest, squares = np.zeros(len(self.kept)), np.zeros(len(self.kept))
        for part in stretches(X, slice(0, self.rows), self.kept):
            np.maximum(largest, np.abs(part).max(axis=0, initial=0.0), out=largest)
            squares += (part**2).sum(axis=0)
        self.largest = largest
        self.length = length_for(slots, self.rows)
        self.scale = self.length / np.sqrt(np.maximum(squares, 1e-300))
        self.together = together_for(ring, min(self.rows, ROWS), len(self.kept))
        self._tables = self._transformed(ring, rounding)

    @property
    def cuts(self) -> list[slice]:
        """Stretches of rows that have a table each."""
        return cuts_of(self.rows)

    def _transformed(self, ring: CoefficientParameters, rng: np.random.Generator) -> list[TransformedColumns]:
        tables = []
        for cut in self.cuts:
            numbers = (part * self.scale for part in stretches(self.X, cut, self.kept))
            whole = whole_numbers(numbers, (cut.stop - cut.start, len(self.kept)), rng)
            # 0: |x| |theta| < t / 2 is what bounds sums here, not the largest number of theta
            tables.append(TransformedColumns(ring, whole, 0, self.together))
        return tables

    @property
    def tables(self) -> list[TransformedColumns]:
        """The columns as polynomials, a table for every stretch of rows."""
        return self._tables

    @property
    def codes(self) -> Rows:
        """How large every column's largest number is, as it is told."""
        found: Rows = np.ceil(STEPS * np.log2(np.maximum(self.largest * self.scale, 1e-9))).astype(np.int64)
        return found

    @property
    def least_code(self) -> int:
        """The least that a code of anybody's column can be: no largest number is below the usual one, which
        is the same for all columns, but for rounding."""
        return int(np.floor(STEPS * np.log2(self.length / np.sqrt(self.rows)))) - 1

    @property
    def longest(self) -> float:
        """The length of the longest row, every column in units of its largest number."""
        unit = np.where(self.largest > 0, self.largest, 1.0)
        parts = stretches(self.X, slice(0, self.rows), self.kept)
        return max(
            (float(np.sqrt(((part / unit) ** 2).sum(axis=1).max(initial=0.0))) for part in parts),
            default=0.0,
        )

    def spread(self, rows: float) -> Floats:
        """Return the deviation of noise of this many rows in the gradient of every column that is kept."""
        told: Floats = largest_of(self.codes) / self.scale
        return rows * told / self.rows

    def scores(self, w: Floats) -> Floats:
        """Return the own part of all scores."""
        return self._kernels.scores(0, self.rows, w)

    def gradient(self, theta: Floats) -> Floats:
        """Return the mean gradient that a theta gives which this party knows."""
        found: Floats = self._kernels.gradient(0, self.rows, theta)[self.kept] / self.rows
        return found
