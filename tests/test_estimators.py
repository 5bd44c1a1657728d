"""The scikit-learn-style front: as good as pooled training, and polite to whatever labels it is given."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
from sklearn.metrics import r2_score
from sklearn.preprocessing import StandardScaler

from colonnade import Function, VerticalClassifier, VerticalRegressor, split_columns
from colonnade.errors import ColonnadeError, DataError, JobError
from colonnade.job.presets import PRESETS

LINEAR = sorted(
    name
    for name, preset in PRESETS.items()
    if preset.conversation in ("backward", "pull") and not preset.literal
)
Data = tuple[NDArray[np.float64], NDArray[np.int64]]


@pytest.fixture(scope="module")
def data() -> Data:
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def quick(**parameters: Any) -> VerticalClassifier:
    return VerticalClassifier(
        **{"algorithm": "vfb2-sgd", "epochs": 8, "tolerance": 0, "batch": 64, **parameters}
    )


def test_as_good_as_pooled(data: Data) -> None:
    X, y = data
    train, test = slice(0, 400), slice(400, None)
    clf = VerticalClassifier(l2=1e-2, scale="none", tolerance=1e-9, job={"compare": True}).fit(
        X[train], y[train]
    )
    pooled = LogisticRegression(C=1 / (400 * 1e-2), tol=1e-8, max_iter=1000).fit(X[train], y[train])
    np.testing.assert_allclose(clf.decision_function(X[test]), pooled.decision_function(X[test]), atol=1e-2)
    assert abs(clf.intercept_ - pooled.intercept_[0]) < 1e-2
    assert clf.result_.metrics["suboptimality"] < 1e-6


@pytest.mark.parametrize("intercept", [False, True])
def test_predict_is_the_prepared_columns_times_the_weights(data: Data, intercept: bool) -> None:
    X, y = data
    parties = split_columns(X, y, parties=4, active=2)
    clf = quick(intercept=intercept, scale="none").fit(parties)
    w = np.zeros(X.shape[1])
    for name, columns in parties.columns.items():
        assert clf.feature_names_[name] == clf.columns_[name]
        w[list(columns)] = clf.coef_[name]
    z = X @ w + clf.intercept_
    np.testing.assert_allclose(clf.decision_function(parties), z, atol=1e-12)
    np.testing.assert_allclose(clf.decision_function(X), z, atol=1e-12)
    np.testing.assert_array_equal(clf.predict(X), (z > 0).astype(int))
    np.testing.assert_allclose(clf.predict_proba(X)[:, 1], 1 / (1 + np.exp(-z)))
    np.testing.assert_allclose(np.exp(clf.predict_log_proba(X)).sum(axis=1), 1)
    assert (clf.intercept_ != 0) is intercept


@pytest.mark.parametrize(
    "values", [(0, 1), (-1, 1), (1, 2), (0.0, 1.0), ("benign", "malignant"), (False, True), ("10", "9")]
)
def test_predictions_are_in_the_users_own_values(data: Data, values: tuple[Any, Any]) -> None:
    X, y = data
    labels = np.array(values)[y]
    parties = split_columns(X, labels, parties=3, active=1)
    clf = quick().fit(parties)
    assert clf.classes_.tolist() == sorted(values)
    assert clf.classes_.dtype == labels.dtype
    assert clf.score(parties) > 0.9
    assert clf.score(X, labels) == clf.score(parties)
    assert np.mean(clf.predict(parties) == labels) == clf.score(parties)


def test_labels_may_be_given_to_fit(data: Data) -> None:
    X, y = data
    held = quick(world="simulated").fit(split_columns(X, y, parties=3))
    given = quick(world="simulated").fit(split_columns(X, parties=3), y)
    for name, w in held.coef_.items():
        np.testing.assert_array_equal(w, given.coef_[name])


def test_sparse_columns(data: Data) -> None:
    X, y = data
    dense = quick(world="simulated", scale="maxabs").fit(X, y)
    sparse = quick(world="simulated", scale="maxabs").fit(csr_array(X), y)
    for name, w in dense.coef_.items():
        np.testing.assert_allclose(w, sparse.coef_[name], atol=1e-8)
    np.testing.assert_allclose(sparse.decision_function(csr_array(X)), sparse.decision_function(X), atol=1e-9)


def test_a_messy_frame_is_prepared_like_a_file() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.normal(50, 10, 300), "job": rng.choice(["boss", "clerk"], 300)})
    y = (frame.age > 50).to_numpy() ^ (frame.job == "boss").to_numpy()
    frame["since"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, 300), unit="D")
    frame["both"] = [f"{a}{b}" for a, b in zip(frame.age > 50, frame.job, strict=True)]
    frame.loc[::9, ["age", "job"]] = [np.nan, None]
    clf = VerticalClassifier(columns={"bank": ["age", "since"], "shop": ["job", "both"]}).fit(frame, y)
    assert clf.score(frame, y) == 1
    assert clf.feature_names_["bank"] == ("age", "age (missing)", "since")
    assert "job=(missing)" in clf.feature_names_["shop"]
    assert clf.feature_names_in_.tolist() == list(frame.columns)
    assert clf.result_.data.rows["train"] == 300
    assert clf.result_.data.classes == ["False", "True"]
    assert any("days since 1970" in said for said in clf.result_.data.done["bank"])
    np.testing.assert_array_equal(clf.predict(pl.from_pandas(frame)), clf.predict(frame))
    with pytest.raises(ValueError, match="feature names should match"):
        clf.predict(frame[["job", "age", "since", "both"]])


def test_a_kernel_machine_whose_penalty_is_large() -> None:
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(40, 90)), rng.integers(0, 4, 40)  # nothing to learn: the best penalty is large
    fitted = VerticalClassifier("fdskl", parties=4, epochs=10, tolerance=0).fit(X, y)
    assert fitted.result_.chosen["l2"] > 1
    assert np.isfinite(fitted.predict_proba(X)).all()


def test_rare_values_are_joined_as_said() -> None:
    X = pd.DataFrame({"town": ["Ulm"] * 60 + ["Rom"] * 60 + ["Bonn"] * 3, "age": np.arange(123.0)})
    y = np.arange(123) % 2
    for rare, last in (("auto", "town=Ulm"), (0, "town=Ulm"), (5, "town=(other)")):
        fitted = quick(parties=2, rare=rare).fit(X, y)
        towns = next(names for names in fitted.feature_names_.values() if "town=Ulm" in names)
        assert last in towns
        assert ("town=Bonn" in towns) == (rare != 5)


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
    clf = VerticalClassifier(
        "vfb2-saga", epochs=200, batch=16, l2=1e-2, loss=loss, scale="none", job={"compare": True}
    ).fit(parties)
    pooled = LogisticRegression(C=1 / (150 * 1e-2), tol=1e-10, max_iter=5000).fit(X, y)
    assert clf.result_.metrics["suboptimality"] < 1e-4
    assert clf.classes_.tolist() == NAMES.tolist()
    np.testing.assert_allclose(clf.predict_proba(parties), pooled.predict_proba(X), atol=1e-2)


@pytest.mark.parametrize("intercept", [False, True])
def test_several_scores_are_the_columns_times_the_weights(
    flowers: tuple[NDArray[np.float64], NDArray[Any]], intercept: bool
) -> None:
    X, y = flowers
    parties = split_columns(X, y, parties=2)
    clf = quick(algorithm="vfb2-svrg", intercept=intercept, epochs=10, scale="none").fit(parties)
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
    clf = VerticalClassifier(algorithm, epochs=20, tolerance=0, batch=16, world="simulated").fit(parties)
    assert clf.result_.algorithm == algorithm
    assert clf.score(parties) > 0.85


def test_regression() -> None:
    X, y = load_diabetes(return_X_y=True)
    model = VerticalRegressor(l2=1e-2, scale="zscore", tolerance=1e-9).fit(X, y)
    scaled = StandardScaler().fit_transform(X)
    pooled = Ridge(alpha=1e-2 * len(y)).fit(scaled, y)
    np.testing.assert_allclose(model.predict(X), pooled.predict(scaled), rtol=1e-3)
    assert model.score(X, y) == r2_score(y, model.predict(X))


def test_counts_have_a_log_link() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3))
    y = rng.poisson(np.exp(0.5 + X @ [0.5, -0.3, 0.0]))
    model = VerticalRegressor(loss="poisson", l2=1e-3, scale="none", tolerance=1e-9).fit(X, y)
    pooled = PoissonRegressor(alpha=1e-3, tol=1e-8, max_iter=1000).fit(X, y)
    np.testing.assert_allclose(model.predict(X), pooled.predict(X), rtol=1e-3)


# -- other models and worlds --------------------------------------------------------------------------


def tanh(w: NDArray[np.float64], X: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.tanh(X @ w))


def test_a_black_box_is_a_python_function(data: Data) -> None:
    box = VerticalClassifier("asyrevel-gau", parties=2, epochs=30, model=lambda d, outputs: Function(tanh, d))
    assert box.fit(*data).score(*data) > 0.9
    with pytest.raises(AttributeError, match="not a linear model"):
        _ = box.coef_


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("server", [None, "linear", "module"])
@pytest.mark.parametrize("kind", ["described", "factory", "each"])
def test_networks_are_described_or_given(kind: str, server: str | None, flowers: Any) -> None:
    torch = pytest.importorskip("torch")

    def network(columns: int, outputs: int) -> Any:
        return torch.nn.Sequential(torch.nn.Linear(columns, 8), torch.nn.ReLU(), torch.nn.Linear(8, outputs))

    model: Any = {"kind": "mlp", "hidden": [8]} if kind == "described" else network
    if kind == "each":
        model = {"a": network(2, 3), "b": {"kind": "mlp", "hidden": [4], "outputs": 3}}
    clf = VerticalClassifier(
        "split",
        columns={"a": [0, 1], "b": [2, 3]},
        model=model,
        server=(lambda columns, outputs: torch.nn.Linear(columns, outputs)) if server == "module" else server,
        epochs=60,
        batch=16,
        job={"cascade": {"optimizer": "adam"}, "train": {"step": 0.02}},
    ).fit(*flowers)
    assert clf.score(*flowers) > 0.9


def test_the_network_world(data: Data) -> None:
    X, y = data
    apart = VerticalClassifier(parties=2, world="network").fit(X, y)
    assert apart.result_.world == "network"
    np.testing.assert_allclose(
        apart.decision_function(X), VerticalClassifier(parties=2).fit(X, y).decision_function(X), atol=1e-4
    )
    with pytest.raises(JobError, match="Python objects stay in this process"):
        VerticalClassifier("asyrevel-gau", parties=2, world="network", model=Function(tanh, 15)).fit(X, y)


def test_fit_works_where_a_loop_already_runs(data: Data) -> None:
    async def notebook() -> float:
        parties = split_columns(*data, parties=3)
        return quick().fit(parties).score(parties)

    assert asyncio.run(notebook()) > 0.9


def test_report(data: Data, tmp_path: Path) -> None:
    clf = quick().fit(split_columns(*data, parties=3))
    for name in ("run.html", "run.svg"):
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


def test_what_cannot_be_trained_is_refused_with_a_way_out(data: Data) -> None:
    X, y = data
    parties = split_columns(X, y, parties=3)
    cases: list[tuple[Any, Any, type[ColonnadeError], str]] = [
        (quick(loss="logistic"), split_columns(X, np.arange(len(X)) % 3), DataError, "softmax"),
        (quick(), split_columns(X, np.ones(len(X)), parties=2), DataError, "every label is 1"),
        (quick(), split_columns(X, parties=2), DataError, "requires y"),
        (quick(loss="squared"), parties, JobError, "squared"),
        (quick(loss="hinge"), parties, JobError, "loss"),
        (quick(batch=0), parties, JobError, "VerticalClassifier: train.batch"),
        (quick(epochs=1.5), parties, JobError, "epochs"),
        (quick(algorithm="vfb2"), parties, JobError, "vfb2"),
        (quick(world="moon"), parties, JobError, "moon"),
        (quick(job={"data": {}}), parties, JobError, "the data is X"),
        (quick(rare=-1), parties, JobError, "rare: -1"),
        (quick(job={"secure": {"summ": "plain"}}), parties, JobError, r"secure\.sum\?"),
        (quick(algorithm="fdskl", intercept=True), parties, JobError, "no intercept"),
        (VerticalClassifier("split", model=3), parties, JobError, "is not a model"),
        (VerticalRegressor(), split_columns(X, np.array(["a", "b"])[y], parties=2), DataError, "text"),
        (VerticalRegressor(class_weight="balanced"), parties, JobError, "sample_weight"),
    ]
    twice = pd.DataFrame(X[:, :2], columns=["a", "a"])
    with pytest.raises(DataError, match="two columns are named 'a'"):
        quick().fit(twice, y)
    for model, given, kind, says in cases:
        with pytest.raises(kind, match=says):
            model.fit(given)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        quick().fit(parties, y[:5])


def test_gaps_cannot_be_kept_where_the_model_does_not_take_them() -> None:
    X, y = np.array([[1.0, 2.0], [np.nan, 1.0], [3.0, 4.0], [0.0, 1.0]]), [0, 1, 0, 1]
    with pytest.raises(JobError, match="missing: 'keep' is none of auto, error, zero, mean"):
        VerticalClassifier(parties=2, missing="keep").fit(X, y)


@pytest.mark.parametrize("parties", ["3", {"bank": ["x0"]}])
def test_parties_are_a_number(parties: Any) -> None:
    X = np.arange(12.0).reshape(6, 2)
    with pytest.raises(DataError, match="give their number; columns says who holds which"):
        VerticalClassifier(parties=parties).fit(X, [0, 1, 0, 1, 0, 1])
