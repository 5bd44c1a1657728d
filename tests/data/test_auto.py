"""Preparation by default equals scikit-learn's where their rules are the same, and says what it did."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import csr_array
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import MaxAbsScaler, OneHotEncoder, StandardScaler

from colonnade import VerticalRegressor
from colonnade.arrays import Floats
from colonnade.data.prepare.prepare import Preparation
from colonnade.data.table import RawTable

numbers = arrays(np.float64, st.tuples(st.integers(4, 15), st.integers(1, 4)), elements=st.integers(-20, 20))


def table(X: Any, y: Any = None) -> RawTable:
    return RawTable("bank.csv", tuple(f"c{j}" for j in range(X.shape[1])), X, y=y)


@given(numbers, st.data())
@settings(max_examples=60, deadline=None)
def test_numbers_equal_imputer_and_scaler_where_nothing_is_far_out(X: Floats, data: st.DataObject) -> None:
    X[data.draw(arrays(np.bool_, X.shape, elements=st.booleans()))] = np.nan
    there = [X[~np.isnan(X[:, j]), j] for j in range(X.shape[1])]
    assume(all(len(np.unique(column)) > 1 for column in there))
    for column in there:
        low, high = np.quantile(column, [0.05, 0.95])
        assume(column.min() >= 2 * low - high)
        assume(column.max() <= 2 * high - low)
    prep = Preparation.fit(table(X))
    found = prep.transform(table(X))
    imputed = SimpleImputer(add_indicator=True).fit_transform(X)
    wanted = StandardScaler().fit_transform(imputed[:, : X.shape[1]])
    at = [found.columns.index(f"c{j}") for j in range(X.shape[1])]
    np.testing.assert_allclose(np.asarray(found.X)[:, at], wanted, atol=1e-9)
    marked = [k for k, c in enumerate(found.columns) if c.endswith("(missing)")]
    np.testing.assert_array_equal(np.asarray(found.X)[:, marked], imputed[:, X.shape[1] :])
    again = Preparation.from_dict(json.loads(json.dumps(prep.to_dict(), allow_nan=False)))
    assert again == prep


@given(
    st.lists(st.sampled_from("abcdef"), min_size=5, max_size=60),
    st.lists(st.sampled_from("abcxyz"), min_size=1, max_size=10),
    st.integers(0, 6),
)
@settings(max_examples=60, deadline=None)
def test_categories_equal_the_one_hot_encoder(train: list[str], test: list[str], rare: int) -> None:
    raw, new = (RawTable("t", ("town",), (np.array(v, dtype=object),)) for v in (train, test))
    counts = [train.count(v) for v in set(train)]
    assume(sum(n >= rare for n in counts) + any(n < rare for n in counts) > 1)
    encoder = OneHotEncoder(
        min_frequency=rare or None, handle_unknown="infrequent_if_exist" if rare else "ignore"
    ).fit(np.array(train).reshape(-1, 1))
    prep = Preparation.fit(raw, rare=rare)
    for rows in (raw, new):
        wanted = encoder.transform(rows.column("town").reshape(-1, 1).astype(str)).toarray()
        np.testing.assert_array_equal(prep.transform(rows).X, wanted)


@given(numbers)
@settings(max_examples=40, deadline=None)
def test_sparse_columns_equal_the_largest_value_scaler_and_stay_sparse(X: Floats) -> None:
    X[0] = 0.0
    kept = X.any(axis=0)
    assume(kept.any())
    found = Preparation.fit(table(csr_array(X))).transform(table(csr_array(X))).X
    assert isinstance(found, csr_array)
    np.testing.assert_allclose(found.toarray(), MaxAbsScaler().fit_transform(X)[:, kept], atol=1e-12)


def test_values_of_one_row_are_joined_only_where_they_are_many() -> None:
    again = [f"p{k % 30}" for k in range(120)]
    for more, joined in ((["new"], False), ([f"new{k}" for k in range(12)], True)):
        values = np.array([*again, *more], dtype=object)
        prep = Preparation.fit(RawTable("bank.csv", ("person",), (values,)))
        assert ("person=(other)" in prep.outputs) == joined
        assert len(prep.outputs) == 31


def test_outliers_are_drawn_nearer_and_keep_their_order() -> None:
    X = np.concatenate([np.linspace(0.0, 1.0, 200), [8.0, 90.0, np.nan]])[:, None]
    prep = Preparation.fit(table(X), tails="bend")
    assert "2 outliers drawn nearer in c0 (2)" in prep.done()
    assert Preparation.from_dict(json.loads(json.dumps(prep.to_dict(), allow_nan=False))) == prep
    low, high = np.nanquantile(X, [0.01, 0.99])
    beyond, width = high + (high - low), high - low
    bent = np.where(beyond < X, beyond + width * np.log1p(np.maximum(X - beyond, 0) / width), X)
    wanted = StandardScaler().fit_transform(SimpleImputer().fit_transform(bent))
    np.testing.assert_allclose(np.asarray(prep.transform(table(X)).X)[:, :1], wanted, atol=1e-9)
    new = np.asarray(prep.transform(table(np.array([[1.0], [9.0], [1e9], [-1e308]]))).X)[:, 0]
    assert -2000 < new[3] < new[0] < new[1] < new[2] < 50


@pytest.mark.parametrize(("loss", "word"), [("squared", "drawn nearer"), ("poisson", "capped")])
def test_a_linear_model_of_a_number_keeps_its_outliers_in_order(loss: str, word: str) -> None:
    rng = np.random.default_rng(0)
    X = np.exp(1.5 * rng.normal(size=(400, 2)))
    y = np.round(X.sum(axis=1))
    # what `lbfgs` tries beforehand is in test_outliers
    found = VerticalRegressor("afsvrg-vp", loss=loss, columns={"bank": [0], "shop": [1]}).fit(X, y)
    assert all(word in " ".join(said) for said in found.result_.data.done.values())
    if loss == "squared":
        assert found.score(X, y) > 0.95
    network = VerticalRegressor(
        "split", parties=2, epochs=1, model={"kind": "mlp", "hidden": [4]}, tolerance=0
    )
    assert all("capped" in " ".join(said) for said in network.fit(X, y).result_.data.done.values())


def test_new_rows_are_capped_like_training_rows() -> None:
    X = np.append(np.arange(100.0), 1e9).reshape(-1, 1)
    prep = Preparation.fit(table(X))
    ends = prep.transform(table(np.array([[1e30], [prep.numbers.high[0]], [-1e30]]))).X
    assert ends[0] == ends[1]
    assert -3 < ends[2] < ends[0] < 5
    assert "1 outlier capped in c0 (1)" in prep.done()


@pytest.mark.parametrize(("scale", "columns"), [("auto", ("c1",)), ("zscore", ("c0", "c1"))])
def test_constant_columns_are_left_out_unless_a_scale_is_asked_for(scale: Any, columns: tuple[str]) -> None:
    X = np.column_stack([np.full(8, 3.0), np.arange(8.0)])
    assert Preparation.fit(table(X), scale=scale).outputs == columns
