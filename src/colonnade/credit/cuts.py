"""Every place at which scores can be cut into two, and what is right and wrong on either side.

Equal scores are one threshold: all rows of one score are accepted together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from colonnade.arrays import Floats

Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Thresholds:
    """How many positive and negative rows score at least each threshold, the highest threshold first."""

    at: Floats
    true: Floats  # positives at or above
    false: Floats  # negatives at or above

    @staticmethod
    def of(z: Floats, positive: Flags) -> Thresholds:
        """Return one threshold for every different score."""
        values, inverse, rows = np.unique(-z, return_inverse=True, return_counts=True)
        found: Floats = np.bincount(inverse, positive, len(values)).astype(np.float64)
        return Thresholds(-values, np.cumsum(found), np.cumsum(rows - found))

    @property
    def tpr(self) -> Floats:
        """The part of the positives that is at or above each threshold, from 0 to 1."""
        return np.concatenate([[0.0], self.true / self.true[-1]])

    @property
    def fpr(self) -> Floats:
        """The part of the negatives that is at or above each threshold, from 0 to 1."""
        return np.concatenate([[0.0], self.false / self.false[-1]])

    @property
    def precision(self) -> Floats:
        """The part of the rows at or above each threshold that is positive."""
        return self.true / (self.true + self.false)

    def average_precision(self) -> float:
        """Return the area under the precision-recall curve, as a sum of steps."""
        return float(np.sum(np.diff(self.tpr) * self.precision))

    def ks(self) -> tuple[float, float]:
        """Return KS and its threshold: the largest distance between the two classes, and the score where it
        is."""
        apart = np.abs(self.tpr - self.fpr)[1:]
        best = int(apart.argmax())
        return float(apart[best]), float(self.at[best])


@dataclass(frozen=True)
class Confusion:
    """Rows of a two-class problem by truth and decision."""

    true_positive: int
    false_positive: int
    false_negative: int
    true_negative: int

    @staticmethod
    def at(threshold: float, z: Floats, positive: Flags) -> Confusion:
        """Return the counts where a row is taken as positive from this score on."""
        taken = z >= threshold
        counts = (taken & positive, taken & ~positive, ~taken & positive, ~taken & ~positive)
        return Confusion(*(int(np.count_nonzero(rows)) for rows in counts))

    def rates(self) -> dict[str, float]:
        """Return accuracy, precision, recall, specificity and F1; NaN where nothing was to divide by."""
        tp, fp, fn, tn = self.true_positive, self.false_positive, self.false_negative, self.true_negative
        return {
            "accuracy": part(tp + tn, tp + fp + fn + tn),
            "precision": part(tp, tp + fp),
            "recall": part(tp, tp + fn),
            "specificity": part(tn, tn + fp),
            "F1": part(2 * tp, 2 * tp + fp + fn),
        }


def part(some: float, all_: float) -> float:
    """Return a quotient; NaN where there is nothing to divide by."""
    return some / all_ if all_ else float("nan")


def confusion_matrix(y: NDArray[np.int64], predicted: NDArray[np.int64], classes: int) -> NDArray[np.int64]:
    """Return rows by true class (down) and predicted class (across)."""
    counted = np.bincount(y * classes + predicted, minlength=classes * classes)
    return counted.reshape(classes, classes)
