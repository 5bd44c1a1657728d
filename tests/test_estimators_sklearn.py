"""scikit-learn's habits: its own checks of an estimator, and what people do with estimators."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import skops.io
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from colonnade import VerticalClassifier, VerticalRegressor, split_columns
from colonnade.result import Moment

WEIGHTED_SCALES = "rows are scaled by all parties and weighted by label holders, who tell nobody the weights"
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": WEIGHTED_SCALES,
    "check_sample_weight_equivalence_on_sparse_data": WEIGHTED_SCALES,
}
Data = tuple[NDArray[np.float64], NDArray[Any]]


@pytest.fixture(scope="module")
def data() -> Data:
    X, y = load_breast_cancer(return_X_y=True)
    return X, np.array(["benign", "malignant"])[1 - y]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [VerticalClassifier(), VerticalRegressor()], expected_failed_checks=lambda estimator: EXPECTED
)
def test_the_checks_of_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


def test_cross_validation_and_search_on_arrays_and_on_parties(data: Data) -> None:
    X, y = data
    parties = split_columns(X, y, parties=3, active=1)
    one = VerticalClassifier(columns={p: list(js) for p, js in parties.columns.items()})
    expected = cross_val_score(one, X, y, cv=3)
    np.testing.assert_array_equal(cross_val_score(one, parties, y, cv=3), expected)
    assert cross_val_score(VerticalClassifier(), parties, cv=3).min() > 0.9
    found = GridSearchCV(one, {"l2": [1e-3, 10.0], "scale": ["auto"]}, cv=2).fit(parties, y)
    assert found.best_params_["l2"] == 1e-3
    assert found.score(parties, y) > 0.95


def test_a_pipeline_and_a_clone(data: Data) -> None:
    X, y = data
    pipeline = make_pipeline(StandardScaler(), VerticalClassifier(l2=np.float64(1e-3), random_state=5))
    assert clone(pipeline).fit(X, y).score(X, y) > 0.95
    twin = clone(VerticalClassifier("vfb-sgd", step=1, columns={"a": [0], "b": [1]}))
    assert twin.get_params()["columns"] == {"a": [0], "b": [1]}


@pytest.mark.parametrize("algorithm", ["lbfgs", "fdskl", "asyrevel-gau"])
@pytest.mark.parametrize("store", ["pickle", "skops"])
def test_a_trained_model_survives_storing(algorithm: str, store: str) -> None:
    X, y = load_iris(return_X_y=True)
    model = VerticalClassifier(algorithm, epochs=3, tolerance=0, parties=2).fit(X, y)
    if store == "pickle":
        again = pickle.loads(pickle.dumps(model))  # noqa: S301
    else:
        stored = skops.io.dumps(model)
        assert skops.io.get_untrusted_types(data=stored) == [
            "colonnade.estimators.classifier.VerticalClassifier"
        ]
        again = skops.io.loads(stored, trusted=skops.io.get_untrusted_types(data=stored))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert again.result_ == model.result_
    assert again.columns_ == model.columns_


def test_weights_are_those_of_rows_and_of_classes(data: Data) -> None:
    X, y = data
    weight = np.where(y == "malignant", 3.0, 1.0)
    rows = VerticalClassifier(l2=1e-2).fit(X, y, sample_weight=weight)
    classes = VerticalClassifier(l2=1e-2, class_weight={"malignant": 3.0}).fit(X, y)
    np.testing.assert_allclose(rows.decision_function(X), classes.decision_function(X), atol=1e-6)
    plain = VerticalClassifier(l2=1e-2).fit(X, y)
    assert (rows.predict(X) == "malignant").sum() > (plain.predict(X) == "malignant").sum()
    left_out = np.where(np.arange(len(y)) % 2, 1.0, 0.0)
    half = VerticalClassifier().fit(X, y, sample_weight=left_out).decision_function(X)
    np.testing.assert_array_equal(half, VerticalClassifier().fit(X[1::2], y[1::2]).decision_function(X))
    assert VerticalClassifier(class_weight="balanced").fit(X, y).score(X, y, sample_weight=weight) > 0.95


@pytest.mark.parametrize("algorithm", ["lbfgs", "vfb2-saga"])
def test_a_callback_hears_of_every_evaluation_and_may_end_the_run(algorithm: str, data: Data) -> None:
    heard: list[Moment] = []

    def enough(moment: Moment) -> bool:
        heard.append(moment)
        return moment.epoch >= 2

    model = VerticalClassifier(algorithm, epochs=20, callbacks=[enough], parties=2).fit(*data)
    assert [moment.epoch for moment in heard[:2]] == [1, 2]
    assert model.n_iter_ < 5
    assert [moment.epoch for moment in model.result_.history] == [moment.epoch for moment in heard]


def test_a_run_of_fading_steps_is_not_ended(data: Data) -> None:
    model = VerticalClassifier("vfb2-sgd", epochs=3, callbacks=[lambda moment: True], parties=2, batch=64)
    assert model.fit(*data).n_iter_ == 3


def test_who_did_not_converge_is_told(data: Data) -> None:
    with pytest.warns(ConvergenceWarning, match=r"did not converge in 2 epochs.*epochs = 4"):
        VerticalClassifier(epochs=2).fit(*data)


def test_random_state_is_a_number_or_a_source_of_them(data: Data) -> None:
    def columns(random_state: Any) -> Any:
        return VerticalClassifier(random_state=random_state, l2=1.0).fit(*data).columns_

    assert columns(3) == columns(3) != columns(4)
    source = np.random.RandomState(0)
    assert columns(source) != columns(source)
    assert columns(np.random.RandomState(0)) == columns(np.random.RandomState(0))


def test_a_notebook_shows_diagram_and_summary(data: Data) -> None:
    model = VerticalClassifier(columns={"<bank>": list(range(15)), "shop": list(range(15, 30))})
    assert "<table style" not in model._repr_html_()
    page = model.fit(*data)._repr_mimebundle_()["text/html"]
    for word in (
        "sk-estimator",
        "&lt;bank&gt;, shop (label: &lt;bank&gt;)",
        "bytes sent",
        "converged",
        "theta",
    ):
        assert word in page


@pytest.mark.parametrize("verbose", [0, 1, 2])
def test_progress_is_shown_if_asked_for(verbose: int, data: Data, capfd: pytest.CaptureFixture[str]) -> None:
    model = VerticalClassifier(verbose=verbose).fit(*data)
    shown = capfd.readouterr().err.splitlines()
    assert len(shown) == (model.n_iter_ if verbose else 0)
