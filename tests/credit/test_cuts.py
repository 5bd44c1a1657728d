"""The numbers behind the figures, against scikit-learn and scipy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest
from sklearn import metrics

from colonnade.arrays import Floats
from colonnade.credit.calibration import Point
from colonnade.credit.cuts import Confusion, Flags, Thresholds, confusion_matrix
from colonnade.credit.measures import gains
from colonnade.report.svg import MOST_POINTS, Axis, thinned

# few different scores, so that there are ties
scores = st.lists(
    st.tuples(st.integers(-5, 5), st.booleans()).map(lambda pair: (pair[0] / 4, pair[1])), min_size=2
).filter(lambda rows: len({flag for _, flag in rows}) == 2)


def arrays(rows: list[tuple[float, bool]]) -> tuple[Floats, Flags]:
    return np.array([z for z, _ in rows]), np.array([flag for _, flag in rows])


@given(scores)
def test_curves_are_those_of_scikit_learn(rows: list[tuple[float, bool]]) -> None:
    z, positive = arrays(rows)
    found = Thresholds.of(z, positive)
    fpr, tpr, _ = metrics.roc_curve(positive, z, drop_intermediate=False)
    np.testing.assert_allclose(found.fpr, fpr)
    np.testing.assert_allclose(found.tpr, tpr)
    assert found.average_precision() == pytest.approx(metrics.average_precision_score(positive, z))
    ks, best = found.ks()
    gaps = [abs((z[positive] <= t).mean() - (z[~positive] <= t).mean()) for t in z]
    assert ks == pytest.approx(max(gaps))
    apart = (z[positive] >= best).mean() - (z[~positive] >= best).mean()
    assert abs(apart) == pytest.approx(ks)


@given(scores, st.floats(-1.5, 1.5))
def test_confusion_at_a_threshold(rows: list[tuple[float, bool]], threshold: float) -> None:
    z, positive = arrays(rows)
    found, taken = Confusion.at(threshold, z, positive), z >= threshold
    tn, fp, fn, tp = metrics.confusion_matrix(positive, taken, labels=[False, True]).ravel()
    assert found == Confusion(tp, fp, fn, tn)
    rates = found.rates()
    assert rates["accuracy"] == pytest.approx(metrics.accuracy_score(positive, taken))
    assert rates["recall"] == pytest.approx(metrics.recall_score(positive, taken))
    if taken.any():
        assert rates["precision"] == pytest.approx(metrics.precision_score(positive, taken))
        assert rates["F1"] == pytest.approx(metrics.f1_score(positive, taken))


def test_bins_hold_every_row_once_the_highest_first() -> None:
    rng = np.random.default_rng(0)
    z, positive = rng.normal(size=103), rng.random(103) < 0.3
    bins = gains(z, positive)
    assert sum(each.rows for each in bins) == 103
    assert sum(each.bads for each in bins) == positive.sum()
    assert max(each.rows for each in bins) - min(each.rows for each in bins) <= 1
    assert [each.mean for each in bins] == sorted((each.mean for each in bins), reverse=True)


@pytest.mark.parametrize(("rows", "positives"), [(10, 0), (10, 10), (57, 13)])
def test_intervals_are_wilsons(rows: int, positives: int) -> None:
    expected = binomtest(positives, rows).proportion_ci(method="wilson")
    assert Point(rows, 0.0, positives / rows).interval() == pytest.approx(
        (expected.low, expected.high), abs=1e-6
    )


def test_a_confusion_matrix_of_several_classes() -> None:
    rng = np.random.default_rng(1)
    y, predicted = rng.integers(0, 4, 200), rng.integers(0, 4, 200)
    np.testing.assert_array_equal(confusion_matrix(y, predicted, 4), metrics.confusion_matrix(y, predicted))


def test_a_thinned_line_keeps_its_ends_and_its_corners() -> None:
    x = np.linspace(0, 1, 50_000)
    y = np.where(x < 0.001, x / 0.001, 1.0)
    few, heights = thinned(x, y)
    assert len(few) <= MOST_POINTS
    assert (few[0], few[-1], heights[0], heights[-1]) == (0, 1, 0, 1)
    assert np.abs(np.interp(x, few, heights) - y).max() < 0.02


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_ticks_are_inside_and_about_five(low: float, width: float) -> None:
    ticks = Axis("", low, low + width).ticks()
    assert 2 <= len(ticks) <= 7
    assert all(low - 1e-6 * width <= tick <= low + width * (1 + 1e-6) for tick in ticks)
