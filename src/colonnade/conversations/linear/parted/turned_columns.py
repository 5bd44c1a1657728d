"""A party's own columns, turned so that its own second moments are 1, in whole numbers.

With M = c X'X / n + P, c the curvature of a row and P the penalty, W has W'MW = 1 and W'PW = D: then no
direction is steeper than 1 within a block, nor than 2 over both, and a step that both know is right. Weights
w~ of turned columns XW stand for w = W w~. Directions in which columns say nothing are left out.

Rows of D below those of the data add the penalty's gradient to an inner product with theta, if the weights
themselves stand below theta (`Sizes.penalty`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from colonnade.arrays import Floats, Matrix
from colonnade.conversations.linear.encrypted.home_columns import (
    PARTED,
    cuts_of,
    refuse_large,
    whole_numbers,
)
from colonnade.conversations.linear.noisy.rare import gram, stretches
from colonnade.conversations.linear.parted.wave_theta import PERIOD
from colonnade.errors import FixedPointOverflow, JobError
from colonnade.secure.lattice.columns import TransformedColumns
from colonnade.secure.lattice.parameters import CoefficientParameters

FLAT = 1e-6  # of the steepest direction: what is flatter says nothing
ROOM = 4.0  # times |x| |theta| / n at the start, within which an inner product stays
LEAST = 9  # bits of columns and theta together
SCORED = 12  # bits of a column's fraction where rows are scored


@dataclass(frozen=True)
class PartedSizes:
    """How finely numbers are written: `columns` and `theta` bits of fraction; a whole turn of scores is
    t."""

    columns: int
    theta: int
    plain: int
    rows: int

    @staticmethod
    def of(plain: int, rows: int, spread: float) -> PartedSizes:
        """Return as many bits as leave inner products a quarter of the range; `spread` is a row's usual
        weight."""
        bits = min(24, int(np.floor(np.log2(plain / 4 / (ROOM * rows * spread)))))
        if bits < LEAST:
            raise FixedPointOverflow(
                f"secure.reveal = 'never': {rows} rows leave columns and theta {bits} bits in sums modulo "
                f"{plain}, and {LEAST} are the least; train on fewer rows"
            )
        return PartedSizes(bits // 2, bits - bits // 2, plain, rows)

    @property
    def weights(self) -> float:
        """Units of a weight: of which column times weight is a score whose whole turn is t."""
        return self.plain / PERIOD * 0.5**self.columns

    @property
    def step(self) -> float:
        """What a unit of an inner product is as a change of weights, in units of these."""
        return self.weights / self.rows * 0.5 ** (self.columns + self.theta)

    @property
    def penalty(self) -> float:
        """What a row of the penalty is for D = 1, its weight standing below theta."""
        return 1 / self.step


class TurnedColumns:
    """What a party computes with, all of it at home: `turn` is W, `penalty` D."""

    def __init__(self, X: Matrix, penalty: Floats, curvature: float, memory: int) -> None:
        self.X, self.rows = X, int(X.shape[0])
        refuse_large(self.rows, int(X.shape[1]), memory, PARTED, "secure.reveal = 'never'")
        moments = gram(X) * (curvature / self.rows) + np.diag(penalty)
        scale = 1 / np.sqrt(np.maximum(np.diag(moments), 1e-300))
        values, vectors = np.linalg.eigh(moments * np.outer(scale, scale))
        sound = values > FLAT * max(float(values.max(initial=0.0)), FLAT)
        root = scale[:, None] * vectors[:, sound] / np.sqrt(values[sound])
        bend, within = np.linalg.eigh(root.T @ (penalty[:, None] * root))
        self.penalty: Floats = np.maximum(bend, 0.0)
        self.turn: Floats = root @ within
        if not self.turn.shape[1]:
            raise JobError("secure.reveal = 'never': no column says anything")

    @property
    def width(self) -> int:
        """How many directions there are."""
        return int(self.turn.shape[1])

    def tables(
        self, ring: CoefficientParameters, sizes: PartedSizes, rounding: np.random.Generator
    ) -> list[TransformedColumns]:
        """Return turned columns as polynomials, a table for every stretch of rows; the last has the penalty
        too."""
        found = []
        for cut in cuts_of(self.rows):
            last = self.width if cut.stop == self.rows else 0
            turned = (part @ self.turn * 2.0**sizes.columns for part in stretches(self.X, cut))
            whole = whole_numbers(turned, (cut.stop - cut.start + last, self.width), rounding)
            if last:
                whole[-last:] = np.diag(np.rint(self.penalty * sizes.penalty))
            # 0: |x| |theta| < t / 4 is what bounds sums here
            found.append(TransformedColumns(ring, whole, 0))
        return found
