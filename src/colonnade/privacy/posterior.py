"""The posterior mean of a label, given all noisy draws of it: bounded like a label, at no cost of privacy.

`NoisyLabels` draws anew for every reply, and the more replies there are the larger is its noise: with three
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
from colonnade.privacy.labels import NoisyLabels


class Posterior:
    """Labels to train on: every call draws once for each row and returns the mean given all its draws."""

    def __init__(self, release: NoisyLabels, loss: Loss, clip: float) -> None:
        self._release, self._task, self._clip = release, loss.task, clip
        self._sum = np.zeros_like(release.points, dtype=np.float64)
        self._draws = np.zeros(len(release.points), dtype=np.int64)

    def __call__(self, rows: Rows) -> Numbers:
        self._sum[rows] += self._release(rows)
        self._draws[rows] += 1
        total: Numbers = self._sum[rows]
        match self._task:
            case "binary":
                return np.tanh(total / self._release.deviation**2)
            case "multiclass":
                from scipy.special import softmax

                mean: Numbers = softmax(total / self._release.deviation**2, axis=-1)
                return mean
        return np.clip(total / self._draws[rows], -self._clip, self._clip)
