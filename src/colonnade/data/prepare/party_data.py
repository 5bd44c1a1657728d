"""One party's data: its own columns, and how it prepares them.

A `PartyData` holds nothing of anybody else, and labels only where the party holds them. Preparation is
left to the party, so that in a real deployment the same code runs where the columns are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from colonnade.arrays import Floats
from colonnade.data.prepare.prepare import Missing, Preparation, Rare
from colonnade.data.prepare.scaling import Scale, Tails
from colonnade.data.prepare.woe import Weighed
from colonnade.data.table import RawTable, Table, as_numbers


@dataclass(frozen=True)
class RowLengths:
    """How long prepared rows are at parties without the label, added up, as some rows of them show.

    `longest` and `mean` are of squared lengths; `scores` are those of a row.
    """

    rows: int
    scores: int
    longest: float
    mean: float


@dataclass(frozen=True)
class Recipe:
    """How a party prepares its own columns.

    `ready` means that the columns are final numbers: they are taken as they are, and the rest of the
    recipe says nothing.
    """

    scale: Scale | float = "auto"
    tails: Tails = "cap"  # of "auto"
    categorical: tuple[str, ...] = ()
    missing: Missing = "auto"
    rare: Rare = "auto"
    intercept: bool = False
    woe: tuple[
        Weighed, ...
    ] = ()  # every column as its weight of evidence, which is then prepared as numbers are
    ready: bool = False
    numbered: tuple[int, ...] = ()  # the places of ready columns that are numbers of categories

    def with_gaps(self) -> Recipe:
        """Return the same for trees, which take columns as they are: numbers unscaled, gaps where they
        were."""
        return replace(self, scale="none", missing="keep")


class Prepared(NamedTuple):
    """A party's columns as numbers, and what was learnt to make them so (None: they were ready)."""

    preparation: Preparation | None
    train: Table
    test: Table | None

    def plain(self) -> dict[str, Any] | None:
        """Return what was learnt, as plain data; None if the columns were ready."""
        return None if self.preparation is None else self.preparation.to_dict()


@dataclass(frozen=True, eq=False)
class PartyData:
    """One party's raw columns, training and test rows, and how to prepare them.

    Labels, coded as numbers, are `train.y` and `test.y`, and weights of rows are `train.weight` and
    `test.weight`. They are None at a party that does not hold the label.
    """

    party: str
    train: RawTable
    test: RawTable | None
    recipe: Recipe
    preparation: Preparation | None = None  # by which columns that are ready were made so

    @staticmethod
    def of(
        party: str, train: Table, test: Table | None = None, preparation: Preparation | None = None
    ) -> PartyData:
        """Return data that is ready: `prepare` gives the same arrays back."""
        raw_test = None if test is None else _raw(test)
        return PartyData(
            party, _raw(train), raw_test, Recipe(ready=True, numbered=train.categories), preparation
        )

    @property
    def columns(self) -> int:
        """How many raw columns the party holds."""
        return len(self.train.columns)

    @property
    def rows(self) -> int:
        """How many training rows there are."""
        return self.train.rows

    def ready(self) -> PartyData:
        """Return the same data with its columns prepared."""
        if self.recipe.ready:
            return self
        preparation, train, test = self.prepare()
        return PartyData.of(self.party, train, test, preparation)

    def prepare(self) -> Prepared:
        """Return the columns as numbers. Statistics come from this party's training rows alone."""
        recipe, train, test = self.recipe, self.train, self.test
        if recipe.ready:
            numbered = recipe.numbered
            return Prepared(
                self.preparation, _ready(train, numbered), None if test is None else _ready(test, numbered)
            )
        preparation = Preparation.fit(
            train,
            scale=recipe.scale,
            tails=recipe.tails,
            categorical=[c for c in recipe.categorical if c in train.columns],
            missing=recipe.missing,
            rare=recipe.rare,
            intercept=recipe.intercept,
            woe=recipe.woe,
        )
        return Prepared(
            preparation,
            _prepared(preparation, train),
            None if test is None else _prepared(preparation, test),
        )


def _prepared(preparation: Preparation, raw: RawTable) -> Table:
    """Return columns as numbers, with the labels and weights of the rows."""
    return replace(preparation.transform(raw, _coded(raw)), weight=raw.weight)


def _raw(table: Table) -> RawTable:
    """Return the same arrays as a raw table."""
    return RawTable(table.name, table.columns, table.X, table.ids, table.y, weight=table.weight)


def _ready(raw: RawTable, numbered: tuple[int, ...]) -> Table:
    """Return the same arrays as a table."""
    if isinstance(raw.values, tuple):
        raise TypeError(f"{raw.name}: columns that are ready are one matrix, not text")
    return Table(raw.name, raw.columns, raw.values, _coded(raw), raw.ids, raw.weight, numbered)


def _coded(raw: RawTable) -> Floats | None:
    """Return the labels, which are numbers here; the same array, not a copy."""
    return None if raw.y is None else as_numbers(raw.y)
