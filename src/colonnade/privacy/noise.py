"""Noise that nobody can foretell, and that is the same when it is asked for again.

A run that was cut off goes on from a checkpoint and plays some rounds twice. If labels got new noise then,
they would be told twice. So the noise of labels is a function of a secret key, which their holder draws for a
run and keeps to itself, and of what it is for: which row, which of its draws, and which place in it. The same
draw again says nothing new, no matter what was asked meanwhile, and costs nothing.

Keys come from the operating system, and nothing else does: a key, row, draw and place have a stream of random
words of their own (AES-256), from which `privacy.discrete` draws whole numbers exactly.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from colonnade.arrays import Rows, Words
from colonnade.privacy import discrete

ROWS, PLACES, DRAWS = 2**40, 2**24, 2**32  # what a block of AES has room for, beside 2^32 words of a stream


class Streams:
    """Random words without end: a stream for every row (of some draw) and each of `width` places in it."""

    def __init__(self, key: bytes, rows: Rows, draws: Rows, width: int) -> None:
        if max(rows.max(initial=0) / ROWS, draws.max(initial=0) / DRAWS, width / PLACES) >= 1:
            raise ValueError(f"noise is for fewer than {ROWS} rows, {DRAWS} draws and {PLACES} places")
        # ECB over explicit counter blocks is counter mode
        self._cipher = Cipher(algorithms.AES(key), modes.ECB()).encryptor()  # noqa: S305
        place = np.arange(width, dtype=np.uint64) * np.uint64(ROWS)
        self._what = (rows.astype(np.uint64)[:, None] + place).ravel()
        self._next = np.repeat(draws.astype(np.uint64) * np.uint64(2**32), width)

    def __len__(self) -> int:
        return len(self._what)

    def take(self, streams: Rows) -> Words:
        """Return the next word of each of these streams, all different."""
        blocks = np.stack([self._what[streams], self._next[streams]], axis=1)
        self._next[streams] += np.uint64(1)
        return np.frombuffer(self._cipher.update(blocks.tobytes()), dtype=np.uint64)[::2]


@dataclass(frozen=True)
class Noise:
    """The noise of one run's labels; without a key it has one that nobody keeps."""

    key: bytes = field(default_factory=lambda: os.urandom(32), repr=False)

    def gaussian(self, rows: Rows, draws: Rows, width: int = 1) -> Rows:
        """Return discrete Gaussian numbers of deviation `discrete.SCALE`: [rows, width], by row and draw."""
        return discrete.gaussian(Streams(self.key, rows, draws, width)).reshape(-1, width)

    def response(self, codes: Rows, classes: int, epsilon: float) -> Rows:
        """Return the classes 0 ... k - 1 after randomised response, by row."""
        rows = np.arange(len(codes))
        return discrete.response(Streams(self.key, rows, 0 * rows, 1), codes, classes, epsilon)
