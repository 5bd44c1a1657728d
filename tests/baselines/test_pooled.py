"""The pooled baseline is the optimum: zero gradient, closed form for ridge, scikit-learn's for logistic."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression
from tests.oracles.sgd import SCALAR_LOSSES
from tests.oracles.sgd import objective as naive_objective

from colonnade.arrays import Floats
from colonnade.baselines.pooled import fit_pooled, objective, pool
from colonnade.data.split.assign import assign
from colonnade.job import Data
from colonnade.losses import LOSSES
from colonnade.models.linear import rows_of
from colonnade.regularizers import REGULARIZERS, Penalty


def problem(seed: int = 0, n: int = 150, d: int = 8) -> tuple[Floats, Floats, Floats]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    target = X @ rng.standard_normal(d) + rng.standard_normal(n)
    return X, target, np.where(target >= 0, 1.0, -1.0)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("regularizer", sorted(REGULARIZERS))
@pytest.mark.parametrize("loss", sorted(SCALAR_LOSSES))
def test_at_the_fit_the_gradient_vanishes_and_the_loss_is_the_objective(
    loss: str, regularizer: str, sparse: bool
) -> None:
    X, target, label = problem()
    y = target if loss == "squared" else label
    L, g = LOSSES[loss], Penalty(REGULARIZERS[regularizer], 0.01)
    fit = fit_pooled(csr_array(X) if sparse else X, y, L, g)
    value, gradient = objective(fit.w, rows_of(X), y, L, g)
    assert np.abs(gradient).max() < 1e-6
    assert (
        fit.loss
        == pytest.approx(value)
        == pytest.approx(naive_objective(X, y, fit.w, L, REGULARIZERS[regularizer], 0.01))
    )


@pytest.mark.parametrize("loss", sorted(SCALAR_LOSSES))
def test_nothing_near_the_fit_is_better(loss: str) -> None:
    X, target, label = problem(1)
    y = target if loss == "squared" else label
    fit = fit_pooled(X, y, LOSSES[loss], Penalty(REGULARIZERS["l2"], 0.01))
    rng = np.random.default_rng(2)
    for size in (1e-3, 1e-1, 1.0):
        w = fit.w + size * rng.standard_normal(len(fit.w))
        assert objective(w, rows_of(X), y, LOSSES[loss], Penalty(REGULARIZERS["l2"], 0.01))[0] > fit.loss


def test_the_objective_s_gradient_is_its_derivative() -> None:
    X, _, y = problem(3, n=20, d=4)
    w, h = np.array([0.3, -1.0, 2.0, 0.0]), 1e-6
    arguments = (rows_of(X), y, LOSSES["logistic"], Penalty(REGULARIZERS["nonconvex"], 0.3, free=(1,)))
    slopes = [
        (objective(w + h * e, *arguments)[0] - objective(w - h * e, *arguments)[0]) / (2 * h)
        for e in np.eye(4)
    ]
    np.testing.assert_allclose(objective(w, *arguments)[1], slopes, atol=1e-8)


@pytest.mark.parametrize("l2", [1e-3, 0.1, 1.0])
def test_ridge_is_its_closed_form(l2: float) -> None:
    X, y, _ = problem(4)
    n, d = X.shape
    exact = np.linalg.solve(X.T @ X / n + l2 * np.eye(d), X.T @ y / n)
    np.testing.assert_allclose(
        fit_pooled(X, y, LOSSES["squared"], Penalty(REGULARIZERS["l2"], l2)).w, exact, atol=1e-6
    )


@pytest.mark.parametrize("l2", [1e-3, 0.1])
def test_logistic_regression_is_scikit_learn_s(l2: float) -> None:
    X, _, y = problem(5)
    theirs = LogisticRegression(C=1 / (len(y) * l2), fit_intercept=False, tol=1e-10, max_iter=10_000).fit(
        X, y
    )
    ours = fit_pooled(X, y, LOSSES["logistic"], Penalty(REGULARIZERS["l2"], l2))
    np.testing.assert_allclose(ours.w, theirs.coef_[0], atol=1e-4)


def test_pooling_puts_blocks_side_by_side_and_stays_sparse_if_one_of_them_is() -> None:
    a, b = np.array([[1.0], [2.0]]), np.array([[0.0, 3.0], [4.0, 0.0]])
    together = np.hstack([a, b])
    np.testing.assert_array_equal(pool([a, b]), together)
    mixed = pool([a, csr_array(b)])
    assert isinstance(mixed, csr_array)
    np.testing.assert_array_equal(mixed.toarray(), together)


def test_test_metrics_are_those_of_the_fitted_weights() -> None:
    X, _, y = problem(6, n=200)
    fit = fit_pooled(X[:150], y[:150], LOSSES["logistic"], Penalty(REGULARIZERS["l2"], 0.01))
    metrics = fit.metrics(LOSSES["logistic"], X[150:], y[150:])
    assert metrics["test_accuracy"] == np.mean(np.sign(X[150:] @ fit.w) == y[150:])
    assert metrics["objective"] == fit.loss


@pytest.mark.usefixtures("real_data")
def test_a9a_has_its_known_optimum() -> None:
    data = Data(train="a9a", parties=1)
    assigned = assign(data, label_holders=("party-0",), task=None, intercept=False, seed=0)
    (held,) = assigned.parties.values()
    _, table, _ = held.prepare()
    assert table.y is not None
    fit = fit_pooled(table.X, table.y, LOSSES["logistic"], Penalty(REGULARIZERS["l2"], 1e-4))
    assert fit.loss == pytest.approx(0.3245069247, abs=1e-9)
