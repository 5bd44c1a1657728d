"""Noise that nobody can foretell, and that is the same when it is asked for again.

A run that was cut off goes on from a checkpoint and plays some rounds twice. If labels got new noise then,
they would be told twice. So the noise of labels is a function of a secret key, which their holder draws for a
run and keeps to itself, and of what it is for: which row, and which of its draws. The same draw again says
nothing new, whatever was asked meanwhile, and costs nothing.

Numbers are words of AES-256, each block of which is a row, a draw and a place: another key, row or draw
gives numbers that have nothing to do with these.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from colonnade.arrays import Numbers, Rows


@dataclass(frozen=True)
class Noise:
    """The noise of one run's labels; without a key it has one that nobody keeps."""

    key: bytes = field(default_factory=lambda: os.urandom(32), repr=False)

    def uniform(self, rows: Rows, draws: Rows, width: int = 1) -> Numbers:
        """Return numbers strictly between 0 and 1, of 53 random bits each: [rows, width], by row and draw."""
        blocks = np.empty((len(rows), -(-width // 2), 2), dtype=np.uint64)
        blocks[..., 0] = np.asarray(rows, dtype=np.uint64)[:, None]
        blocks[..., 1] = np.asarray(draws, dtype=np.uint64)[:, None] << np.uint64(32)
        blocks[..., 1] += np.arange(blocks.shape[1], dtype=np.uint64)
        # ECB over explicit counter blocks is counter mode
        cipher = Cipher(algorithms.AES(self.key), modes.ECB()).encryptor()  # noqa: S305
        words = np.frombuffer(cipher.update(blocks.tobytes()), dtype=np.uint64)
        bits = words.reshape(len(rows), -1)[:, :width] >> np.uint64(11)
        # doubles have 53 bits: the middles of 2^53 equal parts round to 1 at the end, and 1 has no quantile
        middles: Numbers = np.minimum((bits + 0.5) * 2.0**-53, 1 - 2.0**-53)
        return middles

    def gaussian(self, rows: Rows, draws: Rows, width: int = 1) -> Numbers:
        """Standard normal numbers, by the inverse of the distribution function."""
        from scipy.special import ndtri  # slow to load, and few runs draw noise

        normal: Numbers = ndtri(self.uniform(rows, draws, width))
        return normal
