"""Weights of rows: taken from a column, multiplied by classes, known to label holders alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from colonnade.data.split.assign import assign
from colonnade.data.split.store import load, save
from colonnade.errors import ColonnadeError, DataError, JobError
from colonnade.job import Data, job_from
from colonnade.job.sections import ClassWeight
from colonnade.run.federate import federate

ROWS = 200


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    X, weight = rng.standard_normal((ROWS, 4)).round(4), rng.integers(0, 4, ROWS)
    label = np.where(X[:, 0] + rng.standard_normal(ROWS) > 0.8, "yes", "no")
    lines = [",".join(["a", "b", "c", "d", "w", "y"])]
    lines += [",".join(map(str, [*row, w, y])) for row, w, y in zip(X, weight, label, strict=True)]
    path = tmp_path / "all.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def assigned(path: Path, class_weight: ClassWeight = None, **choices: Any) -> Any:
    data = Data(train=str(path), label="y", parties=2, **choices)
    return assign(
        data, label_holders=("party-0",), task="binary", intercept=True, seed=0, class_weight=class_weight
    )


def test_the_column_is_no_feature_and_only_the_label_holder_has_it(table: Path, tmp_path: Path) -> None:
    done = assigned(table, weight="w")
    first, second = (done.parties[party] for party in ("party-0", "party-1"))
    assert {*first.train.columns, *second.train.columns} == {"a", "b", "c", "d"}
    assert second.train.weight is second.test.weight is None
    assert first.train.weight.mean() == pytest.approx(1.0)
    assert first.prepare().train.weight is first.train.weight
    assert set(np.unique(first.test.weight)) <= {0.0, 1.0, 2.0, 3.0}
    save(tmp_path / "stored", first)
    np.testing.assert_array_equal(load(tmp_path / "stored").train.weight, first.train.weight)


def test_balanced_classes_weigh_the_same_and_times_the_column(table: Path) -> None:
    held = assigned(table, "balanced", weight="w").parties["party-0"]
    sums = [held.train.weight[held.train.y == side].sum() for side in (-1, 1)]
    assert sums[0] == pytest.approx(sums[1])
    alone = assigned(table, "balanced", drop=["w"]).parties["party-0"]
    assert alone.test.weight is None  # classes weigh in training only


def test_a_job_with_weights_is_scikit_learn_s_model(table: Path) -> None:
    job = job_from(
        {
            "algorithm": "vfb2-svrg",
            "world": "simulated",
            "data": {"train": str(table), "label": "y", "parties": 2, "weight": "w", "scale": "none"},
            "train": {"l2": 0.01, "epochs": 60, "class_weight": {"yes": 3.0}, "batch": 16},
        }
    )
    done = federate(job)
    held = assigned(table, weight="w", scale="none")
    names = [c for party in held.parties.values() for c in party.train.columns]
    X = np.hstack([np.asarray(party.train.values) for party in held.parties.values()])
    first = held.parties["party-0"].train
    weight = first.weight * np.where(first.y > 0, 3.0, 1.0)
    weight /= weight.mean()
    theirs = LogisticRegression(C=1 / (len(weight) * 0.01), tol=1e-10, max_iter=5000)
    theirs.fit(X, first.y, sample_weight=weight)
    w = {party: share.weights["w"] for party, share in done.shares.items()}
    ours = np.concatenate([w["party-0"][:-1], w["party-1"]])
    assert len(names) == len(ours) == 4
    np.testing.assert_allclose(ours, theirs.coef_[0], atol=5e-3)
    assert w["party-0"][-1] == pytest.approx(theirs.intercept_[0], abs=5e-3)


@pytest.mark.parametrize(
    ("value", "words"), [("-1", "is -1; give"), ("nan", "is nan; give"), ("x", "is text")]
)
def test_weights_that_are_none_are_refused(table: Path, value: str, words: str) -> None:
    lines = table.read_text().splitlines()
    cells = lines[1].split(",")
    lines[1] = ",".join([*cells[:4], value, cells[5]])
    table.write_text("\n".join(lines) + "\n")
    with pytest.raises(DataError, match=words):
        assigned(table, weight="w")


def test_a_class_that_no_row_has_is_named(table: Path) -> None:
    with pytest.raises(JobError, match="no row has the label 'maybe'"):
        assigned(table, {"maybe": 2.0})


@pytest.mark.parametrize("algorithm", ["fdskl", "asyrevel-gau", "tig", "czofo", "pp-svmv"])
def test_every_kind_of_algorithm_trains_with_weights(table: Path, algorithm: str) -> None:
    data = {"train": str(table), "label": "y", "parties": 2, "weight": "w"}
    train = {"class_weight": "balanced", "epochs": 3}
    done = federate(job_from({"algorithm": algorithm, "world": "simulated", "data": data, "train": train}))
    assert np.isfinite(list(done.result.metrics.values())).all()
    assert np.isfinite(list(done.result.pooled.values())).all()


def test_a_kernel_machine_refuses_an_intercept(table: Path) -> None:
    data = {"train": str(table), "label": "y", "parties": 2, "intercept": True}
    with pytest.raises(ColonnadeError, match="has no intercept"):
        federate(job_from({"algorithm": "fdskl", "data": data}))
