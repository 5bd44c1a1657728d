"""Keeps quasi-Newton steps from running away: where a measurement is worse than the best before, all go back.

H is made from few rows, and on some data it is wrong where it matters: a batch with a row unlike all that H
has seen, or rare positives. The evaluator measures the loss of all rows at every mark. If it has risen, every
party takes its weights back to those of the best mark, forgets the pairs since then, and makes shorter steps
from there on. The evaluator's word rides with its next answer to a step, so that all parties act on it at the
same step; as long as the loss falls nothing changes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from colonnade.arrays import Floats

SHORTER = 0.25
RISE = 1e-3  # as a part of the loss: less than this is noise


@dataclass
class Watch:
    """Compares the losses at marks; at the evaluator. `word` is what it has to tell the others next."""

    best: float = math.inf
    word: float = 0.0

    def measured(self, mark: int, loss: float) -> None:
        """Take in the loss at a mark: the new best, or one to go back from.

        >>> watch = Watch()
        >>> watch.measured(10, 0.5)
        >>> watch.said(), watch.said()
        (10.0, 0.0)
        >>> watch.measured(20, 0.6)
        >>> watch.said()
        -1.0
        """
        if loss < self.best:
            self.best, self.word = loss, float(mark)
        elif loss > self.best + RISE * abs(self.best):
            self.word = -1.0

    def said(self) -> float:
        """The word, which is said once."""
        word, self.word = self.word, 0.0
        return word


@dataclass
class Caution:
    """How much shorter steps have become, and the weights to go back to; alike at all parties."""

    best: Floats
    marked: dict[int, Floats] = field(default_factory=dict)
    factor: float = 1.0

    def mark(self, number: int, w: Floats) -> None:
        """Keep the weights of a mark until the evaluator has said what it thinks of them."""
        self.marked[number] = w.copy()

    def heed(self, word: float, w: Floats) -> bool:
        """Act on a word; returns whether the weights, which are changed in place, went back."""
        if word > 0:
            self.best = self.marked[int(word)]
            self.marked = {number: kept for number, kept in self.marked.items() if number > word}
        if word < 0:
            w[:] = self.best
            self.factor *= SHORTER
        return word < 0
