"""Losses that people compare are those of the rows, without a penalty: recomputed from what a run wrote."""

from __future__ import annotations

import csv
from pathlib import Path

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.metrics import log_loss

from colonnade.cli import main
from colonnade.job import job_from
from colonnade.job.writing import as_toml
from colonnade.report.summary import moment_line
from colonnade.result import Moment, read_result
from colonnade.run.federate import federate

SETS = {"binary": load_breast_cancer, "multiclass": load_iris, "regression": load_diabetes}


@pytest.mark.parametrize("task", SETS)
@pytest.mark.parametrize("algorithm", ["lbfgs", "vfb2-saga", "vafl", "secureboost"])
def test_test_loss_follows_from_the_test_scores(algorithm: str, task: str, tmp_path: Path) -> None:
    X, y = SETS[task](return_X_y=True)
    table = tmp_path / "table.csv"
    names = [f"c{k}" for k in range(X.shape[1])]
    words = [f"class{k}" for k in y] if task != "regression" else y
    with table.open("w", newline="") as stream:
        csv.writer(stream).writerows(
            [[*names, "y"], *([*row, word] for row, word in zip(X, words, strict=True))]
        )
    job = job_from(
        {
            "algorithm": algorithm,
            "world": "simulated",
            "data": {"train": str(table), "label": "y", "parties": 3},
            "train": {"epochs": 5}
            | ({} if algorithm == "secureboost" else {"l2": 0.3}),  # a penalty to be seen
        }
    )
    (tmp_path / "job.toml").write_text(as_toml(job))
    told = CliRunner().invoke(main, ["run", str(tmp_path / "job.toml"), "--out", str(tmp_path / "run")])
    assert told.exit_code == 0, told.output
    result = read_result(tmp_path / "run" / "result.json")
    with (tmp_path / "run" / "test_scores.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    scores = np.array([[float(v) for k, v in row.items() if k.startswith("score")] for row in rows])
    labels = np.array([row["label"] for row in rows])
    if task == "regression":
        expected = float(np.mean((scores[:, 0] - labels.astype(float)) ** 2) / 2)
    elif task == "binary":
        expected = log_loss(labels.astype(float) > 0, 1 / (1 + np.exp(-scores[:, 0])))
    else:
        shifted = np.exp(scores - scores.max(axis=1, keepdims=True))
        known = sorted(set(labels))
        expected = log_loss(labels, shifted / shifted.sum(axis=1, keepdims=True), labels=known)
    assert result.metrics["test_loss"] == pytest.approx(expected, rel=1e-6)
    if algorithm in ("lbfgs", "vfb2-saga"):
        assert result.metrics["objective"] > 1.001 * result.metrics["train_loss"]


def test_the_loss_that_is_shown_while_a_run_trains_has_no_penalty() -> None:
    data = {"train": "breast-cancer", "parties": 3}
    heard: list[Moment] = []
    job = job_from({"algorithm": "lbfgs", "data": data, "secure": {"labels": "clear"}, "train": {"l2": 0.3}})
    result = federate(job, progress=heard.append).result
    last = heard[-1]
    assert last.shown == pytest.approx(result.metrics["train_loss"])
    assert last.loss == pytest.approx(result.metrics["objective"])
    assert f"loss {last.train_loss:.6f}  objective {last.loss:.6f}" in moment_line(last, 300)
    plain = msgspec.structs.replace(last, train_loss=None)  # as 0.2 wrote it
    assert f"loss {last.loss:.6f}  " in moment_line(plain, 300)
    assert "objective" not in moment_line(plain, 300)
