"""Noise on counts of labels that somebody else is told, for bins that it has chosen.

Exact counts over enough columns are equations that have one solution: the labels. A change of one label moves
one count of every column by one, so the counts of c columns move by sqrt(c) together, and noise of
`multiplier` sqrt(c) hides every label as well as noise of `multiplier` hides a single count, however many
columns a party brings (zero-concentrated differential privacy with rho = 1 / (2 multiplier^2)).

Noise is a function of a secret key and of all the counts: who asks for the same counts again is told the same
and can average nothing away.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field

import numpy as np

from colonnade.arrays import Rows
from colonnade.privacy.gaussian import epsilon_of
from colonnade.privacy.grid import Grid
from colonnade.privacy.noise import Noise

USUAL = 2.0  # what a label holder demands, where nothing else is said
DELTA = 1e-5


@dataclass(frozen=True)
class CountNoise:
    """Discrete Gaussian noise of `multiplier` for one count, under a secret key of the label holder's."""

    multiplier: float = 0.0
    key: bytes = field(default_factory=lambda: os.urandom(32), repr=False)

    @property
    def epsilon(self) -> float | None:
        """What all counts of a party's columns together tell of one label, at delta = 1e-5."""
        return epsilon_of(self.multiplier, DELTA) if self.multiplier else None

    def told(self, counts: Rows, most: Rows, columns: int) -> Rows:
        """Return counts with noise, each between 0 and the most that it can be."""
        if not len(counts):
            return counts
        asked = np.concatenate([counts, most, [columns]]).astype("<i8").tobytes()
        noise = self.alone(asked, len(counts), int(most.max()), columns)
        found: Rows = np.clip(counts + noise, 0, most)
        return found

    def alone(self, asked: bytes, count: int, most: int, columns: int) -> Rows:
        """Return the noise of counts, none of which is above `most`; by `asked`, which names them."""
        if not self.multiplier or not count:
            return np.zeros(count, dtype=np.int64)
        grid = Grid.of(float(max(1, most)), columns**0.5, self.multiplier)
        key = hashlib.blake2b(asked, key=self.key, digest_size=32).digest()
        numbers = np.arange(count)
        drawn = Noise(key).gaussian(numbers, 0 * numbers)[:, 0]
        return np.rint(grid.values(drawn)).astype(np.int64)
