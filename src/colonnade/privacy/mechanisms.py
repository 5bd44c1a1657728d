"""Mechanisms that bound what a reply tells about the labels of its batch, and the noise they use.

Without a mechanism a reply is the mean loss at every point the client asked for. It gives the labels
away: (h_hat - h) / (c_hat - c) is dL/dc, and its sign is the label.

`NoisyScalars` answers with quotients instead, made in this order and nowhere else: the quotients of every
row, clipped to length C sqrt(K) over the K directions (C each, on average) and rounded to a grid, added up
over the batch, plus discrete Gaussian noise, and divided by the B rows. One label that changes moves the sum
by at most 2 C sqrt(K), so noise of z times that makes one reply a Gaussian mechanism with multiplier z. Sums
of whole numbers have no error of their own. More directions cost nothing: the noise of the gradient estimate
stays the same, the error of its direction falls. The client chose the batch and the
directions, so it knows them: there is no amplification by sampling, and every reply that a label takes part
in is counted in full (`privacy.accountant`). The outputs a client sends are its own; only the labels need
protection from it.

All noise comes from the operating system, never from the job's seed, which every client knows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from colonnade.arrays import Numbers, Rows
from colonnade.errors import JobError
from colonnade.optim.smoothing import Smoothing
from colonnade.privacy.grid import Grid
from colonnade.privacy.noise import Noise


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
    noise: Callable[[], Noise] = Noise  # every reply has a key of its own, which nobody keeps

    def __call__(self, losses: Numbers) -> Numbers:
        quotients = self.smoothing.quotients(losses)
        K, B = quotients.shape
        length = self.clip * K**0.5
        grid = Grid.of(length, 2 * length, self.multiplier)
        total = rounded_rows(quotients.T, grid).sum(axis=0)
        noise = self.noise().gaussian(np.arange(K), np.zeros(K, dtype=np.int64))[:, 0]
        scalars: Numbers = grid.values(total + noise) / B
        return scalars


def rounded_rows(rows: Numbers, grid: Grid) -> Rows:
    """Return the rows on the grid, each of a length of at most its bound also after rounding."""
    # rounding makes a row longer by half the diagonal of a cell at most; one step more is for doubles' errors
    room = grid.steps - rows.shape[1] ** 0.5 / 2 - 1
    if room <= 0:
        raise JobError("privacy: noise drowns every reply; raise privacy.epsilon, or train fewer epochs")
    return grid.whole(clip_rows(rows, grid.bound * room / grid.steps))


def clip_rows(rows: Numbers, length: float) -> Numbers:
    """Return the rows, each scaled down to at most this length; entries that are not finite count as 0.

    >>> clip_rows(np.array([[3.0, 4.0], [0.3, 0.4]]), 1.0).round(2).tolist()
    [[0.6, 0.8], [0.3, 0.4]]
    """
    safe = np.where(np.isfinite(rows), rows, 0.0)
    norms = np.linalg.norm(safe, axis=1, keepdims=True)
    clipped: Numbers = safe * np.minimum(1.0, length / np.maximum(norms, 1e-300))
    return clipped
