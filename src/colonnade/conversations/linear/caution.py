"""Keeps quasi-Newton steps from running away: the evaluator watches the loss, and all go back if it rises.

H is made from few rows, and on some data it is wrong where it matters: a batch with a row unlike all that H
has seen, or rare positives. The evaluator sees the scores of every batch that it dominates, so it knows
their loss for nothing. It compares stretches of batches: if one is worse than the best before it, beyond
what chance explains, every party takes its weights back to where the loss was still falling, forgets the
pairs since then, and makes shorter steps from there on. The word rides with the answer to a step, so all
parties act on it at the same step; as long as all is well nothing changes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from colonnade.arrays import Floats
from colonnade.conversations.context import Context
from colonnade.conversations.linear.settings import LinearSettings
from colonnade.losses import mean_loss

GO_ON, KEEP, BACK = 0.0, 1.0, -1.0
SHORTER = 0.25
CHANCE = 3.0  # standard errors
LEAST = 10  # batches of a stretch


@dataclass
class Watch:
    """Compares stretches of batches; at the evaluator. `start` is the loss of scores of zero."""

    stretch: int
    start: float
    losses: list[float] = field(default_factory=list)
    best: float = math.inf
    error: float = 0.0  # of the best

    def word(self, loss: float) -> float:
        """What all parties should do now that a batch has had this loss.

        >>> watch = Watch(stretch=2, start=0.7)
        >>> [watch.word(loss) for loss in (0.6, 0.58, 0.5, 0.51, 0.8, 0.82, 0.5, 0.5)]
        [0.0, 1.0, 0.0, 1.0, 0.0, -1.0, 0.0, 1.0]
        """
        self.losses.append(loss)
        if len(self.losses) < self.stretch:
            return GO_ON
        mean = float(np.mean(self.losses))
        error = float(np.std(self.losses)) / math.sqrt(len(self.losses))
        self.losses = []
        worse = mean - self.best > CHANCE * math.hypot(error, self.error)
        if worse or not mean <= self.start * (1 + CHANCE / self.stretch):
            return BACK
        if mean < self.best:
            self.best, self.error = mean, error
        return KEEP


def watch_of(context: Context[LinearSettings]) -> Watch | None:
    """The watch of a run, at the evaluator: four stretches an epoch, if that has enough of its batches."""
    if context.me != context.evaluator:
        return None
    plan, y = context.plan, context.label_holder.y
    rounds = -(-len(y) // plan.pace.batch) // len(plan.label_holders)
    start = mean_loss(context.loss, np.zeros((len(y), *plan.objective.shape)), y)
    return Watch(max(LEAST, rounds // 4), start)


@dataclass
class Caution:
    """How much shorter steps have become, and the weights to go back to; alike at all parties."""

    known: Floats  # weights after which a whole stretch went well
    latest: Floats  # those at the end of the latest stretch that did
    factor: float = 1.0

    def heed(self, word: float, w: Floats) -> bool:
        """Act on a word; returns whether the weights, which are changed in place, went back."""
        if word == KEEP:
            self.known, self.latest = self.latest, w.copy()
        if word != BACK:
            return False
        w[:] = self.known
        self.latest = self.known
        self.factor *= SHORTER
        return True
