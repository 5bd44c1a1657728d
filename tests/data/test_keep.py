"""Columns as trees take them: numbers unscaled, gaps where they were, categories numbered."""

from __future__ import annotations

import numpy as np
from tests.oracles.tables import random_job, random_tables

from colonnade.data.prepare.party_data import PartyData, Recipe
from colonnade.data.prepare.prepare import Preparation
from colonnade.data.split.assign import as_they_are
from colonnade.data.table import RawTable
from colonnade.run.resolve import compose

nan = np.nan


def raw(rows: int = 6) -> RawTable:
    columns = (
        np.array([1.0, nan, 300.0, 4.0, 5.0, 6.0]),
        np.array(["b", "a", "b", "", "c", "a"], dtype=object),
        np.array([7.0, nan, 7.0, 7.0, 7.0, 7.0]),
    )
    return RawTable("table", ("age", "town", "flag"), tuple(column[:rows] for column in columns))


def test_gaps_stay_gaps_and_categories_are_numbered() -> None:
    made = Preparation.fit(raw(), scale="none", missing="keep", rare=0)
    table = made.transform(raw())
    assert table.columns == ("age", "town", "flag")
    wanted = [[1, 1, 7], [nan, 0, nan], [300, 1, 7], [4, nan, 7], [5, 2, 7], [6, 0, 7]]
    np.testing.assert_array_equal(table.X, wanted)
    assert any("2 gaps kept" in said for said in made.done())
    assert any("numbered: town (3)" in said for said in made.done())


def test_a_value_that_training_did_not_have_is_a_gap() -> None:
    made = Preparation.from_dict(Preparation.fit(raw(), scale="none", missing="keep", rare=0).to_dict())
    new = RawTable(
        "new", ("age", "town", "flag"), (np.array([2.0]), np.array(["z"], dtype=object), np.array([nan]))
    )
    np.testing.assert_array_equal(made.transform(new).X, [[2, nan, nan]])


def test_a_recipe_leaves_columns_as_they_are() -> None:
    prepared = PartyData("party", raw(), None, Recipe(rare=0).with_gaps()).prepare()
    assert np.isnan(prepared.train.X).sum() == 3


def test_only_trees_take_gaps_and_only_where_nobody_said_otherwise() -> None:
    tables = random_tables(active=1)
    assert compose(random_job(tables, "secureboost")).has("takes-gaps")
    assert not compose(random_job(tables, "lbfgs")).has("takes-gaps")
    assert as_they_are(None, "auto")
    assert not as_they_are("zscore", None)
    assert not as_they_are(None, "mean")
