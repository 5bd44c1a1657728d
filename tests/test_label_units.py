"""In which unit a number is given does not matter: euros, cents and millions are predicted equally well."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.metrics import r2_score

from colonnade import VerticalRegressor
from colonnade.arrays import Floats

ALGORITHMS = ["lbfgs", "vfb2-saga", "split", "czofo", "czofo-coord", "secureboost", "boosted-sum"]


def rows() -> tuple[Floats, Floats]:
    """Columns, and a number that is far from zero beside its deviation."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(640, 6))
    return X, 10 + X @ rng.normal(size=6) + 0.1 * rng.normal(size=640)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e5])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_number_is_predicted_equally_well_in_any_unit(algorithm: str, unit: float) -> None:
    X, y = rows()
    least = 0.7 if algorithm in ("secureboost", "boosted-sum") else 0.95
    model = VerticalRegressor(algorithm=algorithm, epochs=40, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that more epochs would help is not the question
        model.fit(X[:480], unit * y[:480])
    assert r2_score(unit * y[480:], model.predict(X[480:])) > least


@pytest.mark.parametrize(
    "algorithm", ["lbfgs", "vfb2-sgd", "vfb2-svrg", "vfb2-saga", "asysqn-saga", "afsgd-vp"]
)
def test_a_number_far_from_zero_is_learnt_beside_rare_categories(algorithm: str) -> None:
    """First-order steps would take most of a run to get to the mean, and be led astray by rare values."""
    X, y = rows()
    towns = [f"town {k}" for k in np.random.default_rng(0).zipf(1.3, len(X)) % 200]
    X = np.column_stack([X.astype(object), towns])
    model = VerticalRegressor(algorithm=algorithm, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X[:480], 1000 + y[:480])
    assert r2_score(1000 + y[480:], model.predict(X[480:])) > 0.95
