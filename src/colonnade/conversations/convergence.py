"""When a run is over, and how it ended: the loss stopped falling, still falls, or diverged.

The evaluator decides, from the losses that it measures. A run whose steps keep their size ends by itself:
once the loss falls by no more than `tolerance` of itself an epoch, several times in a row. A run whose steps
fade to nothing over its epochs would stop falling however far it is from the optimum. So it makes all its
epochs, and that its loss no longer falls proves nothing: it has not converged if the last quarter of them
still brought something, and otherwise only a pooled optimum can tell (`run.gather_result`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from colonnade.errors import Diverged
from colonnade.job.plan import Pace
from colonnade.state import Declared

PATIENCE = 3  # measurements in a row without a fall
NOISE = 10.0  # times the fall that counts as none: a rise that does, too
LITTLE = 0.05  # of the loss without training, by which noise alone may end above it
LATE_GAIN = 0.01  # the part of all that a run gained, which its last quarter may bring
ADVICE = (
    "step = 'auto', scale = 'zscore', numbers to predict in units in which they are near 1, or for a linear "
    "model algorithm = 'lbfgs', which needs no step"
)


@dataclass
class Settling:
    """Sees whether the loss has stopped falling, one measurement after another."""

    tolerance: float
    start: float  # the loss where every score is zero
    patience: int = PATIENCE
    best: float = math.inf
    first: float = math.inf  # loss that was measured: by then a label far from zero has found its mean
    epoch: float = 0.0
    calm: int = 0

    def settled(self, loss: float, epoch: float) -> bool:
        """Take in the loss after this many epochs; returns whether it fell too little, often enough in a row.

        >>> seen = Settling(tolerance=0.01, start=1.0, patience=2)
        >>> [seen.settled(loss, epoch) for epoch, loss in enumerate([0.8, 0.799, 0.7, 0.7, 0.699], 1)]
        [False, False, False, False, True]
        """
        fall = min(self.best, self.start) - loss
        self.first = min(self.start, loss) if math.isinf(self.first) else self.first
        scale = max(abs(loss), 0.01 * abs(self.first - loss))  # the best loss may be zero
        least = self.tolerance * scale * (epoch - self.epoch)
        calm = -NOISE * least <= fall <= least  # a loss that jumps about has not settled
        self.calm = self.calm + 1 if calm else 0
        self.best, self.epoch = min(self.best, loss), epoch
        return self.calm >= self.patience


def faded_out(losses: Sequence[tuple[float, float]], start: float) -> bool:
    """Return whether a run whose steps fade gained next to nothing in its last quarter; losses as (epoch,
    loss).

    >>> faded_out([(1, 0.5), (2, 0.4), (3, 0.301), (4, 0.3)], start=0.7), faded_out([(4, 0.3)], start=0.7)
    (True, False)
    """
    last, end = losses[-1]
    before = [loss for epoch, loss in losses if epoch <= 0.75 * last] or [start]
    return before[-1] - end <= LATE_GAIN * max(start - end, 0.0)


@dataclass
class Ending:
    """Decides at the evaluator when a run is over. `start` is the loss where every score is zero."""

    STATE = Declared(kept=("settling", "converged", "stopped"))

    pace: Pace
    target: float | None
    start: float
    strict: bool = True  # False: noise on replies, or a paper to the letter, may end anywhere: no error
    converged: bool | None = None
    stopped: bool = False  # a callback has seen enough
    advice: str = f"use a smaller step: {ADVICE}"

    def __post_init__(self) -> None:
        self.settling = Settling(self.pace.tolerance, self.start)

    def over(self, loss: float, epoch: float) -> bool:
        """Return whether a run is over that has this loss after this many epochs."""
        if self.pace.open:
            self.converged = self.settling.settled(loss, epoch)
        # the others listen for an end only where one may come
        enough = self.stopped and (self.pace.open or self.target is not None)
        return enough or bool(self.converged) or (self.target is not None and loss <= self.target)

    def close(self, losses: Sequence[tuple[float, float]]) -> None:
        """Say how the run ended, from all its losses as (epoch, loss)."""
        if self.pace.fades and self.pace.tolerance:
            self.converged = None if faded_out(losses, self.start) else False

    def check(self, loss: float, penalty: float, *, final: bool) -> bool:
        """Return whether a run ends with a loss above that of scores of zero, where it may; raise where not.

        A loss or penalty that is not finite is an error in any run. A network's penalty is no sign of steps
        that are too long: its weights do not begin at zero.
        """
        if not math.isfinite(loss + penalty):
            raise Diverged(f"the loss is not finite any more; {self.advice}")
        above = final and loss > self.start + 1e-6 * abs(self.start)
        if above and not self.strict:
            self.converged = False
        elif above:
            little = loss <= (1 + LITTLE) * self.start
            doubt = "perhaps these columns say nothing of the label; or " if little else ""
            raise Diverged(
                f"the loss is {loss:.4g} after training and {self.start:.4g} without any: {doubt}the steps "
                f"are too long for this data; {self.advice}"
            )
        return above
