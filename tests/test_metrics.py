"""Test metrics: what they are on cases that can be counted by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import r2_score, roc_auc_score

from colonnade.losses import LOSSES
from colonnade.metrics import metrics_of


def test_accuracy_and_auc_of_a_counted_case() -> None:
    z = np.array([2.0, -1.0, 0.5, -3.0])
    y = np.array([1.0, 1.0, -1.0, -1.0])
    metrics = metrics_of(LOSSES["logistic"], z, y)
    assert metrics["test_accuracy"] == 0.5  # rows 0 and 3
    assert metrics["test_auc"] == 0.75  # of the 4 pairs only (-1.0, 0.5) is the wrong way round
    assert metrics["test_loss"] == pytest.approx(np.log1p(np.exp(-y * z)).mean())
    assert set(metrics) == {"test_loss", "test_accuracy", "test_auc"}


def test_auc_is_left_out_where_only_one_class_is_present() -> None:
    assert "test_auc" not in metrics_of(LOSSES["logistic"], np.array([1.0, -1.0]), np.ones(2))


def test_auc_does_not_change_under_an_increasing_map_of_the_scores() -> None:
    rng = np.random.default_rng(0)
    z, y = rng.standard_normal(50), np.where(rng.random(50) < 0.4, 1.0, -1.0)
    first, second = (metrics_of(LOSSES["logistic"], s, y)["test_auc"] for s in (z, np.exp(z)))
    assert first == pytest.approx(second)


def test_regression_reports_rmse_and_r2_and_no_accuracy() -> None:
    y = np.array([0.0, 1.0, 2.0, 3.0])
    metrics = metrics_of(LOSSES["squared"], y + 1.0, y)
    assert metrics["rmse"] == pytest.approx(1.0)
    assert metrics["r2"] == pytest.approx(1 - 4 / 5)
    assert metrics["test_loss"] == pytest.approx(0.5)
    assert "test_accuracy" not in metrics


def test_a_perfect_regression_has_r2_one_and_rmse_zero() -> None:
    y = np.array([0.5, -1.0, 4.0])
    metrics = metrics_of(LOSSES["squared"], y, y)
    assert (metrics["rmse"], metrics["r2"]) == (0.0, 1.0)


@given(st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=2, max_size=30))
@settings(max_examples=100)
def test_auc_equals_scikit_learn_s_ties_included(rows: list[tuple[int, bool]]) -> None:
    z = np.array([score / 2 for score, _ in rows])
    y = np.array([1.0 if positive else -1.0 for _, positive in rows])
    metrics = metrics_of(LOSSES["logistic"], z, y)
    if len(set(y)) == 2:
        assert metrics["test_auc"] == pytest.approx(roc_auc_score(y, z))
    else:
        assert "test_auc" not in metrics


@given(st.lists(st.tuples(st.floats(-5, 5), st.integers(-5, 5)), min_size=2, max_size=30))
@settings(max_examples=60)
def test_r2_equals_scikit_learn_s(rows: list[tuple[float, int]]) -> None:
    z, y = np.array([score for score, _ in rows]), np.array([float(label) for _, label in rows])
    if len(set(y)) > 1:
        assert metrics_of(LOSSES["squared"], z, y)["r2"] == pytest.approx(r2_score(y, z))
