"""Intervals of metrics: against DeLong's own formula, SciPy's closed form of Wilson's, and the bootstrap."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

from colonnade.intervals import NORMAL, gains, intervals
from colonnade.losses import LOSSES, with_weights
from colonnade.metrics import metrics_of

RNG = np.random.default_rng(0)
N = 400
Y = np.where(RNG.random(N) < 0.3, 1.0, -1.0)
Z = np.round(0.8 * Y + RNG.normal(size=N), 1)  # with ties
OTHER = np.round(0.4 * Y + 0.5 * Z + RNG.normal(size=N), 1)


def delong(scores: list[np.ndarray], y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """AUCs and their covariance as the paper has them: structural components from all pairs of rows."""
    up, down = y > 0, y <= 0
    kernels = [
        (z[up][:, None] > z[down][None, :]) + 0.5 * (z[up][:, None] == z[down][None, :]) for z in scores
    ]
    v10, v01 = (np.array([kernel.mean(axis=axis) for kernel in kernels]) for axis in (1, 0))
    covariance = np.cov(v10) / up.sum() + np.cov(v01) / down.sum()
    return np.array([kernel.mean() for kernel in kernels]), covariance


def test_the_interval_of_an_auc_is_that_of_delong() -> None:
    areas, covariance = delong([Z, OTHER], Y)
    low, high = intervals(LOSSES["logistic"], Z, Y)["test_auc"]
    half = NORMAL * covariance[0, 0] ** 0.5
    assert (low, high) == pytest.approx((areas[0] - half, areas[0] + half), abs=1e-12)
    gain, low, high = gains(LOSSES["logistic"], Z, OTHER, Y)["test_auc"]
    half = NORMAL * (covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1]) ** 0.5
    assert (gain, low, high) == pytest.approx(
        (areas[0] - areas[1], areas[0] - areas[1] - half, areas[0] - areas[1] + half), abs=1e-12
    )


def test_the_interval_of_an_accuracy_is_wilsons() -> None:
    right = int((np.sign(np.where(Z == 0, -1, Z)) == Y).sum())
    known = metrics_of(LOSSES["logistic"], Z, Y)["test_accuracy"]
    expected = binomtest(round(known * N), N).proportion_ci(method="wilson")
    assert abs(right - known * N) <= (Z == 0).sum()
    assert intervals(LOSSES["logistic"], Z, Y)["test_accuracy"] == pytest.approx(
        (expected.low, expected.high), abs=1e-12
    )


@pytest.mark.parametrize(
    ("loss", "weighted"), [("squared", False), ("squared", True), ("poisson", False), ("logistic", True)]
)
def test_all_others_are_near_the_bootstrap(loss: str, weighted: bool) -> None:
    rng, found = np.random.default_rng(1), LOSSES[loss]
    z = rng.normal(size=N)
    other = z + rng.normal(size=N)
    if loss == "squared":
        truth = z + rng.normal(size=N)
    elif loss == "poisson":
        truth = rng.poisson(np.exp(z)).astype(float)
    else:
        truth = np.where(rng.random(N) < 1 / (1 + np.exp(-z)), 1.0, -1.0)
    y = with_weights(truth, rng.uniform(0.5, 2, N) if weighted else None)
    ours, differences = intervals(found, z, y), gains(found, z, other, y)
    assert set(ours) == set(metrics_of(found, z, y)) == set(differences)
    draws: dict[str, list[float]] = {name: [] for name in ours}
    both: dict[str, list[float]] = {name: [] for name in ours}
    for _ in range(1500):
        rows = rng.integers(0, N, N)
        one, two = (metrics_of(found, scores[rows], y[rows]) for scores in (z, other))
        for name in ours:
            draws[name].append(one[name])
            both[name].append(one[name] - two[name])
    for name, (low, high) in ours.items():
        assert high - low == pytest.approx(2 * NORMAL * np.std(draws[name]), rel=0.12), name
        gain, low, high = differences[name]
        assert high - low == pytest.approx(2 * NORMAL * np.std(both[name]), rel=0.12), name
        assert low < gain < high


def test_too_few_rows_have_no_interval() -> None:
    assert intervals(LOSSES["logistic"], Z[:5], Y[:5]) == {}
    few = np.where(np.arange(N) < 3, 1.0, -1.0)
    assert "test_auc" not in intervals(LOSSES["logistic"], Z, few)
    assert "test_accuracy" in intervals(LOSSES["logistic"], Z, few)
