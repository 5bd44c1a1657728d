"""The penalty: fits are the optimum, and the chosen ridge predicts rows that were really held back best."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import softmax
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import rbf_kernel

from colonnade.arrays import Floats
from colonnade.losses import LOSSES, with_weights
from colonnade.models.penalty import FOLDS, RIDGES, best_ridge, fitted


def rows(count: int = 90, noise: float = 0.3) -> tuple[Floats, Floats]:
    """The kernel of some rows and a wave over them."""
    rng = np.random.default_rng(1)
    X = rng.uniform(-2, 2, (count, 2))
    return rbf_kernel(X, gamma=1.0), np.sin(2 * X).sum(axis=1) + noise * rng.standard_normal(count)


def weights(count: int) -> Floats:
    weight: Floats = np.random.default_rng(2).integers(0, 4, count).astype(np.float64)
    weight /= weight.mean()
    return weight


@pytest.mark.parametrize("weighted", [False, True])
def test_a_fit_to_numbers_is_scikit_learn_s(weighted: bool) -> None:
    K, y = rows()
    weight = weights(len(y)) + 0.1 if weighted else np.ones(len(y))
    for ridge, dual in zip(RIDGES, fitted(K, y, weight, LOSSES["squared"], ()), strict=True):
        theirs = KernelRidge(alpha=ridge, kernel="precomputed").fit(K, y, sample_weight=weight)
        np.testing.assert_allclose(K @ dual, theirs.predict(K), atol=1e-4)


@pytest.mark.parametrize("name", ["smooth_hinge", "logistic", "softmax"])
def test_at_a_fit_to_classes_the_gradient_is_zero(name: str) -> None:
    """r dual = - w dL/df(x) at every row, where the norm of f is not nearly free."""
    K, wave = rows()
    loss, weight = LOSSES[name], weights(len(wave)) + 0.1
    classes = name == "softmax"
    y: Floats = np.digitize(wave, [-0.5, 0.5]).astype(np.float64) if classes else np.sign(wave)
    duals = fitted(K, y, weight, loss, (3,) if classes else ())
    for ridge, dual in zip(RIDGES[:6], duals, strict=False):
        column = weight[:, None] if classes else weight
        np.testing.assert_allclose(ridge * dual, -column * loss.dz(K @ dual, y), atol=2e-2)
    if classes:
        assert np.mean(softmax(K @ duals[5], axis=1).argmax(axis=1) == y) > 0.8


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("noise", [0.05, 0.3, 3.0])
def test_the_ridge_is_the_best_of_fits_without_the_rows_held_back(noise: float, weighted: bool) -> None:
    K, y = rows(noise=noise)
    weight = weights(len(y)) if weighted else np.ones(len(y))
    naive = {}
    for ridge in RIDGES:
        errors = []
        for fold in range(FOLDS):
            out = np.arange(len(y)) % FOLDS == fold
            model = KernelRidge(alpha=ridge, kernel="precomputed")
            model.fit(K[~out][:, ~out], y[~out], sample_weight=weight[~out])
            errors.append(weight[out] * (model.predict(K[out][:, ~out]) - y[out]) ** 2)
        naive[ridge] = float(np.sum(np.concatenate(errors)))
    found = best_ridge(K, with_weights(y, weight if weighted else None), LOSSES["squared"])
    assert found == min(naive, key=naive.__getitem__)


def test_noise_asks_for_a_larger_ridge() -> None:
    def chosen(noise: float) -> float:
        K, y = rows(300, noise)
        return best_ridge(K, np.sign(y), LOSSES["smooth_hinge"])

    assert chosen(0.0) < chosen(1.0) / 10


def test_classes_are_judged_by_scores_of_the_best_scale() -> None:
    """A plane with wrong labels, where the least loss as it is belongs to a smaller ridge."""
    rng = np.random.default_rng(0)
    X, wrong = rng.standard_normal((600, 30)), rng.random(600) < 0.1
    plane = np.where(X @ rng.standard_normal(30) > 0, 1.0, -1.0)
    y, K, loss = np.where(wrong, -plane, plane), rbf_kernel(X, gamma=0.0083), LOSSES["smooth_hinge"]
    scores = np.zeros((len(RIDGES), len(y)))
    for fold in range(FOLDS):
        out = np.arange(len(y)) % FOLDS == fold
        duals = fitted(K[~out][:, ~out], y[~out], np.ones((~out).sum()), loss, ())
        scores[:, out] = [K[out][:, ~out] @ dual for dual in duals]

    def of_the_best_scale(z: Floats) -> float:
        found = minimize_scalar(
            lambda a: float(loss.value(a * z, y).sum()), bounds=(0.2, 20), method="bounded"
        )
        return float(found.fun)

    as_it_is = RIDGES[int(np.argmin(loss.value(scores, y).sum(axis=1)))]
    ridge = best_ridge(K, y, loss)
    assert ridge == RIDGES[int(np.argmin([of_the_best_scale(z) for z in scores]))]
    assert ridge > as_it_is


def test_too_few_rows_choose_nothing() -> None:
    assert best_ridge(np.eye(2), np.ones(2), LOSSES["squared"]) == 1.0
