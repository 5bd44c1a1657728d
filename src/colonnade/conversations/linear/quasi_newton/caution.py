"""Keeps quasi-Newton steps from running away: where a measurement is worse than the best before, all go back.

H is made from few rows, and on some data it is wrong where it matters: a batch with a row unlike all that H
has seen, or rare positives. The evaluator measures the loss of all rows at every mark. If it has risen, every
party takes its weights back to those of the best mark, forgets the pairs since then, and from there on H adds
an eighth as much to first-order steps. With every new best mark it adds twice as much again, since what was
wrong early need not stay so; but the second time the eighth is for good, and the third time H adds nothing
any more and first order is left, which is never taken back: its rises are noise. With plain SGD, whose noise
lasts to the end, only a large jump counts. The evaluator's word rides with its next answer to a step, so that
all parties act on it at the same step; as long as the loss falls nothing changes. A run ends with the weights
of its best mark.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from colonnade.arrays import Floats

LEFT = (1.0, 0.125, 0.125, 0.0)  # the part of what H adds that is left after going back this many times
MOST = (1.0, 1.0, 0.125, 0.0)  # the part that it can become again
RISE, JUMP = 1e-3, 0.1  # as parts of the loss: less than a rise is noise, and a jump is none
LEAP = 0.5  # what is no noise of plain SGD either


@dataclass
class Watch:
    """Compares the losses at marks; at the evaluator. `word` is what it has to tell the others next.

    Within a pass the noise of batches moves the loss: a rise counts once the best mark is `patience` rounds
    old, and a jump at once.
    """

    patience: float = 0
    jump: float = JUMP
    best: float = math.inf
    best_mark: int = 0
    word: float = 0.0

    def measured(self, mark: int, loss: float) -> None:
        """Take in the loss at a mark: the new best, or one to go back from.

        >>> watch = Watch()
        >>> watch.measured(10, 0.5)
        >>> watch.said(), watch.said()
        (10.0, 0.0)
        >>> watch.measured(20, 0.6)
        >>> watch.said()
        -10.0
        """
        least = RISE if mark - self.best_mark >= self.patience else self.jump
        if loss < self.best:
            self.best, self.best_mark, self.word = loss, mark, float(mark)
        elif loss > self.best + least * abs(self.best):
            self.word = -float(self.best_mark)

    def said(self) -> float:
        """Return the word, which is said once: the mark that is the best now, or minus the one to go back
        to."""
        word, self.word = self.word, 0.0
        return word

    def last_word(self, loss: float) -> float:
        """Return what is said at the end of the run, which has this loss: as `said`, or 0 to leave it."""
        return -float(self.best_mark) if self.best < loss else 0.0


@dataclass
class Caution:
    """How often the weights went back, and those to go back to; alike at all parties."""

    best: Floats
    marked: dict[int, Floats] = field(default_factory=dict)
    marks: int = 0
    went_back: int = 0
    factor: float = 1.0  # the part that is left of what H adds to first-order steps

    def mark(self, number: int, w: Floats) -> None:
        """Keep the weights of a mark until the evaluator has said what it thinks of them."""
        self.marks += 1
        self.marked[number] = w.copy()

    def heed(self, word: float, w: Floats, *, final: bool = False) -> bool:
        """Act on a word; returns whether the weights, which are changed in place, went back."""
        if word:
            number = abs(int(word))
            self.best = self.marked.get(number, self.best)
            self.marked = {mark: kept for mark, kept in self.marked.items() if mark > number}
        if word > 0:
            self.factor = min(2 * self.factor, MOST[self.went_back])
        back = word < 0 and (final or self.went_back < len(LEFT) - 1)
        if back:
            w[:] = self.best
            self.went_back = min(self.went_back + 1, len(LEFT) - 1)
            self.factor = LEFT[self.went_back]
        return back
