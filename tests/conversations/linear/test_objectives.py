"""Intercepts, weights, L1, Poisson and gamma: a federation equals the pooled fit, and both scikit-learn's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import ElasticNet, GammaRegressor, LogisticRegression, PoissonRegressor, Ridge

from colonnade.arrays import Floats
from colonnade.baselines.pooled import PooledFit, fit_pooled
from colonnade.data.prepare.weights import class_weights, normalised
from colonnade.data.table import INTERCEPT, Table
from colonnade.errors import DataError, JobError
from colonnade.job import job_from
from colonnade.losses import LOSSES, with_weights
from colonnade.regularizers import REGULARIZERS, Penalty
from colonnade.run.federate import Finished, Tables, run_tables

N, D, L2 = 300, 6, 1e-2


def columns(seed: int = 0) -> Floats:
    return np.random.default_rng(seed).standard_normal((N, D))


def signs(X: Floats, seed: int = 1) -> Floats:
    noise = np.random.default_rng(seed).standard_normal(N)
    return np.where(X[:, 0] - 0.5 * X[:, 3] + noise > 1.2, 1.0, -1.0)  # few are positive


def counts(X: Floats) -> Floats:
    return np.random.default_rng(2).poisson(np.exp(2.5 + 0.5 * X[:, 0] - 0.3 * X[:, 4])).astype(np.float64)


def amounts(X: Floats) -> Floats:
    return np.random.default_rng(3).gamma(2.0, np.exp(4 + 0.4 * X[:, 1])) + 1e-3


def federated(
    X: Floats, y: Floats, weight: Floats | None = None, algorithm: str = "vfb2-svrg", **train: Any
) -> Finished:
    """Two parties with half the columns each; the first holds label, weights and intercept."""
    ones = np.ones((len(y), 1))
    names = tuple(f"x{j}" for j in range(X.shape[1]))
    half = X.shape[1] // 2
    tables = {
        "a": Table("a", (*names[:half], INTERCEPT), np.hstack([X[:, :half], ones]), y, weight=weight),
        "b": Table("b", names[half:], X[:, half:]),
    }
    plain = {"l2": L2, "epochs": 60, "batch": 30, "evaluate_every": 0, **train}
    data = {"train": "t", "parties": 2}
    job = job_from({"algorithm": algorithm, "world": "simulated", "data": data, "train": plain})
    return run_tables(job, Tables("t", tables, None, ("a",)))


def pooled(
    X: Floats, y: Floats, loss: str, weight: Floats | None = None, l1: float = 0.0, classes: int | None = None
) -> PooledFit:
    penalty = Penalty(REGULARIZERS["l2"], L2, l1, free=(X.shape[1],))
    full = np.hstack([X, np.ones((len(y), 1))])
    return fit_pooled(full, with_weights(y, weight), LOSSES[loss], penalty, classes=classes)


def weights(done: Finished) -> tuple[Floats, Floats]:
    """All columns' weights in order, and the intercept."""
    a, b = (np.asarray(done.shares[party].weights["w"]) for party in ("a", "b"))
    return np.concatenate([a[:-1], b]), a[-1]


def agree(done: Finished, fit: PooledFit, coef: Floats, intercept: Any, atol: float = 2e-4) -> None:
    """The federation's weights, the pooled fit's and scikit-learn's are the same."""
    w, b = weights(done)
    np.testing.assert_allclose(fit.w[:-1], coef, atol=atol)
    np.testing.assert_allclose(fit.w[-1], intercept, atol=atol)
    np.testing.assert_allclose(w, fit.w[:-1], atol=5e-3)
    np.testing.assert_allclose(b, fit.w[-1], atol=5e-3)
    assert done.result.metrics["suboptimality"] == pytest.approx(0.0, abs=1e-5)


@pytest.mark.parametrize("algorithm", ["vfb2-saga", "vfb2-svrg", "vfb-svrg", "asysqn-svrg", "afsaga-vp"])
def test_the_intercept_is_not_penalised(algorithm: str) -> None:
    X = columns()
    y = signs(X)
    theirs = LogisticRegression(C=1 / (N * L2), tol=1e-10, max_iter=5000).fit(X, y)
    done = federated(X, y, algorithm=algorithm, loss="logistic")
    agree(done, pooled(X, y, "logistic"), theirs.coef_[0], theirs.intercept_[0])


def test_the_intercept_of_a_joint_direction_is_not_penalised() -> None:
    X = columns()
    y = signs(X)
    done = federated(X, y, loss="logistic", direction="lbfgs")
    assert done.result.metrics["suboptimality"] == pytest.approx(0.0, abs=1e-5)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_regression_far_from_zero_is_ridge(weighted: bool) -> None:
    X = columns()
    y = 50 + X[:, 0] + np.random.default_rng(5).standard_normal(N)
    weight = normalised(np.random.default_rng(6).integers(0, 4, N).astype(float), "t") if weighted else None
    theirs = Ridge(alpha=N * L2, solver="cholesky").fit(X, y, sample_weight=weight)
    done = federated(X, y, weight, loss="squared")
    agree(done, pooled(X, y, "squared", weight), theirs.coef_, theirs.intercept_)


def test_softmax_with_weights() -> None:
    X, rng = columns(), np.random.default_rng(7)
    y = np.argmax(X[:, :3] + np.array([1.0, 0.0, -1.0]) + rng.standard_normal((N, 3)), axis=1).astype(float)
    weight = normalised(rng.uniform(0, 3, N), "t")
    theirs = LogisticRegression(C=1 / (N * L2), tol=1e-10, max_iter=5000).fit(X, y, sample_weight=weight)
    done = federated(X, y, weight, algorithm="vfb2-saga", loss="softmax", classes=3)
    fit = pooled(X, y, "softmax", weight, classes=3)
    shift = fit.w[-1].mean()  # nothing penalises a shift of all intercepts, and scikit-learn's sum to zero
    np.testing.assert_allclose(fit.w[:-1], theirs.coef_.T, atol=2e-4)
    np.testing.assert_allclose(fit.w[-1] - shift, theirs.intercept_, atol=2e-4)
    np.testing.assert_allclose(weights(done)[0], theirs.coef_.T, atol=1e-2)


@pytest.mark.parametrize("direction", ["plain", "lbfgs"])
def test_balanced_classes_are_those_of_scikit_learn(direction: str) -> None:
    X = columns()
    y = signs(X)
    weight = class_weights((y > 0).astype(np.int64), ("-1", "1"), "balanced")
    assert weight.mean() == pytest.approx(1.0)
    theirs = LogisticRegression(C=1 / (N * L2), tol=1e-10, max_iter=5000, class_weight="balanced").fit(X, y)
    done = federated(X, y, weight, loss="logistic", direction=direction)
    agree(done, pooled(X, y, "logistic", weight), theirs.coef_[0], theirs.intercept_[0])


def test_a_row_of_weight_zero_counts_for_nothing() -> None:
    X = columns()
    y = signs(X)
    keep = np.arange(N) < N // 2
    fit = pooled(X, y, "logistic", normalised(keep.astype(float), "t"))
    penalty = Penalty(REGULARIZERS["l2"], L2, free=(D,))
    half = np.hstack([X, np.ones((N, 1))])[keep]
    np.testing.assert_allclose(fit.w, fit_pooled(half, y[keep], LOSSES["logistic"], penalty).w, atol=1e-5)


@pytest.mark.parametrize("algorithm", ["vfb2-saga", "vfb2-svrg", "vfb-svrg", "afsvrg-vp", "fd-svrg"])
def test_l1_gives_scikit_learn_s_weights_and_its_exact_zeros(algorithm: str) -> None:
    X, l1 = columns(), 0.05
    y = signs(X)
    theirs = LogisticRegression(
        C=1 / (N * (l1 + L2)), l1_ratio=l1 / (l1 + L2), solver="saga", tol=1e-10, max_iter=20_000
    ).fit(X, y)
    done = federated(X, y, algorithm=algorithm, loss="logistic", l1=l1)
    # saga penalises no intercept, either
    agree(done, pooled(X, y, "logistic", l1=l1), theirs.coef_[0], theirs.intercept_[0])
    w, _ = weights(done)
    assert ((w == 0) == (np.abs(theirs.coef_[0]) < 1e-9)).all()
    assert 1 <= (w == 0).sum() < D


def test_an_elastic_net_is_scikit_learn_s() -> None:
    X, l1 = columns(), 0.1
    y = 5 + X[:, 0] + 0.3 * np.random.default_rng(5).standard_normal(N)
    theirs = ElasticNet(alpha=l1 + L2, l1_ratio=l1 / (l1 + L2), tol=1e-10, max_iter=10_000).fit(X, y)
    agree(
        federated(X, y, loss="squared", l1=l1),
        pooled(X, y, "squared", l1=l1),
        theirs.coef_,
        theirs.intercept_,
    )


@pytest.mark.parametrize("algorithm", ["vfb2-saga", "vfb2-svrg", "vfb-svrg"])
@pytest.mark.parametrize("loss", ["poisson", "gamma"])
@pytest.mark.parametrize("weighted", [False, True])
def test_poisson_and_gamma_are_scikit_learn_s(loss: str, algorithm: str, weighted: bool) -> None:
    X = columns()
    y = counts(X) if loss == "poisson" else amounts(X)
    weight = normalised(np.random.default_rng(8).uniform(0.2, 2, N), "t") if weighted else None
    kind = PoissonRegressor if loss == "poisson" else GammaRegressor
    theirs = kind(alpha=L2, tol=1e-10, max_iter=10_000).fit(X, y, sample_weight=weight)
    done = federated(X, y, weight, algorithm=algorithm, loss=loss)
    fit = pooled(X, y, loss, weight)
    np.testing.assert_allclose(fit.w[:-1], theirs.coef_, atol=1e-4)
    np.testing.assert_allclose(fit.w[-1], theirs.intercept_, atol=1e-4)
    assert done.result.metrics["suboptimality"] == pytest.approx(0.0, abs=1e-4 * fit.loss)


def test_a_loss_refuses_labels_that_it_is_not_for() -> None:
    X = columns()
    with pytest.raises(DataError, match="row 1 is -1, and loss = 'poisson' is for labels >= 0"):
        federated(X, np.full(N, -1.0), loss="poisson")
    with pytest.raises(DataError, match="labels > 0"):
        federated(X, np.zeros(N), loss="gamma")


@pytest.mark.parametrize(
    ("algorithm", "train", "words"),
    [
        ("vfb2-svrg", {"l1": 0.1, "direction": "lbfgs"}, "train.direction = 'plain'"),
        ("asysqn-svrg", {"l1": 0.1}, "train.direction = 'plain'"),
        ("fdskl", {"l1": 0.1}, "sparse weights are for linear models"),
        ("tig", {"loss": "poisson"}, "nothing bounds how curved"),
        ("vfb2-svrg", {"l1": -1.0}, "not a number >= 0"),
        ("vfb2-svrg", {"class_weight": {"1": -2.0}}, "not a number >= 0"),
    ],
)
def test_what_does_not_go_together_is_refused(algorithm: str, train: dict[str, Any], words: str) -> None:
    X = columns()
    with pytest.raises(JobError, match=words):
        federated(X, signs(X), algorithm=algorithm, **train)


def test_weights_and_noise_on_labels_do_not_go_together() -> None:
    X = columns()
    tables = {
        "a": Table("a", ("x",), X[:, :1], signs(X), weight=np.ones(N)),
        "b": Table("b", ("z",), X[:, 1:2]),
    }
    privacy = {"mechanism": "labels", "epsilon": 1.0}
    job = job_from({"algorithm": "vfb2-sgd", "data": {"train": "t", "parties": 2}, "privacy": privacy})
    with pytest.raises(JobError, match="epsilon does not cover"):
        run_tables(job, Tables("t", tables, None, ("a",)))
