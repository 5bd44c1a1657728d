"""Labels: two values become -1 and +1, several 0..K-1, and an unknown one is named with its row."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colonnade.data.prepare.labels import Labels, category_codes, category_names
from colonnade.errors import DataError


@pytest.mark.parametrize(
    ("raw", "coded"),
    [
        ([0, 1, 0], [-1, 1, -1]),
        ([-1, 1, 1], [-1, 1, 1]),
        ([1, 2, 2], [-1, 1, 1]),
        ([2, 10, 2], [-1, 1, -1]),
        (["yes", "no", "yes"], [1, -1, 1]),
        (["10", "9", "9"], [1, -1, -1]),
        ([True, False, True], [1, -1, 1]),
    ],
)
@pytest.mark.parametrize(
    "form", [np.array, lambda v: np.array(v, dtype=object if isinstance(v[0], str) else float)]
)
def test_the_larger_of_two_labels_is_positive(raw: list[Any], coded: list[int], form: Any) -> None:
    y = form(raw)
    assert Labels.fit(y, "binary").transform(y).tolist() == coded


def test_positive_lists_the_labels_that_count() -> None:
    y = np.array([1.0, 12.0, 20.0, 3.0])
    labels = Labels.fit(y, "binary", positive=[12, 20])
    assert labels.transform(y).tolist() == [-1, 1, 1, -1]
    assert Labels.fit(np.array(["b", "a"]), "binary", positive=["a"]).transform(
        np.array(["a", "b"])
    ).tolist() == [1, -1]


@given(st.lists(st.integers(-5, 30), min_size=2, max_size=30).filter(lambda v: len(set(v)) > 1))
def test_classes_are_numbered_in_order(values: list[int]) -> None:
    y = np.array(values, dtype=np.float64)
    labels = Labels.fit(y, "multiclass")
    order = sorted(set(values))
    assert labels.classes == tuple(str(v) for v in order)
    assert labels.transform(y).tolist() == [order.index(v) for v in values]
    assert Labels.from_dict(json.loads(json.dumps(labels.to_dict()))) == labels


def test_regression_keeps_numbers() -> None:
    y = np.array([1.5, -2.0])
    assert Labels.fit(y, "regression").transform(y).tolist() == [1.5, -2.0]
    assert Labels.fit(y, "regression").transform(np.array(["3", "4.5"])).tolist() == [3.0, 4.5]


@pytest.mark.parametrize(
    ("y", "options", "text"),
    [
        ([1, 2, 3], {"task": "binary"}, "3 different labels (1, 2, 3) where two are needed"),
        ([1, 1], {"task": "binary"}, "every label is 1"),
        ([1, 1], {"task": "multiclass"}, "every label is 1"),
        ([1, 2], {"task": "binary", "positive": [3]}, "no row has the positive label 3"),
        ([1, 2], {"task": "binary", "positive": [1, 2]}, "some labels, not all"),
        ([1, 2], {"task": "binary", "positive": []}, "some labels, not all"),
        ([1, np.nan], {"task": "binary"}, "the label of row 2 is missing"),
        (["a", " "], {"task": "binary"}, "the label of row 2 is missing"),
        ([1, np.inf], {"task": "regression"}, "the label of row 2 is missing or infinite"),
        (["1", "x"], {"task": "regression"}, "label 'x' in row 2 is not a number"),
        ([1, 2], {"task": "ranking"}, "task = 'ranking' is not known"),
        ([], {"task": "binary"}, "no labels"),
    ],
)
def test_bad_labels(y: list[Any], options: dict[str, Any], text: str) -> None:
    with pytest.raises(DataError, match=re.escape(text)) as caught:
        Labels.fit(np.array(y), options.pop("task"), name="bank.csv", **options)
    assert text.startswith("task") or str(caught.value).startswith("bank.csv: ")


def test_a_label_out_of_range_is_named_with_its_row_in_the_file() -> None:
    labels = Labels.fit(np.array([0.0, 1.0]), "binary")
    with pytest.raises(
        DataError,
        match=re.escape(
            "t.csv: label 7 in row 42 is in no training row, so no model can know it (1 such row; the "
            "training rows have 0, 1); leave such rows out"
        ),
    ):
        labels.transform(np.array([0.0, 7.0]), name="t.csv", origin=np.array([3, 41]))


def test_a_count_that_training_did_not_have_may_be_a_number_to_predict() -> None:
    labels = Labels.fit(np.array([0.0, 1.0, 2.0]), "multiclass")
    with pytest.raises(DataError, match=r"label 38 in row 1 is in no training row.*set loss = 'squared'"):
        labels.transform(np.array([38.0]))


@pytest.mark.parametrize(("positive", "coded"), [("TRUE", [1.0, -1.0]), ("false", [-1.0, 1.0])])
def test_truth_is_known_by_its_word_though_it_is_read_as_a_number(positive: str, coded: list[float]) -> None:
    labels = Labels.fit(np.array([1.0, 0.0]), "binary", positive=[positive])
    assert labels.transform(np.array([1.0, 0.0])).tolist() == coded


def test_codes_of_categories() -> None:
    values = np.array(["b ", "a", "", "zz", "a"], dtype=object)
    assert category_names(values) == ("a", "b", "zz")
    assert category_codes(values, ("a", "b")).tolist() == [1, 0, -1, -1, 0]
    assert category_names(np.array([10.0, 9.0, 2.5, np.nan])) == ("2.5", "9", "10")
