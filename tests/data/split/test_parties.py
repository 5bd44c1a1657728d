"""Columns in memory: whatever form they come in, every party gets its own, and rows can be picked."""

from __future__ import annotations

import datetime
import re
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csc_array, csr_array, csr_matrix

from colonnade.data.read.frames import columns_of
from colonnade.data.split.parties import split_columns
from colonnade.errors import DataError, DataWarning

X = np.arange(40.0).reshape(4, 10)
Y = [1, -1, -1, 1]


def test_only_the_first_label_holder_may_hold_no_columns() -> None:
    names = [f"x{j}" for j in range(X.shape[1])]
    parties = split_columns(X, Y, columns={"hub": [], "bank": names}, active=1)
    assert parties.tables["hub"].columns == ()
    assert parties.tables["hub"].y is not None
    for columns, text in (
        ({"bank": names, "hub": []}, "party 'hub' has no columns; only the first active party ('bank')"),
        ({"hub": [], "bank": names, "shop": []}, "party 'shop' has no columns"),
    ):
        with pytest.raises(DataError, match=re.escape(text)):
            split_columns(X, Y, columns=columns, active=1)


@pytest.mark.parametrize(
    "form", [np.asarray, csr_array, csc_array, csr_matrix, np.ndarray.tolist, np.asfortranarray]
)
def test_split_columns_gives_each_party_its_columns(form: Any) -> None:
    parties = split_columns(form(X), Y, parties=4, active=2, seed=7)
    assert parties.active == ("party-0", "party-1")
    assert parties.rows == 4
    for party, table in parties.tables.items():
        values: Any = table.values
        own = values.toarray() if table.sparse else values
        np.testing.assert_array_equal(own, X[:, list(parties.columns[party])])
        assert not table.sparse  # a full matrix is no sparse one, whatever its form
        assert table.columns == tuple(f"x{j}" for j in parties.columns[party])
        assert (table.y is None) == (party not in parties.active)
    assert parties.y is not None
    assert parties.y.tolist() == Y
    assert split_columns(X, Y).active == ("party-0", "party-1", "party-2")
    assert split_columns(X, Y, parties=2).active == ("party-0", "party-1")
    assert split_columns(X, Y, parties=3, active=["party-2"]).active == ("party-2",)


def test_a_matrix_with_many_zeros_stays_sparse() -> None:
    parties = split_columns(csr_array(np.eye(6)), [1, 0] * 3, parties=2)
    assert all(table.sparse for table in parties.tables.values())


def test_like_repeats_a_split_on_other_rows() -> None:
    parties = split_columns(X, Y, parties=3, active=1, seed=5)
    test = split_columns(X[:2] + 100, like=parties)
    assert test.columns == parties.columns
    assert test.active == parties.active
    assert test.y is None
    for party, table in test.tables.items():
        before: Any = parties.tables[party].values
        np.testing.assert_array_equal(table.values, before[:2] + 100)
    with pytest.raises(DataError, match="no column 'x9'"):
        split_columns(X[:, :9], like=parties)


@pytest.mark.parametrize("rows", [[2, 0], np.array([2, 0]), (np.array([2, 0]), ...)])
def test_rows_are_picked_as_from_an_array(rows: Any) -> None:
    parties = split_columns(X, Y, parties=3, active=1)
    few = parties[rows]
    assert (len(parties), parties.shape) == (4, (4, 10))
    assert (len(few), few.shape, few.active) == (2, (2, 10), parties.active)
    assert few.y is not None
    assert few.y.tolist() == [-1, 1]
    for party, table in few.tables.items():
        whole: Any = parties.tables[party].values
        np.testing.assert_array_equal(table.values, whole[[2, 0]])
    assert len(parties[1:]) == 3
    assert len(parties[np.array([True, False, False, False])]) == 1
    assert len(parties[3]) == 1


def test_columns_are_named_or_counted() -> None:
    frame = pd.DataFrame(X[:, :3], columns=["age", "income", "visits"])
    parties = split_columns(frame, Y, columns={"bank": ["income", "age"], "shop": [-1]}, active=1)
    np.testing.assert_array_equal(parties.tables["bank"].values, X[:, [1, 0]])
    reordered = split_columns(frame[["visits", "age", "income"]], like=parties)
    np.testing.assert_array_equal(reordered.tables["bank"].values, X[:, [1, 0]])
    with pytest.warns(DataWarning, match="columns of X that nobody holds are left out: visits"):
        some = split_columns(frame, Y, columns={"bank": ["age"], "shop": ["income"]})
    assert [table.columns for table in some.tables.values()] == [("age",), ("income",)]
    for wrong, said in (
        ([["age"], ["visits"]], r"columns = \[\['age'\], \['visits'\]\]: say who holds which, as in"),
        ({"bank": "age"}, "'bank' holds 'age'; give a list"),
        ({"bank": [1.5]}, "1.5 is neither a column's name nor its place"),
    ):
        with pytest.raises(DataError, match=said):
            split_columns(frame, Y, columns=wrong)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="column 3: there are 3 columns"):
        split_columns(frame, Y, columns={"bank": [0, 1, 3]})


DAYS = [datetime.date(2020, 1, 1), datetime.date(1970, 1, 3), None]
MESSY = {"n": [1.5, None, 3.0], "flag": [True, False, True], "job": ["clerk", None, "boss"], "day": DAYS}


def frames() -> dict[str, Any]:
    pandas = pd.DataFrame(MESSY).assign(day=pd.to_datetime(pd.Series(DAYS)))
    return {
        "pandas": pandas,
        "pandas with an index": pandas.set_index(pd.Index([7, 8, 9])),
        "polars": pl.DataFrame(MESSY),
        "pyarrow": pa.table(MESSY),
    }


@pytest.mark.parametrize("kind", frames())
def test_frames_become_what_files_become(kind: str) -> None:
    raw = columns_of(frames()[kind]).raw
    assert raw.columns == ("n", "flag", "job", "day")
    np.testing.assert_array_equal(raw.column("n"), [1.5, np.nan, 3.0])
    np.testing.assert_array_equal(raw.column("flag"), [1, 0, 1])
    assert raw.column("job").tolist() == ["clerk", "", "boss"]
    np.testing.assert_array_equal(raw.column("day"), [18262, 2, np.nan])
    assert any("days since 1970" in said for said in raw.reading.said)


def test_objects_become_numbers_or_text() -> None:
    values = np.array([[1, "a", None], [None, "b", "2"], [2.5, None, np.nan]], dtype=object)
    raw = columns_of(values).raw
    np.testing.assert_array_equal(raw.column("x0"), [1, np.nan, 2.5])
    assert raw.column("x1").tolist() == ["a", "b", ""]
    np.testing.assert_array_equal(raw.column("x2"), [np.nan, 2, np.nan])


def test_what_a_frame_calls_categorical_is() -> None:
    grades = pd.Categorical([1, 2, 1])
    found = columns_of(pd.DataFrame({"grade": grades, "mixed": np.array([1, "a", None], dtype=object)}))
    assert found.categorical == ("grade",)
    assert found.raw.column("grade").tolist() == ["1", "2", "1"]
    assert found.raw.column("mixed").tolist() == ["1", "a", ""]


@pytest.mark.parametrize("kind", [pl.Categorical, pl.Enum(["boss", "clerk"])])
def test_what_polars_calls_categorical_is(kind: Any) -> None:
    jobs = pl.Series("job", ["boss", None, "clerk", "boss"]).cast(kind)
    found = columns_of(pl.DataFrame([jobs]))
    assert found.categorical == ("job",)
    assert found.raw.column("job").tolist() == ["boss", "", "clerk", "boss"]


def test_columns_of_pandas_that_are_cut_or_sparse() -> None:
    ages = pd.Series([17.0, 42.0, np.nan, 68.0])
    frame = pd.DataFrame({0: pd.cut(ages, [0, 30, 60, 90]), 1: pd.arrays.SparseArray([0.0, 0.0, 3.0, 0.0])})
    found = columns_of(frame)
    assert found.categorical == ("0",)
    assert found.raw.column("0").tolist() == ["(0, 30]", "(30, 60]", "", "(60, 90]"]
    np.testing.assert_array_equal(found.raw.column("1"), [0, 0, 3, 0])
    assert isinstance(frame.dtypes[0], pd.CategoricalDtype)  # the caller's frame is as it was
    assert isinstance(frame.dtypes[1], pd.SparseDtype)


def bad(value: float) -> np.ndarray[Any, Any]:
    out = X.copy()
    out[2, 3] = value
    return out


@pytest.mark.parametrize(
    ("x", "y", "options", "text"),
    [
        (bad(np.inf), Y, {}, "X: column 'x3', row 3 is infinite"),
        (csr_array(bad(np.inf)), Y, {}, "X: column 'x3', row 3 is infinite"),
        (X, [1, -1], {}, "y has shape (2,) where X has 4 rows"),
        (X, [1, -1, np.nan, 1], {}, "y: the label of row 3 is NaN or infinite"),
        (X[0], Y, {}, "X has shape (10,)"),
        (X[:0], None, {}, "X has shape (0, 10)"),
        (pd.DataFrame(), None, {}, "X has shape (0, 0)"),
        (pd.DataFrame(X[:, :2], columns=["a", "a"]), None, {}, "two columns are named 'a'"),
        ([[1.0], [1.0, 2.0]], None, {}, "every row needs as many values"),
        (X, Y, {"active": 0}, "0 of 8 parties cannot be active"),
        (X, Y, {"parties": 2, "active": 3}, "3 of 2 parties cannot be active"),
        (X, Y, {"parties": 11}, "parties = 11 with 10 columns"),
    ],
)
def test_bad_arrays(x: Any, y: Any, options: dict[str, Any], text: str) -> None:
    with pytest.raises(DataError, match=re.escape(text)):
        split_columns(x, y, **options)
