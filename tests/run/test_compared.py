"""What a run is measured against: equal to scikit-learn on the label holder's own columns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score

from colonnade.job import job_from
from colonnade.run.federate import Finished, federate, prepare
from colonnade.run.resolve import compose


def job(algorithm: str = "lbfgs", dataset: str = "breast-cancer", **sections: object) -> dict[str, object]:
    data = {"train": dataset, "parties": 3, "active": 1}
    return {"algorithm": algorithm, "world": "local", "data": data, **sections}


def run(plain: dict[str, object], out: Path | None = None) -> Finished:
    return federate(job_from(plain), out=out)


def test_alone_is_scikit_learn_on_the_own_columns() -> None:
    plain = job(train={"l2": 1e-2})
    done = run(plain)
    base, alone, together, pooled = done.result.compared
    assert [each.name for each in done.result.compared] == ["base rate", "alone", "together", "pooled"]
    assert alone.parties == ["party-0"]
    assert together.parties == pooled.parties == ["party-0", "party-1", "party-2"]
    _, order = prepare(compose(job_from(plain)))
    _, train, test = order.data["party-0"].prepare()
    assert train.y is not None
    assert test is not None
    assert test.y is not None
    columns = [k for k, name in enumerate(train.columns) if name != "(intercept)"]
    fit = LogisticRegression(C=1 / (1e-2 * train.rows), tol=1e-9, max_iter=5000)
    fit.fit(train.X[:, columns], train.y)
    z = fit.decision_function(test.X[:, columns])
    assert alone.metrics["test_auc"] == pytest.approx(roc_auc_score(test.y, z), abs=1e-6)
    assert alone.metrics["test_loss"] == pytest.approx(
        log_loss(test.y, fit.predict_proba(test.X[:, columns])), abs=1e-5
    )
    chance = np.full(len(test.y), np.mean(train.y > 0))
    assert base.metrics["test_loss"] == pytest.approx(log_loss(test.y, chance), abs=1e-6)
    assert together.metrics["test_auc"] == done.result.metrics["test_auc"]
    low, high = together.intervals["test_auc"]
    assert low < together.metrics["test_auc"] < high
    gain, low, high = together.gains["test_auc"]
    assert gain == pytest.approx(together.metrics["test_auc"] - alone.metrics["test_auc"])
    assert low < gain < high


@pytest.mark.parametrize(
    ("algorithm", "dataset", "model"),
    [
        ("secureboost", "breast-cancer", ""),
        ("fdskl", "breast-cancer", "linear model"),
        ("lbfgs", "digits", ""),
        ("split", "diabetes", "linear model"),
    ],
)
def test_every_kind_of_model_has_its_yardsticks(algorithm: str, dataset: str, model: str) -> None:
    found = run(job(algorithm, dataset, train={"epochs": 2}, compare=False)).result.compared
    assert [each.name for each in found] == ["base rate", "alone", "together"]
    assert found[1].model == model
    metric = {"diabetes": "r2"}.get(dataset, "test_accuracy")
    assert found[1].metrics["test_loss"] < found[0].metrics["test_loss"]
    assert metric in found[2].gains


def test_processes_say_the_same(tmp_path: Path) -> None:
    worlds = [run(job(world=world), tmp_path / world).result.compared for world in ("simulated", "network")]
    for one, other in zip(*worlds, strict=True):
        assert one.metrics == pytest.approx(other.metrics, abs=1e-4)
