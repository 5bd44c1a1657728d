"""One party's columns in standard deviations, without those that its others give already."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from colonnade.arrays import Floats
from colonnade.data.table import INTERCEPT, Table
from colonnade.errors import DataError

MOST = 1000  # columns of a party
HEAVIEST = 0.1  # of a row: its squared deviations from the mean in all columns, over the rows
REPEATED = 1e-6  # of a column's length that is left beside the others, below which they give it
LABEL = "(label)"


@dataclass(frozen=True, eq=False)
class UnitColumns:
    """Columns of mean 0 and deviation 1, [rows, columns]; where there is a label it comes last.

    `repeated` are columns that were left out: constant ones, and those that the others give, as the most
    common category of a column. `rare` are columns in which single rows are too heavy to be told of.
    """

    names: tuple[str, ...]
    Z: Floats
    label: bool
    repeated: tuple[str, ...] = ()
    rare: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.Z)

    @property
    def columns(self) -> int:
        """How many columns there are, the label left out."""
        return len(self.names) - self.label

    def without_heavy_rows(self) -> UnitColumns:
        """Return the columns that stay if no row may be heavy in all of them together: of the heaviest row
        the column goes in which it is furthest from the mean, and again, until none is beyond.

        The product of a column with one such row and another's column is that one's value of this row.
        """
        weights = self.Z**2 / self.rows
        left = np.ones(len(self.names), dtype=bool)
        total = weights.sum(axis=1)
        while total.max(initial=0.0) > HEAVIEST:
            row = int(total.argmax())
            among = np.where(left, weights[row], 0.0)
            among[self.columns :] = 0.0
            if not among.any():
                raise DataError(
                    "one label is so rare that correlations with it tell single rows; use more rows"
                )
            place = int(among.argmax())
            left[place] = False
            total = total - weights[:, place]
        names = np.array(self.names, dtype=object)
        gone = tuple(names[~left].tolist())
        return replace(self, names=tuple(names[left].tolist()), Z=self.Z[:, left], rare=gone)

    @staticmethod
    def of(table: Table, label: Floats | None = None) -> UnitColumns:
        """Return a party's prepared columns, and the label where this party holds it as one number a row."""
        if table.weight is not None:
            raise DataError(
                "statistics count every row once; drop the weights (data.weight, train.class_weight)"
            )
        places = [place for place, column in enumerate(table.columns) if column != INTERCEPT]
        if len(places) > MOST:
            raise DataError(f"{table.name}: {len(places)} columns; correlations are for at most {MOST}")
        X = table.X[:, places]
        X = (X if isinstance(X, np.ndarray) else X.toarray()).astype(np.float64)
        names = [table.columns[place] for place in places]
        Z, kept = _independent(X)
        found = [names[place] for place in kept]
        repeated = tuple(name for place, name in enumerate(names) if place not in kept)
        if label is not None:
            spread = float(label.std())
            if not spread:
                raise DataError(f"{table.name}: all labels are the same, and correlate with nothing")
            Z = np.column_stack([Z, (label - label.mean()) / spread])
            found.append(LABEL)
        return UnitColumns(tuple(found), Z, label is not None, repeated)


def _independent(X: Floats) -> tuple[Floats, list[int]]:
    """Return the columns in standard deviations that no sum of those before and a constant gives, and their
    places."""
    centred = X - X.mean(axis=0)
    spread = centred.std(axis=0)
    largest = np.abs(X).max(axis=0, initial=0.0)
    basis = np.empty((len(X), 0))
    kept: list[int] = []
    for place in sorted(range(X.shape[1]), key=lambda place: _commonness(X[:, place])):
        if spread[place] <= 1e-12 * max(1.0, largest[place]):
            continue
        unit = centred[:, place] / (spread[place] * np.sqrt(len(X)))
        left = unit - basis @ (basis.T @ unit)
        left -= basis @ (basis.T @ left)  # once more, as the first time rounds
        length = float(np.sqrt(left @ left))
        if length > REPEATED:
            basis = np.column_stack([basis, left / length])
            kept.append(place)
    kept.sort()
    return centred[:, kept] / spread[kept], kept


def _commonness(x: Floats) -> float:
    """Return how common the larger of two values is, 0 for a column of more: of the categories of a column
    the most common one goes, as what others are compared with."""
    low, high = x.min(initial=np.inf), x.max(initial=-np.inf)
    return float((x == high).mean()) if bool(((x == low) | (x == high)).all()) else 0.0
