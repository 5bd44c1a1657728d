"""Exposure of counts: the model is scikit-learn's Poisson regression of rates, weighted by exposure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import PoissonRegressor

from colonnade import VerticalClassifier, VerticalRegressor
from colonnade.arrays import Floats
from colonnade.errors import ColonnadeError, DataError, JobError
from colonnade.job import job_from
from colonnade.run.federate import Finished, federate

ROWS, L2 = 400, 0.01


def counts() -> tuple[Floats, Floats, Floats]:
    rng = np.random.default_rng(0)
    X, years = rng.standard_normal((ROWS, 4)).round(4), rng.uniform(0.1, 3.0, ROWS).round(3)
    rate = np.exp(X @ np.array([0.5, -0.4, 0.3, 0.0]) - 0.5)
    return X, years, rng.poisson(rate * years).astype(float)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    X, years, claims = counts()
    lines = ["a,b,c,d,years,claims"]
    lines += [",".join(map(str, [*row, t, y])) for row, t, y in zip(X, years, claims, strict=True)]
    path = tmp_path / "all.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def run(path: Path, *, world: str = "simulated", **data: Any) -> Finished:
    train = {"loss": "poisson", "l2": L2, "epochs": 300, "tolerance": 1e-10}
    more = {"train": str(path), "test": str(path), "label": "claims", "parties": 2, "scale": "none"}
    job = {"algorithm": "lbfgs", "world": world, "data": {**more, **data}, "train": train, "compare": False}
    return federate(job_from(job))


def pooled() -> PoissonRegressor:
    X, years, claims = counts()
    model = PoissonRegressor(alpha=L2, tol=1e-10, max_iter=1000)
    return model.fit(X, claims / years, sample_weight=years)


def test_a_job_with_an_exposure_is_scikit_learn_s_model_of_rates(table: Path) -> None:
    done = run(table, exposure="years")
    X, years, claims = counts()
    assert done.test is not None
    np.testing.assert_allclose(np.exp(done.test.z), pooled().predict(X), rtol=1e-4)
    np.testing.assert_allclose(done.test.y, claims / years)
    assert done.result.metrics["d2"] == pytest.approx(pooled().score(X, claims / years, years), abs=1e-5)
    assert "years" not in [c for share in done.shares.values() for c in (share.preparation or {})["columns"]]


def test_rates_with_weights_are_counts_with_an_offset() -> None:
    """The model by definition: counts whose expectation is exposure times exp(score)."""
    X, years, claims = counts()
    ones = np.column_stack([X, np.ones(ROWS)])

    def objective(w: Floats) -> float:
        offset = ones @ w + np.log(years)
        return float((np.exp(offset) - claims * offset).sum() / years.sum() + L2 / 2 * (w[:-1] @ w[:-1]))

    best = minimize(objective, np.zeros(5), method="BFGS", options={"gtol": 1e-8}).x
    np.testing.assert_allclose(pooled().coef_, best[:-1], atol=1e-4)


def test_estimators_take_an_exposure() -> None:
    X, years, claims = counts()
    model = VerticalRegressor(parties=2, loss="poisson", l2=L2, scale="none", tolerance=1e-10, epochs=300)
    found = model.fit(X, claims, exposure=years).predict(X)
    np.testing.assert_allclose(found, pooled().predict(X), rtol=1e-4)
    with pytest.raises(JobError, match="loss = 'poisson'"):
        VerticalRegressor(parties=2).fit(X, claims, exposure=years)
    with pytest.raises(JobError, match="loss = 'poisson'"):
        VerticalClassifier(parties=2).fit(X, claims > 0, exposure=years)
    with pytest.raises(DataError, match="numbers > 0"):
        model.fit(X, claims, exposure=years - years[0])


def test_what_cannot_be_an_exposure_is_named(table: Path) -> None:
    def refused(words: str, **data: Any) -> None:
        with pytest.raises(ColonnadeError, match=words):
            run(table, **data)

    refused("no column 'time'", exposure="time")
    text = table.read_text().splitlines()
    first = text[1].split(",")
    table.write_text("\n".join([text[0], ",".join([*first[:4], "0", first[5]]), *text[2:]]))
    refused("is 0; give numbers > 0", exposure="years")
    squared = {"train": str(table), "label": "claims", "exposure": "years", "parties": 2}
    with pytest.raises(JobError, match=r"set train\.loss"):
        federate(job_from({"algorithm": "lbfgs", "data": squared}))
