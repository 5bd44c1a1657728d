"""Mechanisms that bound what a reply tells about the labels of its batch, and the noise they use.

Without a mechanism a reply is the mean loss at every point the client asked for. It gives the labels
away: (h_hat - h) / (c_hat - c) is dL/dc, and its sign is the label.

`NoisyScalars` answers with quotients instead, made in this order and nowhere else: the quotients of every
row, clipped to length C sqrt(K) over the K directions (C each, on average), averaged over the batch, plus
Gaussian noise. One label that changes moves the average by at most 2 C sqrt(K) / B, so noise of z times
that makes one reply a Gaussian mechanism with multiplier z. More directions cost nothing: the noise of the
gradient estimate stays the same, the error of its direction falls. The client chose the batch and the
directions, so it knows them: there is no amplification by sampling, and every reply that a label takes part
in is counted in full (`privacy.accountant`). The outputs a client sends are its own; only the labels need
protection from it.

All noise comes from the operating system, never from the job's seed, which every client knows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import SystemRandom

import numpy as np

from colonnade.arrays import Numbers
from colonnade.optim.smoothing import Smoothing

Gauss = Callable[[float, float], float]


def mean_losses(losses: Numbers) -> Numbers:
    """Return the mean loss at every point, exactly: no mechanism."""
    means: Numbers = losses.mean(axis=1)
    return means


@dataclass(frozen=True)
class NoisyScalars:
    """Replies with K clipped, noisy quotients a batch; the noise is calibrated for all replies together."""

    smoothing: Smoothing
    clip: float
    multiplier: float
    gauss: Gauss = field(default_factory=lambda: SystemRandom().gauss)

    def __call__(self, losses: Numbers) -> Numbers:
        quotients = self.smoothing.quotients(losses)
        K, B = quotients.shape
        length = self.clip * K**0.5
        clipped = clip_rows(quotients.T, length)
        noise = self.multiplier * 2 * length / B
        scalars: Numbers = clipped.mean(axis=0) + np.array([self.gauss(0.0, noise) for _ in range(K)])
        return scalars


def clip_rows(rows: Numbers, length: float) -> Numbers:
    """Return the rows, each scaled down to at most this length; entries that are not finite count as 0.

    >>> clip_rows(np.array([[3.0, 4.0], [0.3, 0.4]]), 1.0).round(2).tolist()
    [[0.6, 0.8], [0.3, 0.4]]
    """
    safe = np.where(np.isfinite(rows), rows, 0.0)
    norms = np.linalg.norm(safe, axis=1, keepdims=True)
    clipped: Numbers = safe * np.minimum(1.0, length / np.maximum(norms, 1e-300))
    return clipped
