"""The posterior mean of a label, given all noisy draws of it: bounded like a label, at no cost of privacy.

`NoisyLabels` draws again for every reply, and the more replies there are the larger is its noise: with three
epochs or more a draw is many times larger than a label, and a network that follows it does not settle. But
all earlier draws together say more than the last one. With S the sum of a row's draws, of noise
sigma each, and labels that are equally likely before the first draw,

    E[one-hot | draws] = softmax(S / sigma^2)        several classes
    E[+-1 | draws]     = tanh(S / sigma^2)           two classes
    mean of the draws, within +-clip                 a number

This is computed from what was released and from nothing else, so it tells no more than the draws do, and the
accountant counts the same.
"""

from __future__ import annotations

import numpy as np

from colonnade.arrays import Numbers, Rows
from colonnade.losses import Loss
from colonnade.privacy.label_noise import NoisyLabels
from colonnade.state import Declared


class Posterior:
    """Labels to train on: every call draws once for each row and returns the mean given all its draws."""

    STATE = Declared(kept=("sum",), parts=("labels",))

    def __init__(self, labels: NoisyLabels, loss: Loss, clip: float) -> None:
        self.labels, self._task, self._clip = labels, loss.task, clip
        self.sum = np.zeros_like(labels.points, dtype=np.float64)

    def __call__(self, rows: Rows) -> Numbers:
        self.sum[rows] += self.labels(rows)
        total: Numbers = self.sum[rows]
        match self._task:
            case "binary":
                return np.tanh(total / self.labels.grid.deviation**2)
            case "multiclass":
                from scipy.special import softmax

                mean: Numbers = softmax(total / self.labels.grid.deviation**2, axis=-1)
                return mean
        return np.clip(total / self.labels.drawn[rows], -self._clip, self._clip)
