"""Whether a run has come to its end: the loss has stopped falling, still falls, or has gone astray.

The evaluator decides, from the losses it measures. A run whose steps keep their size ends by itself: once the
loss falls by no more than `tolerance` of itself an epoch, several times in a row. A run whose steps fade to
nothing over its epochs would stop falling however far it is from the optimum; it makes all its epochs, and has
converged if the last quarter of them brought next to nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from colonnade.errors import Diverged

PATIENCE = 3  # measurements in a row without a fall
LATE_GAIN = 0.01  # the part of all that was gained which a converged run may gain in its last quarter
ADVICE = "train.step = 'auto' or a smaller number, data.scale = 'zscore', or algorithm = 'lbfgs'"


@dataclass
class Settling:
    """Sees whether the loss has stopped falling, one measurement after another."""

    tolerance: float
    start: float  # the loss where every score is zero
    patience: int = PATIENCE
    best: float = math.inf
    epoch: float = 0.0
    calm: int = 0

    def settled(self, loss: float, epoch: float) -> bool:
        """Take in the loss after so many epochs; returns whether it fell too little, often enough in a row.

        >>> seen = Settling(tolerance=0.01, start=1.0, patience=2)
        >>> [seen.settled(loss, epoch) for epoch, loss in enumerate([0.8, 0.799, 0.7, 0.7, 0.699])]
        [False, False, False, False, True]
        """
        fall = min(self.best, self.start) - loss
        scale = max(abs(loss), 0.01 * abs(self.start - loss))  # some losses can be zero at their best
        calm = fall <= self.tolerance * scale * max(epoch - self.epoch, 1e-9)
        self.calm = self.calm + 1 if calm and math.isfinite(self.best) else 0
        self.best, self.epoch = min(self.best, loss), epoch
        return self.calm >= self.patience


def faded_out(losses: Sequence[tuple[float, float]], start: float) -> bool:
    """Whether a run whose steps fade gained next to nothing in its last quarter; losses as (epoch, loss).

    >>> faded_out([(1, 0.5), (2, 0.4), (3, 0.301), (4, 0.3)], start=0.7), faded_out([(4, 0.3)], start=0.7)
    (True, False)
    """
    last, end = losses[-1]
    before = [loss for epoch, loss in losses if epoch <= 0.75 * last] or [start]
    return before[-1] - end <= LATE_GAIN * max(start - end, 0.0)


def check_loss(loss: float, start: float, *, final: bool) -> None:
    """Raise if a loss is not finite or, at the end, above `start`, that of scores of zero."""
    if not math.isfinite(loss):
        raise Diverged(f"the loss is not finite any more; try a smaller step: {ADVICE}")
    if final and loss > start * (1 + 1e-6) + 1e-9:
        raise Diverged(
            f"the loss is {loss:.4g} after training and {start:.4g} without any: the steps were too long for "
            f"this data; try a smaller step: {ADVICE}"
        )
