"""Pooled comparators: DSG is its naive self, learns what no line can, and LIBSVM has the same kernel."""

from __future__ import annotations

import numpy as np
import pytest
from tests.oracles.dsg import phi

from colonnade.arrays import Floats
from colonnade.baselines.dsg import DsgKernel, fit_dsg
from colonnade.baselines.svc import bandwidth_and_penalty, fit_svc, trade_off
from colonnade.job import Train
from colonnade.losses import LOSSES


def ring(n: int) -> tuple[Floats, Floats]:
    X = np.random.default_rng(0).standard_normal((n, 3))
    norm = np.linalg.norm(X, axis=1)
    return X, np.where(norm > np.median(norm), 1.0, -1.0)


def test_dsg_learns_a_ring() -> None:
    X, y = ring(800)
    fit = fit_dsg(
        X[:600], y[:600], LOSSES["smooth_hinge"], DsgKernel(block=32), Train(epochs=40, batch=64),
        features=512, seed=0,
    )  # fmt: skip
    assert np.mean((fit.scores(X[600:]) >= 0) == (y[600:] > 0)) > 0.9


@pytest.mark.parametrize("step", ["constant", "falling"])
def test_scores_are_the_sum_over_features(step: str) -> None:
    X, y = ring(100)
    kernel = DsgKernel(block=4, step=step)  # type: ignore[arg-type]
    fit = fit_dsg(X, y, LOSSES["logistic"], kernel, Train(epochs=2, batch=20, step=0.3), features=16, seed=1)
    naive = np.zeros(100)
    for i, alpha in enumerate(fit.alpha):
        naive += alpha * phi(X, fit.features.omega[:, i], fit.features.b[i])
    np.testing.assert_allclose(fit.scores(X), naive, atol=1e-12)
    assert fit.penalty == pytest.approx(0.5 * 1e-4 * 16 * np.sum(fit.alpha**2))


def test_one_round_is_one_step_by_hand() -> None:
    X, y = ring(30)
    kernel = DsgKernel(block=3, sigma=1.0, step="constant")
    fit = fit_dsg(X, y, LOSSES["squared"], kernel, Train(epochs=1, batch=30, step=0.5), features=3, seed=2)
    expected = [0.5 / 3 * np.mean(y * phi(X, fit.features.omega[:, i], fit.features.b[i])) for i in range(3)]
    np.testing.assert_allclose(fit.alpha, expected)


def test_svc_learns_the_ring_with_the_median_bandwidth() -> None:
    X, y = ring(800)
    sigma, l2 = bandwidth_and_penalty(X, y, LOSSES["smooth_hinge"], fraction=0.6, l2=1e-3)
    assert l2 == 1e-3
    apart = np.linalg.norm(X[:400] - X[400:], axis=1)
    assert sigma == pytest.approx(0.6 * np.median(apart), rel=0.1)
    assert fit_svc(X[:600], y[:600], sigma=sigma).score(X[600:], y[600:]) > 0.93
    assert trade_off(1000, 1e-3) == 1.0
    assert trade_off(10, 0.0) == 1e3
