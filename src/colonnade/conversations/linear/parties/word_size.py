"""How much room the numbers of a blind run need in words of 64 bits: how finely each kind is written.

The label holder decides from the lengths of the owners' rows and the size of a step. Scores of a vector grow
with its length, so what matters is how long p may become before its coefficients are sent again
(`label_holder`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from colonnade.conversations.blind.fixed_point import ROOM, WORD, Lengths, column_bits
from colonnade.conversations.linear.settings import LinearSettings
from colonnade.conversations.pacing.schedule import Schedule
from colonnade.errors import JobError
from colonnade.job.plan import Plan

SMALLEST = 0.25  # alpha before all coefficients are sent again


def lasting(shrink: float, rounds: int) -> int:
    """Return rounds after which alpha is so small that all coefficients are sent again: a power of two.

    Every round takes this part of it. In a run of this many rounds without a penalty it is never.

    >>> lasting(0.001, 5000), lasting(0.0, 5000)
    (1024, 5000)
    """
    if not shrink:
        return rounds
    if not shrink < 1 - SMALLEST:
        raise JobError(f"train.step times train.l2 is {shrink:g}; blind training needs it below 0.75")
    lasts = math.log(SMALLEST) / math.log1p(-shrink)
    return int(2 ** math.floor(math.log2(min(max(lasts, 1.0), 2.0**40))))


@dataclass(frozen=True)
class Headroom:
    """What steps of a plan may add to p."""

    plan: Plan[LinearSettings]
    schedule: Schedule

    def column_bits(self, lengths: Lengths) -> int:
        """Return how finely owners write their columns: as lengths of rows let them, for any size a step
        has.

        Rounding columns moves a score by about 2^-bits |w|, and |w| is about what an epoch's steps add to it.
        Rounding coefficients moves it by those of all epochs, each as often up as down, and less than that as
        steps make up for what others have lost: that much is one bit in four. Both shall be alike.
        """
        step, rows, size = self.plan.pace.step, self.schedule.rows, self.schedule.largest
        rate = rows / max(lengths.all**2, 1.0) if step == "auto" else float(step)
        room = self._growth(lengths, 1.0, rate) * size / rate
        if self.plan.settings.kind.has_mean():  # q has a coefficient for every row
            room = max(room, lengths.all * math.sqrt(rows))
        more = lengths.all**2 / rows * self.schedule.epochs / size / 16
        return column_bits(
            WORD - math.log2(max(lengths.longest * room, 1.0)), math.log2(max(more, 2**-20)) / 2
        )

    def of_an_epoch(self, lengths: Lengths, usual: float, rate: float) -> float:
        """Return the length that steps of this rate may add to p until an epoch ends, for thetas of this
        size."""
        rounds = self.schedule.per_epoch
        shrinks = rate * self.plan.objective.l2
        shrunk = (1 - shrinks) ** min(rounds, lasting(shrinks, rounds))  # alpha, by which steps are divided
        return self._growth(lengths, usual, rate) / shrunk

    def _growth(self, lengths: Lengths, usual: float, rate: float) -> float:
        """Return some times the length that the steps of an epoch usually add to p, for thetas of this size.

        Batches add to |p|^2 (`fixed_point`) their own squares, and by where they point less than
        2 rate theta^2: so it is for the squared loss, and nearly so for others.
        """
        rounds, ahead = self.schedule.per_epoch, self.plan.pace.ahead
        squares = lengths.all**2 * (usual * rate) ** 2 / self.schedule.largest
        pointed = 2 * rounds * rate * usual**2
        return ROOM * math.sqrt(min((2 * ahead - 1) * squares + pointed, rounds * squares))
