"""The grid on which values are written in whole numbers, so that whole noise hides them.

Noise has always the deviation SCALE (`privacy.discrete`). How much it hides follows from how many steps of
the grid two values can lie apart: with noise of `multiplier` times their largest distance, the sensitivity, a
step is `multiplier` sensitivity / SCALE. A value is rounded to the grid before it gets noise, and its bound
is a whole number of steps, rounded down: rounding moves no two values further apart than was accounted for.
Everything that follows, also the way back to doubles, is computed from the noisy whole number alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from colonnade.arrays import Floats, Numbers, Rows
from colonnade.errors import JobError
from colonnade.privacy.discrete import SCALE


@dataclass(frozen=True)
class Grid:
    """Values of at most `bound` in each coordinate, in whole numbers of at most `steps`."""

    bound: float
    steps: int

    @staticmethod
    def of(bound: float, sensitivity: float, multiplier: float) -> Grid:
        """Return the grid on which noise of SCALE is `multiplier` times the sensitivity, or a little more.

        >>> Grid.of(1.0, 2.0, 4.0)
        Grid(bound=1.0, steps=2097152)
        """
        steps = int(SCALE * bound / (sensitivity * multiplier))
        if steps < 1:
            raise JobError(
                f"privacy: noise of {multiplier:.3g} times what it hides drowns everything; raise "
                "privacy.epsilon, or train fewer epochs"
            )
        return Grid(bound, steps)

    @property
    def deviation(self) -> float:
        """How large the noise is, as a value."""
        return self.bound * SCALE / self.steps

    def whole(self, values: Numbers) -> Rows:
        """Return values in steps, the nearest that lies within the bound."""
        rounded = np.rint(np.asarray(values, dtype=np.float64) / self.bound * self.steps)
        return np.clip(rounded, -self.steps, self.steps).astype(np.int64)

    def values(self, whole: Rows) -> Floats:
        """Return steps as values."""
        return whole.astype(np.float64) * (self.bound / self.steps)
