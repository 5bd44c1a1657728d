"""The scikit-learn-style front: as good as pooled training, and polite to whatever labels it is given."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import StandardScaler

from colonnade import VerticalClassifier, VerticalRegressor, split_columns
from colonnade.errors import ColonnadeError, DataError, JobError
from colonnade.job.presets import PRESETS

LINEAR = sorted(name for name, preset in PRESETS.items() if preset.conversation in ("backward", "pull"))
Data = tuple[NDArray[np.float64], NDArray[np.int64]]


@pytest.fixture(scope="module")
def data() -> Data:
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def quick(**parameters: Any) -> VerticalClassifier:
    return VerticalClassifier(**{"epochs": 2, "batch": 64, **parameters})


def test_as_good_as_pooled(data: Data) -> None:
    X, y = data
    train, test = slice(0, 400), slice(400, None)
    parties = split_columns(X[train], y[train], parties=4, active=2)
    clf = VerticalClassifier(epochs=60, batch=32, l2=1e-2, intercept=True).fit(parties)
    # the same objective: C = 1 / (n l2), and the intercept is free
    pooled = LogisticRegression(C=1 / (400 * 1e-2), tol=1e-8, max_iter=1000).fit(X[train], y[train])
    tests = split_columns(X[test], y[test], like=parties)
    assert abs(clf.score(tests) - pooled.score(X[test], y[test])) < 0.02
    assert clf.result_.metrics["suboptimality"] < 1e-3


@pytest.mark.parametrize("intercept", [False, True])
def test_predict_is_the_columns_times_the_weights(data: Data, intercept: bool) -> None:
    X, y = data
    parties = split_columns(X, y, parties=4, active=2)
    clf = quick(intercept=intercept).fit(parties)
    w = np.zeros(X.shape[1])
    for name, columns in parties.columns.items():
        w[list(columns)] = clf.coef_[name]
    z = X @ w + clf.intercept_
    np.testing.assert_allclose(clf.decision_function(parties), z, atol=1e-12)
    np.testing.assert_array_equal(clf.predict(parties), (z >= 0).astype(int))
    np.testing.assert_allclose(clf.predict_proba(parties)[:, 1], 1 / (1 + np.exp(-z)))
    np.testing.assert_allclose(clf.predict_proba(parties).sum(axis=1), 1)
    assert (clf.intercept_ != 0) is intercept


@pytest.mark.parametrize(
    "values", [(0, 1), (-1, 1), (1, 2), (0.5, 1.5), ("benign", "malignant"), (False, True), ("10", "9")]
)
def test_predictions_are_in_the_users_own_values(data: Data, values: tuple[Any, Any]) -> None:
    X, y = data
    labels = np.array(values)[y]
    parties = split_columns(X, labels, parties=3, active=1)
    clf = quick().fit(parties)
    assert set(clf.classes_.tolist()) == set(values)
    assert clf.score(parties) > 0.9
    assert clf.score(parties, labels) == clf.score(parties)
    assert np.mean(clf.predict(parties) == labels) == clf.score(parties)


def test_labels_may_be_given_to_fit(data: Data) -> None:
    X, y = data
    held = quick(world="simulated").fit(split_columns(X, y, parties=3))
    given = quick(world="simulated").fit(split_columns(X, parties=3), y)
    for name, w in held.coef_.items():
        np.testing.assert_array_equal(w, given.coef_[name])


def test_sparse_columns(data: Data) -> None:
    X, y = data
    dense = quick(world="simulated", intercept=True).fit(split_columns(X, y, parties=3))
    sparse = quick(world="simulated", intercept=True).fit(split_columns(csr_array(X), y, parties=3))
    for name, w in dense.coef_.items():
        np.testing.assert_allclose(w, sparse.coef_[name], atol=1e-8)


def test_parameters_follow_scikit_learn(data: Data) -> None:
    clf = VerticalClassifier("vfb-sgd", step=1, l2=1e-3, seed=5).set_params(epochs=np.int64(2))
    twin = clone(clf)
    assert twin.get_params() == clf.get_params()
    assert twin.set_params(batch=64).batch == 64
    assert twin.fit(split_columns(*data, parties=3)).result_.algorithm == "vfb-sgd"
    assert not hasattr(twin.set_params(loss="smooth_hinge"), "predict_proba")


# -- more than two classes ----------------------------------------------------------------------------

NAMES = np.array(["setosa", "versicolor", "virginica"])


@pytest.fixture(scope="module")
def flowers() -> tuple[NDArray[np.float64], NDArray[Any]]:
    X, y = load_iris(return_X_y=True)
    return StandardScaler().fit_transform(X), NAMES[y]


@pytest.mark.parametrize("loss", [None, "softmax"])
def test_several_classes_are_as_good_as_pooled(
    flowers: tuple[NDArray[np.float64], NDArray[Any]], loss: str | None
) -> None:
    X, y = flowers
    parties = split_columns(X, y, parties=3, active=2)
    clf = VerticalClassifier("vfb2-saga", epochs=60, batch=16, l2=1e-2, intercept=True, loss=loss).fit(
        parties
    )
    pooled = LogisticRegression(C=1 / (150 * 1e-2), tol=1e-10, max_iter=5000).fit(X, y)
    assert clf.result_.metrics["suboptimality"] < 1e-6
    assert clf.classes_.tolist() == NAMES.tolist()
    np.testing.assert_allclose(clf.predict_proba(parties), pooled.predict_proba(X), atol=1e-3)
    assert np.mean(clf.predict(parties) == pooled.predict(X)) == 1


@pytest.mark.parametrize("intercept", [False, True])
def test_several_scores_are_the_columns_times_the_weights(
    flowers: tuple[NDArray[np.float64], NDArray[Any]], intercept: bool
) -> None:
    X, y = flowers
    parties = split_columns(X, y, parties=2)
    clf = quick(algorithm="vfb2-svrg", intercept=intercept, epochs=10).fit(parties)
    w = np.zeros((4, 3))
    for name, columns in parties.columns.items():
        w[list(columns)] = clf.coef_[name]
    z = X @ w + clf.intercept_
    np.testing.assert_allclose(clf.decision_function(parties), z, atol=1e-12)
    assert clf.predict(parties).tolist() == NAMES[z.argmax(axis=1)].tolist()
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(clf.predict_proba(parties), p)
    assert clf.score(parties) == np.mean(clf.predict(parties) == y) > 0.8
    assert (np.size(clf.intercept_) == 3) is intercept


def test_softmax_of_two_classes_and_logistic_agree(data: Data) -> None:
    parties = split_columns(*data, parties=3)
    train: dict[str, Any] = {"algorithm": "vfb2-saga", "epochs": 60, "batch": 64, "l2": 0.02}
    two = VerticalClassifier(**train, loss="softmax").fit(parties)
    # a penalty on two opposite scores is half of that on their difference
    one = VerticalClassifier(**train | {"l2": 0.01}).fit(parties)
    np.testing.assert_allclose(two.predict_proba(parties), one.predict_proba(parties), atol=1e-3)


@pytest.mark.parametrize("several", [False, True], ids=["two", "three"])
@pytest.mark.parametrize("algorithm", LINEAR)
def test_every_linear_algorithm_can_be_fitted(
    algorithm: str, several: bool, flowers: tuple[NDArray[np.float64], NDArray[Any]]
) -> None:
    X, y = flowers
    rows = slice(None) if several else slice(50, None)
    parties = split_columns(X[rows], y[rows], parties=2, active=1)
    clf = VerticalClassifier(algorithm, epochs=20, batch=16, world="simulated", intercept=True).fit(parties)
    assert clf.result_.algorithm == algorithm
    assert clf.score(parties) > 0.85


def test_regression() -> None:
    X, y = load_diabetes(return_X_y=True)
    X, y = StandardScaler().fit_transform(X), y / y.std()
    parties = split_columns(X, y, parties=3, active=1)
    model = VerticalRegressor(epochs=60, batch=64, l2=1e-2).fit(parties)
    pooled = Ridge(alpha=1e-2 * len(y)).fit(X, y)
    assert abs(model.score(parties) - pooled.score(X, y)) < 0.01
    np.testing.assert_allclose(model.score(parties, y), model.score(parties))


def test_fit_works_where_a_loop_already_runs(data: Data) -> None:
    async def notebook() -> float:
        parties = split_columns(*data, parties=3)
        return quick().fit(parties).score(parties)

    assert asyncio.run(notebook()) > 0.9


def test_report(data: Data, tmp_path: Path) -> None:
    clf = quick().fit(split_columns(*data, parties=3))
    for name in ("run.html", "run.png", "run.svg"):
        assert clf.report(tmp_path / name).stat().st_size > 5000


def test_not_fitted(data: Data) -> None:
    parties = split_columns(*data, parties=3)
    for method in (VerticalClassifier().predict, VerticalRegressor().predict, VerticalClassifier().score):
        with pytest.raises(NotFittedError):
            method(parties)


def test_other_columns_are_refused(data: Data) -> None:
    X, y = data
    clf = quick().fit(split_columns(X, y, parties=3))
    with pytest.raises(DataError, match=r"fitted with the parties .*like="):
        clf.predict(split_columns(X, y, parties=4))
    with pytest.raises(DataError, match=r"party-. holds .*like="):
        clf.predict(split_columns(X, y, parties=3, seed=1))
    with pytest.raises(DataError, match="split_columns"):
        clf.predict(X)  # type: ignore[arg-type]


def test_what_cannot_be_trained_is_refused_with_a_way_out(data: Data) -> None:
    X, y = data
    parties = split_columns(X, y, parties=3)
    cases: list[tuple[Any, Any, type[ColonnadeError], str]] = [
        (quick(loss="logistic"), split_columns(X, np.arange(len(X)) % 3), DataError, r"softmax.*y == 0"),
        (quick(), split_columns(X, np.ones(len(X)), parties=2), DataError, "every label is 1"),
        (quick(), split_columns(X, parties=2), DataError, "no labels"),
        (quick(), X, DataError, "split_columns"),
        (quick(loss="squared"), parties, JobError, "squared"),
        (quick(loss="hinge"), parties, JobError, "loss"),
        (quick(batch=0), parties, JobError, "VerticalClassifier: train.batch"),
        (quick(epochs=1.5), parties, JobError, "epochs"),
        (quick(world="network"), parties, JobError, "colonnade run"),
        (quick(algorithm="vfb2"), parties, JobError, "vfb2"),
        (VerticalRegressor(), split_columns(X, np.array(["a", "b"])[y], parties=2), DataError, "text"),
    ]
    for model, given, kind, says in cases:
        with pytest.raises(kind, match=says):
            model.fit(given)
    with pytest.raises(DataError, match="569 rows"):
        quick().fit(parties, y[:5])
