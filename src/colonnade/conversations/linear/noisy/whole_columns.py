"""A party's own columns in whole numbers, of which the largest of every column is 2^14 in size.

So noise of some rows is as loud in every column, and nothing need be told of them. Rare ones are left out
(`noisy.rare`). A helper has none.
"""

from __future__ import annotations

import numpy as np

from colonnade.arrays import Floats, Matrix, Words
from colonnade.conversations.linear.noisy.rare import dense, steady
from colonnade.secure.product import Columns

BITS = 14  # of every column's largest number
STRETCH = 2**14  # rows whose columns are rounded at once


class WholeColumns:
    """The columns that train: `kept` are their places, `values` the whole numbers, None at a helper."""

    def __init__(self, X: Matrix, rounding: np.random.Generator) -> None:
        self.X, self.rows = X, int(X.shape[0])
        self.kept = steady(X) if X.shape[1] else np.arange(0)
        self.largest: Floats = np.zeros(len(self.kept))
        self.longest = 0.0  # length of a row, every column in units of its largest number
        self.values: Columns | None = None
        if len(self.kept):
            self._read(rounding)

    def _read(self, rounding: np.random.Generator) -> None:
        cuts = [slice(at, min(at + STRETCH, self.rows)) for at in range(0, self.rows, STRETCH)]
        for part in cuts:
            largest = np.abs(dense(self.X, part, self.kept)).max(axis=0)
            np.maximum(self.largest, largest, out=self.largest)
        found = []
        for part in cuts:
            numbers = dense(self.X, part, self.kept) / self.largest
            self.longest = max(self.longest, float(np.sqrt((numbers**2).sum(axis=1).max())))
            # by chance: an error of a number, not of a column
            whole = np.floor(numbers * 2.0**BITS + rounding.random(numbers.shape))
            found.append(Columns.small(whole, 2.0**BITS))
        self.values = Columns.joined(found)

    def gradient(self, sums: Words, bits: int) -> Floats:
        """Return inner products with whole columns, of a theta with these bits of fraction, as the mean
        gradient."""
        found: Floats = sums.view(np.int64) * 2.0 ** -(bits + BITS) * self.largest / self.rows
        return found
