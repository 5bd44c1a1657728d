"""How loud the noise of gradients is: some rows, or as many as an epsilon asks for.

A label moves theta of its row by 1 at the most, so the gradients of a pass by that row of columns, each
over its largest number. With noise of S rows on every gradient of both blocks, a run of T passes is one
Gaussian release of deviation S / (|row| sqrt T): epsilon of that is exact (Balle and Wang 2018, Theorem 8).
What else is told (inner products, reaches) follows from noisy gradients alone if A's own block has noise as
well: `epsilon` asks for that, and a plain S for noise on what the other is told.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from colonnade.conversations.own_noise import STEPS
from colonnade.job.plan import Noisy
from colonnade.privacy.gaussian import deviation_for


@dataclass(frozen=True)
class Loudness:
    """Noise of this many rows, as a code that both know; epsilon where A promised one."""

    code: int
    epsilon: float | None = None

    @property
    def rows(self) -> float:
        """The deviation of noise, in rows."""
        return float(2.0 ** (self.code / STEPS))

    @staticmethod
    def of(terms: Noisy, heaviest: float, longest: float) -> Loudness:
        """Return how loud noise must be, of which the heaviest row has this weight, 1 being usual, and the
        longest this length.

        Noise of usual rows would not hide a row that weighs hundreds of times as much: the label holder, who
        chooses weights, would read the other's score of it.
        """
        rows = terms.noise
        if terms.epsilon is not None:
            rows = deviation_for(terms.epsilon, terms.delta) * longest * math.sqrt(terms.releases)
        rows *= heaviest
        code = math.ceil(STEPS * math.log2(max(rows, 2.0**-20)) - 1e-9)
        return Loudness(code, terms.epsilon)
