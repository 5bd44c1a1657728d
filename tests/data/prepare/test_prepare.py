"""Prepared columns equal a naive version, learn from training rows only, and survive storage."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import csr_array

from colonnade.arrays import Floats
from colonnade.data.prepare.prepare import Preparation
from colonnade.data.table import RawTable
from colonnade.errors import DataError

dense = arrays(np.float64, st.tuples(st.integers(2, 12), st.integers(1, 5)), elements=st.integers(-50, 50))


def table(X: Any, *columns: str) -> RawTable:
    names = columns or tuple(f"c{j}" for j in range(X.shape[1]))
    return RawTable("bank.csv", names, X)


def mixed(**columns: list[Any]) -> RawTable:
    values = tuple(
        np.array(v, dtype=object if isinstance(v[0], str) else np.float64) for v in columns.values()
    )
    return RawTable("bank.csv", tuple(columns), values)


def full(X: Any) -> Floats:
    return np.asarray(X.toarray() if isinstance(X, csr_array) else X)


def naive_scale(train: Floats, X: Floats, scale: str) -> Floats:
    """One column at a time, by the book."""
    out = np.zeros_like(X)
    for j in range(X.shape[1]):
        t, x = train[:, j], X[:, j]
        if min(t) == max(t):
            continue
        match scale:
            case "none":
                out[:, j] = x
            case "zscore":
                mean = sum(t) / len(t)
                out[:, j] = (x - mean) / (sum((t - mean) ** 2) / len(t)) ** 0.5
            case "minmax":
                out[:, j] = (x - min(t)) / (max(t) - min(t))
            case "maxabs":
                out[:, j] = x / max(abs(t))
    return out


@pytest.mark.parametrize("scale", ["none", "zscore", "minmax", "maxabs"])
@given(X=dense, data=st.data())
@settings(max_examples=40, deadline=None)
def test_scaling_equals_naive_with_statistics_of_training_rows(
    scale: Any, X: Floats, data: st.DataObject
) -> None:
    rows = np.array(data.draw(st.lists(st.integers(0, len(X) - 1), min_size=2, unique=True)))
    assume((X[rows].min(axis=0) != X[rows].max(axis=0)).any())
    raw = table(X)
    before = X.copy()
    prepared = Preparation.fit(raw.take(rows), scale=scale).transform(raw)
    np.testing.assert_allclose(prepared.X, naive_scale(X[rows], X, scale), atol=1e-12)
    assert prepared.X.dtype == np.float64
    assert prepared.X.flags.c_contiguous
    np.testing.assert_array_equal(X, before)  # the raw table is left as it was


def test_test_rows_cannot_change_what_is_learnt() -> None:
    X = np.array([[1.0, 5.0], [3.0, 6.0], [1e6, -1e6]])
    train = np.array([0, 1])
    one = Preparation.fit(table(X).take(train), scale="zscore", missing="mean")
    X[2] = np.nan
    assert Preparation.fit(table(X).take(train), scale="zscore", missing="mean") == one


def test_a_number_divides_every_column() -> None:
    X = np.array([[0, 255], [51, 0]], dtype=np.uint8)
    prepared = Preparation.fit(table(X), scale=255.0).transform(table(X))
    np.testing.assert_allclose(prepared.X, [[0.0, 1.0], [0.2, 0.0]])


@given(dense.map(np.abs), st.sampled_from(["none", "minmax", "maxabs", 4.0]), st.booleans())
@settings(max_examples=40, deadline=None)
def test_sparse_equals_dense_and_stays_sparse(X: Floats, scale: Any, intercept: bool) -> None:
    X[0] = 0.0  # so that a column's minimum is the zero that is not stored
    assume(X.any())
    wanted = Preparation.fit(table(X), scale=scale, intercept=intercept)
    got = Preparation.fit(table(csr_array(X)), scale=scale, intercept=intercept)
    prepared = got.transform(table(csr_array(X)))
    assert isinstance(prepared.X, csr_array)
    assert prepared.X.indices.dtype == np.int32
    np.testing.assert_allclose(prepared.X.toarray(), wanted.transform(table(X)).X, atol=1e-15)
    assert (got.constant, prepared.columns) == (wanted.constant, wanted.outputs)
    # the training file decides the form: the other form of the same rows gives the same numbers
    np.testing.assert_array_equal(full(got.transform(table(X)).X), full(prepared.X))
    np.testing.assert_array_equal(wanted.transform(table(csr_array(X))).X, wanted.transform(table(X)).X)


def test_zscore_shift_reaches_the_zeros_of_a_sparser_test_file() -> None:
    train = np.array([[1.0], [3.0]])
    prepared = Preparation.fit(table(train), scale="zscore").transform(
        table(csr_array(np.array([[0.0], [2.0]])))
    )
    assert prepared.X.tolist() == [[-2.0], [0.0]]


def test_sparse_refusals_say_why_and_what_instead() -> None:
    X = csr_array(np.array([[0.0, -1.0], [2.0, 0.0]]))
    with pytest.raises(DataError, match=r"'zscore' would fill every zero.*use 'maxabs'"):
        Preparation.fit(table(X), scale="zscore")
    with pytest.raises(DataError, match=r"column 'c1' has negative values.*use 'maxabs'"):
        Preparation.fit(table(X), scale="minmax")
    with pytest.raises(DataError, match="none can be categorical"):
        Preparation.fit(table(X), categorical=["c0"])
    prepared = Preparation.fit(table(X), scale="maxabs").transform(table(X))
    assert full(prepared.X).tolist() == [[0, -1], [1, 0]]


# --- categories -------------------------------------------------------------------------------------


@given(
    st.lists(st.sampled_from(["Ulm", "Rom", "Bonn", "10", "9"]), min_size=2, max_size=20),
    st.lists(st.sampled_from(["Ulm", "Rom", "Oslo", "9"]), min_size=1, max_size=20),
)
@settings(deadline=None)
def test_one_hot_equals_naive(train: list[str], test: list[str]) -> None:
    assume(len(set(train)) > 1)
    prepared = Preparation.fit(mixed(town=train), categorical=["town"]).transform(mixed(town=test))
    known = sorted(set(train), key=lambda t: float(t)) if set(train) <= {"9", "10"} else sorted(set(train))
    assert prepared.columns == tuple(f"town={k}" for k in known)
    assert prepared.X.tolist() == [[float(t == k) for k in known] for t in test]


def test_one_hot_columns_stand_where_their_column_stood() -> None:
    raw = mixed(a=[1.0, 2.0], town=["Ulm", "Rom"], b=[5.0, 7.0], code=[3.0, 12.0])
    prepared = Preparation.fit(raw, scale="none", categorical=["code", "town"], intercept=True).transform(
        raw, np.array([1.0, -1.0])
    )
    assert prepared.columns == ("a", "town=Rom", "town=Ulm", "b", "code=3", "code=12", "(intercept)")
    assert prepared.X.tolist() == [[1, 0, 1, 5, 1, 0, 1], [2, 1, 0, 7, 0, 1, 1]]
    assert prepared.y is not None
    assert prepared.y.tolist() == [1.0, -1.0]


def test_numbers_and_text_name_the_same_category() -> None:
    prep = Preparation.fit(mixed(code=["1", "2", "1"]), categorical=["code"])
    assert prep.transform(mixed(code=[2.0, 1.0, 3.0])).X.tolist() == [[0, 1], [1, 0], [0, 0]]


@pytest.mark.parametrize(("kinds", "sparse"), [(254, False), (255, True)])
def test_wide_one_hot_is_sparse(kinds: int, sparse: bool) -> None:
    raw = mixed(code=[float(k) for k in range(kinds)], n=[float(k % 3) for k in range(kinds)])
    prepared = Preparation.fit(raw, scale="none", rare=0, categorical=["code"], intercept=True).transform(raw)
    assert isinstance(prepared.X, csr_array) == sparse
    X = full(prepared.X)
    np.testing.assert_array_equal(X[:, :kinds], np.eye(kinds))
    np.testing.assert_array_equal(X[:, kinds], np.arange(kinds) % 3)
    np.testing.assert_array_equal(X[:, kinds + 1], 1.0)


def test_text_in_a_number_column_names_column_row_and_fix() -> None:
    raw = mixed(income=["1.5", "", "a lot"], age=[1.0, 2.0, 3.0])
    fitted = Preparation.fit(mixed(income=[1.5, 2.0], age=[1.0, 2.0]), missing="zero")
    with pytest.raises(DataError, match=r"bank.csv: column 'income', row 3 holds 'a lot'.*correct it"):
        fitted.transform(raw)
    with pytest.raises(
        DataError, match="column 'income', row 3"
    ):  # the row of the file, not of the selection
        fitted.transform(raw.take(np.array([2, 0])))
    with pytest.raises(DataError, match=re.escape("no column 'agee'; did you mean 'age'?")):
        Preparation.fit(raw, categorical=["agee"])


# --- gaps and constants -----------------------------------------------------------------------------


@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_gaps(form: Any) -> None:
    X = np.array([[1.0, 0.0], [np.nan, 2.0], [3.0, np.nan], [0.0, 1.0]])
    raw = table(form(X))

    def filled(missing: Any) -> Floats:
        return full(Preparation.fit(raw, scale="none", missing=missing).transform(raw).X)

    np.testing.assert_array_equal(filled("zero"), np.nan_to_num(X))
    np.testing.assert_allclose(filled("mean"), [[1.0, 0.0], [4 / 3, 2.0], [3.0, 1.0], [0.0, 1.0]])
    with pytest.raises(DataError, match=r"bank.csv: column 'c0', row 2 has no value.*missing = 'auto'"):
        filled("error")
    fine = Preparation.fit(raw.take(np.array([0, 3])), scale="none", missing="error")
    with pytest.raises(DataError, match="column 'c1', row 3 has no value"):
        fine.transform(raw.take(np.array([3, 2])))


def test_gaps_in_categories() -> None:
    raw = mixed(town=["Ulm", "", "Rom"], code=[1.0, 2.0, np.nan])
    prepared = Preparation.fit(raw, categorical=["town", "code"], missing="zero").transform(raw)
    assert prepared.columns == ("town=Rom", "town=Ulm", "code=1", "code=2")
    assert prepared.X.tolist() == [[0, 1, 1, 0], [0, 0, 0, 1], [1, 0, 0, 0]]
    with pytest.raises(DataError, match="column 'town', row 2 has no value"):
        Preparation.fit(raw, categorical=["town", "code"], missing="error")


@pytest.mark.parametrize("scale", ["none", "zscore", "minmax", "maxabs", 2.0])
def test_constant_columns_are_named_and_become_zero(scale: Any) -> None:
    train = mixed(a=[4.0, 4.0], town=["Ulm", "Ulm"], b=[0.0, 1.0])
    prep = Preparation.fit(train, scale=scale, categorical=["town"])
    assert prep.constant == ("a", "town")
    prepared = prep.transform(mixed(a=[4.0, 9.0], town=["Ulm", "Rom"], b=[0.0, 1.0]))
    assert prepared.columns == ("a", "town=Ulm", "b")
    assert not prepared.X[:, :2].any()
    assert prepared.X[1, 2] > 0
    assert prep.teaches
    alone = Preparation.fit(train.select(["a", "town"]), scale=scale, categorical=["town"])
    assert not alone.teaches
    assert "every column (a, town) is constant" in alone.warnings[-1]


@pytest.mark.parametrize("missing", ["auto", "mean", "keep"])
@pytest.mark.parametrize("kind", ["number", "text", "sparse"])
def test_columns_that_teach_nothing_are_one_column_of_zeros(kind: str, missing: Any) -> None:
    raw = {
        "number": mixed(a=[7.0] * 30, b=[8.0] * 30),
        "text": mixed(name=[f"Ada {k}" for k in range(30)], land=["de"] * 30),
        "sparse": table(csr_array(np.full((30, 2), 3.0))),
    }[kind]
    prep = Preparation.fit(raw, missing=missing)
    assert not full(prep.transform(raw).X).any()
    assert len(prep.outputs) == 1
    assert not Preparation.from_dict(prep.to_dict()).teaches


@pytest.mark.parametrize("scale", ["none", "minmax", "maxabs"])
def test_constant_columns_of_a_sparse_file_are_no_longer_stored(scale: Any) -> None:
    X = np.array([[4.0, 0.0, 0.0], [4.0, 1.0, 0.0], [4.0, 0.0, 0.0]])
    prep = Preparation.fit(table(csr_array(X)), scale=scale)
    prepared = prep.transform(table(csr_array(X)))
    assert prep.constant == ("c0", "c2")
    assert full(prepared.X).tolist() == [[0, 0, 0], [0, 1, 0], [0, 0, 0]]
    assert isinstance(prepared.X, csr_array)
    assert prepared.X.nnz == 1


def test_values_too_large_to_scale_are_an_error_not_a_nan() -> None:
    with pytest.raises(DataError, match="column 'c0' has values too large"):
        Preparation.fit(table(np.array([[1e308], [-1e308]])), scale="zscore")
    prep = Preparation.fit(table(np.array([[0.0], [1e-300]])), scale="minmax")
    with pytest.raises(DataError, match="too large to scale"):
        prep.transform(table(np.array([[1e300]])))


# --- storage and misuse -----------------------------------------------------------------------------


@pytest.mark.parametrize("sparse", [False, True])
def test_a_stored_preparation_prepares_alike(sparse: bool) -> None:
    X = np.array([[0.1, 0.0, 3.0], [0.7, 1 / 3, 3.0], [0.0, 0.0, 3.0]])
    raw = table(csr_array(X)) if sparse else table(X)
    prep = Preparation.fit(raw, scale="maxabs", categorical=() if sparse else ["c1"], intercept=True)
    again = Preparation.from_dict(json.loads(json.dumps(prep.to_dict(), allow_nan=False)))
    assert again == prep
    one, two = prep.transform(raw), again.transform(raw)
    assert one.columns == two.columns
    assert (one.X != two.X).sum() == 0


def test_columns_are_matched_by_name() -> None:
    prep = Preparation.fit(table(np.array([[1.0, 2.0], [3.0, 5.0]]), "a", "b"), scale="none")
    swapped = prep.transform(table(np.array([[7.0, 8.0, 9.0]]), "b", "extra", "a"))
    assert swapped.X.tolist() == [[9.0, 7.0]]
    assert prep.transform(table(np.array([[7.0, 9.0]]), "b", "a")).X.tolist() == [[9.0, 7.0]]
    with pytest.raises(DataError, match="no column 'b'"):
        prep.transform(table(np.array([[7.0]]), "a"))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"scale": "zscroe"}, "scale = 'zscroe' is not known"),
        ({"scale": -1.0}, "scale = -1.0 is not known"),
        ({"missing": "drop"}, "missing = 'drop' is not known"),
    ],
)
def test_unknown_options(options: dict[str, Any], text: str) -> None:
    with pytest.raises(DataError, match=re.escape(text)):
        Preparation.fit(table(np.eye(2)), **options)
    with pytest.raises(DataError, match="no training rows"):
        Preparation.fit(table(np.zeros((0, 2))))
