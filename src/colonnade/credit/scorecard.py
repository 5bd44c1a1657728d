"""A scorecard: the points that every bin of every column adds to a row's score.

    points = offset - factor z,   factor = pdo / ln 2,   offset = base_score - factor ln(base_odds)

z is the model's score, the log odds of bad. So `base_score` points mean odds of `base_odds` goods to one
bad, and `pdo` points more double the odds. The score is a sum over columns of a value per bin, so points
are exact; rounded points are whole numbers whose sum is the card's own score, off the exact one by half a
point a column at most.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, isfinite, log

import numpy as np

from colonnade.arrays import Floats
from colonnade.credit.linear import LinearBlock, LinearModel
from colonnade.data.prepare.bins import ColumnBins
from colonnade.data.prepare.woe import Weighed
from colonnade.data.table import Column, RawTable
from colonnade.errors import DataError

NO_SUCH_VALUE = "\0"  # a category that no file has


@dataclass(frozen=True)
class Scaling:
    """What points mean."""

    pdo: float = 20.0
    base_score: float = 600.0
    base_odds: float = 50.0  # goods to one bad at the base score
    rounded: bool = True

    def __post_init__(self) -> None:
        if not (isfinite(self.base_score) and 0 < self.pdo < inf and 0 < self.base_odds < inf):
            raise DataError("points need a finite base score, and finite pdo and base odds above 0")

    @property
    def factor(self) -> float:
        return self.pdo / log(2)

    def points(self, z: Floats) -> Floats:
        """Return the points of scores, before any rounding."""
        return self.base_score - self.factor * (log(self.base_odds) + z)


@dataclass(frozen=True)
class ScorecardRow:
    """One bin of one column: what it is, its WOE, and its points."""

    party: str
    column: str
    bin: str
    woe: float
    points: float


@dataclass(frozen=True)
class Scorecard:
    """The points of every bin, and those that every row starts with. Values never seen have none."""

    scaling: Scaling
    base: float
    lines: list[ScorecardRow]

    @staticmethod
    def of(model: LinearModel, scaling: Scaling | None = None) -> Scorecard:
        """Return the scorecard of a linear model of weighed columns."""
        model.require_logistic("a scorecard")
        scaling = scaling or Scaling()
        base = float(scaling.points(np.array([model.intercept]))[0])
        lines: list[ScorecardRow] = []
        for block in model.blocks.values():
            if block.preparation.columns and not block.preparation.woe:
                raise DataError(
                    f"{block.party}: its columns are not weighed, so they have no bins; set woe = true "
                    "under [data]"
                )
            lines += points_of(block, scaling)
        return Scorecard(scaling, float(round(base)) if scaling.rounded else base, lines)

    def score(self, model: LinearModel, tables: Mapping[str, RawTable]) -> Floats:
        """Return the points of every row: those of its bins, added up."""
        rows = next(iter(tables.values())).rows
        total = np.full(rows, self.base)
        for party, block in model.blocks.items():
            for weighed in block.preparation.woe:
                column = weighed.bins.column
                points = [each.points for each in self.lines if (each.party, each.column) == (party, column)]
                total += np.array([*points, 0.0])[weighed.joined(tables[party])]
        return total


def points_of(block: LinearBlock, scaling: Scaling | None = None) -> list[ScorecardRow]:
    """Return the points of one party's own bins, from its own share; none where its columns are not
    weighed."""
    scaling = scaling or Scaling()
    return [line for weighed in block.preparation.woe for line in _lines(block, weighed, scaling)]


def _lines(block: LinearBlock, weighed: Weighed, scaling: Scaling) -> list[ScorecardRow]:
    """Return the points of every bin of a column: the party's own, from its own share."""
    place = block.preparation.columns.index(weighed.bins.column)
    effect = block.parts(_examples(block, weighed))[:, place]
    points = -scaling.factor * effect
    points = np.round(points) + 0.0 if scaling.rounded else points
    return [
        ScorecardRow(block.party, weighed.bins.column, name, woe, float(value))
        for name, woe, value in zip(weighed.names(), weighed.woe, points.tolist(), strict=True)
    ]


def _examples(block: LinearBlock, weighed: Weighed) -> RawTable:
    """Return a table with a row for every joined bin of one column; the other columns are the same in all
    rows."""
    values: list[Column] = []
    for each in block.preparation.woe:
        first = [weighed.group.index(k) for k in range(len(weighed.woe))]
        mine = each is weighed
        values.append(_values(each.bins, first if mine else [0] * len(first)))
    names = tuple(each.bins.column for each in block.preparation.woe)
    return RawTable(block.party, names, tuple(values))


def _values(bins: ColumnBins, codes: list[int]) -> Column:
    """Return a value of each of these bins."""
    if bins.numeric:
        special = {code: value for value, code in bins.special}
        above = float(np.nextafter(bins.edges[-1], np.inf)) if bins.edges else 0.0
        plain = dict(enumerate([*bins.edges, above]))
        return np.array([plain.get(k, special.get(k, np.nan)) for k in codes])
    names = {code: name for name, code in reversed(bins.categories)}
    gap = {bins.missing: ""}
    return np.array([names.get(k, gap.get(k, NO_SUCH_VALUE)) for k in codes], dtype=object)
