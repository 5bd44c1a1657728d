"""A party's own columns: rare ones left out, in whole numbers, with the noise that hides a row of them.

Columns are scaled so that all are equally long and no product can wrap around: |x_j| |theta| < t / 2 bounds
every inner product (Cauchy and Schwarz), |theta| being bounded in every pass again. The scale stays at home.
What is told of a column is how large its largest number is in that scale: noise of S rows is S times that.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from colonnade.arrays import Floats, Matrix, Rows
from colonnade.conversations.linear.noisy.rare import dense, steady
from colonnade.conversations.own_noise import STEPS, largest_of
from colonnade.engines.engine import Engine
from colonnade.errors import FixedPointOverflow, JobError
from colonnade.secure.lattice.columns import TransformedColumns
from colonnade.secure.lattice.parameters import CoefficientParameters, SlotParameters

ROWS = 2**20  # of a table of transformed columns
LEAST_BITS = 0.5  # of a column's usual number: rounded more coarsely it would not be that column
MOST_BITS = 7.0
CIPHERTEXT, ANSWER = 6.25, 4.0  # bytes a coefficient


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
        due = 24 * self.rows * self.width
        if due > memory:
            raise JobError(
                f"secure.products = 'encrypted': {self.rows} rows of {self.width} columns take "
                f"{due // 2**20} MiB as words and the party may use {memory // 2**20}; raise limits.memory, "
                "or train on fewer rows"
            )
        self.kept: NDArray[np.intp] = steady(X)
        self._kernels = engine.rows(X)
        largest, squares = np.zeros(len(self.kept)), np.zeros(len(self.kept))
        for part in self._stretches():
            np.maximum(largest, np.abs(part).max(axis=0, initial=0.0), out=largest)
            squares += (part**2).sum(axis=0)
        self.largest = largest
        nominal = 2.0 ** (2 * theta_bits(slots, self.rows))
        self.length = slots.plain / 2 / (nominal * 1.25 * np.sqrt(self.rows))  # of a column in whole numbers
        self.length = min(self.length, 2**MOST_BITS * np.sqrt(self.rows))
        if self.length / np.sqrt(self.rows) < 2**LEAST_BITS:
            raise FixedPointOverflow(
                f"secure.products = 'encrypted': {self.rows} rows leave columns less than a bit in sums "
                f"modulo {slots.plain}; train on fewer rows"
            )
        self.scale = self.length / np.sqrt(np.maximum(squares, 1e-300))
        self.together = together_for(ring, min(self.rows, ROWS), len(self.kept))
        self._tables = self._transformed(ring, rounding)

    def _stretches(self) -> list[Floats]:
        return [dense(self.X, cut, self.kept) for cut in self.cuts]

    @property
    def cuts(self) -> list[slice]:
        """Stretches of rows that have a table each."""
        return [slice(at, min(at + ROWS, self.rows)) for at in range(0, self.rows, ROWS)]

    def _transformed(self, ring: CoefficientParameters, rng: np.random.Generator) -> list[TransformedColumns]:
        tables = []
        for part in self._stretches():
            # by chance: an error of a number, not of a column
            whole = np.floor(part * self.scale + rng.random(part.shape)).astype(np.int64)
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
        return max(
            (float(np.sqrt(((part / unit) ** 2).sum(axis=1).max(initial=0.0))) for part in self._stretches()),
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
