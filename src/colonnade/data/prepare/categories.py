"""Text columns: which values become columns of their own, which are joined, and which columns say nothing.

A category is known by its text: 2, 2.0 and "2" are the same one, whichever way a file spelt it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from colonnade.arrays import Rows
from colonnade.data.prepare.labels import category_codes, category_names
from colonnade.data.table import Column

OTHER, MISSING = "(other)", "(missing)"
# A value of one row is rare, but where there are few rows. Chosen on held-back training rows of Adult and of
# made-up columns with 50 to 2,000 values, among 1, 2, 3, 5 and 10: where values tell something, to join those
# of fewer than ten costs two to three points of AUC; where they do not the penalty sees to them. Values of
# one row are joined only where they are many: if most values have several rows, as people have who were
# measured again and again, those of one row will come again, too. Chosen on held-back training rows of 156
# tables with such values, among never, always, and more than a tenth, a quarter or a half of the values: by
# over 1% better than always in 13, worse in 3.
FEW_ROWS, FEW_PARTS, MANY_RARE = 2, 100, 0.25
IDS, MANY = 0.5, 20  # a text column is no category if it has this part of different values, and this many


@dataclass(frozen=True)
class Counted:
    """The values of a column, how many rows have each, and how many have none."""

    names: tuple[str, ...]
    rows: tuple[int, ...]
    gaps: int

    @staticmethod
    def of(values: Column) -> Counted:
        """Count the values of a column."""
        names = category_names(values)
        codes = category_codes(values, names)
        rows = np.bincount(codes[codes >= 0], minlength=len(names))
        return Counted(names, tuple(int(n) for n in rows), int((codes < 0).sum()))

    def are_ids(self) -> bool:
        """Return whether there are too many different values for categories: ids, names or free text."""
        return len(self.names) > max(MANY, IDS * sum(self.rows))

    def rare(self, rare: int | Literal["auto"]) -> tuple[str, ...]:
        """Return the values of fewer rows than `rare`; "auto": those of one row, if they are many.

        >>> Counted(("a", "b", "c"), (90, 60, 1), 0).rare("auto")
        ('c',)
        >>> Counted(("a", "b", "c", "d"), (90, 60, 60, 1), 0).rare("auto")
        ()
        """
        least = min(FEW_ROWS, -(-(sum(self.rows) + self.gaps) // FEW_PARTS)) if rare == "auto" else rare
        few = tuple(name for name, rows in zip(self.names, self.rows, strict=True) if rows < least)
        return few if rare != "auto" or len(few) > MANY_RARE * len(self.names) else ()


def gaps_in(values: Column) -> NDArray[np.bool_]:
    """Return which rows of a column have no value."""
    if values.dtype == object:
        return np.array([not str(v).strip() for v in values], dtype=bool)
    return np.isnan(values.astype(np.float64))


def codes_in(values: Column, names: Sequence[str]) -> Rows:
    """Return each value's position in `names`, gaps and unknown values at those for them; -1 where there is
    none."""
    codes = category_codes(values, names)
    place = {name: k for k, name in enumerate(names)}
    lost = np.flatnonzero(codes < 0)
    gaps = gaps_in(values[lost])
    codes[lost[~gaps]] = place.get(OTHER, -1)
    codes[lost[gaps]] = place.get(MISSING, -1)
    return codes
