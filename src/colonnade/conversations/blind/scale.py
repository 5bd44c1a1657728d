"""How numbers are written where scores are hidden: nobody sees whether they fit, so all is fixed before."""

from __future__ import annotations

import math
from dataclasses import dataclass

from colonnade.losses import SharedForm

BITS = 12  # of a column's fraction


@dataclass(frozen=True)
class Scale:
    """How numbers are written: bits of what is added, of sines, and of the factor of a division."""

    bits: int
    sines: int
    factor: int

    @staticmethod
    def of(form: SharedForm, l2: float, rate: float) -> Scale:
        """Return the bits for steps of `rate`, the step over the rows of a batch."""
        small = math.log2(rate)
        if form == "division":
            return Scale(min(24, max(16, 12 - math.floor(small))), 0, 10 - math.floor(small))
        bits = 28 if l2 else 34
        return Scale(bits, min(16, max(8, round((bits + small) / 2))), 0)

    @property
    def weights(self) -> int:
        """Bits of fraction of weights."""
        return BITS + self.bits

    @property
    def scores(self) -> int:
        """Bits of fraction of scores."""
        return 2 * BITS + self.bits

    @property
    def widest(self) -> float:
        """The largest theta of the squared loss that a division takes."""
        return 2.0 ** (62 - self.scores - 11)
