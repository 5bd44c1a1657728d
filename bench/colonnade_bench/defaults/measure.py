"""One problem solved three ways: by files and commands, from Python, and by a scikit-learn pipeline."""

from __future__ import annotations

import contextlib
import io
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
from sklearn.metrics import (
    accuracy_score,
    log_loss,
    mean_poisson_deviance,
    mean_squared_error,
    r2_score,
    roc_auc_score,
)
from sklearn.pipeline import make_pipeline

from colonnade import VerticalClassifier, VerticalRegressor
from colonnade.cli.folder import RESULT
from colonnade.cli.new import new
from colonnade.cli.run import run
from colonnade.job.writing import value_text
from colonnade.result import Result, read_result
from colonnade.test_scores import FILE, TestScores
from colonnade_bench.defaults.problem import Kind, Problem, Rows

LEAST = 1e-12  # a probability of 0 would make the loss infinite


@dataclass(frozen=True)
class Quality:
    """How good predictions of test rows are; a number to predict has R2 for an accuracy, and no AUC."""

    loss: float
    accuracy: float = float("nan")
    auc: float = float("nan")

    @staticmethod
    def of(kind: Kind, y: NDArray[Any], predicted: NDArray[np.float64]) -> Quality:
        """Measure predictions: a probability for each class, or a number a row."""
        if kind == "number":
            return Quality(float(mean_squared_error(y, predicted)), float(r2_score(y, predicted)))
        if kind == "counts":
            return Quality(float(mean_poisson_deviance(y, predicted)))
        classes, place = np.unique(y, return_inverse=True)
        p = np.clip(predicted, LEAST, 1.0)
        p /= p.sum(axis=1, keepdims=True)
        two = len(classes) == 2
        return Quality(
            loss=float(log_loss(place, p)),
            accuracy=float(accuracy_score(place, p.argmax(axis=1))),
            auc=float(roc_auc_score(place, p[:, 1] if two else p, multi_class="ovr")),
        )

    @staticmethod
    def mean(each: list[Quality]) -> Quality:
        """The mean of several folds."""
        return Quality(
            *(float(np.mean([getattr(q, key) for q in each])) for key in ("loss", "accuracy", "auc"))
        )


@dataclass(frozen=True)
class Run:
    """What the commands made of a problem's files."""

    quality: Quality
    result: Result
    shown: str  # all that they printed
    seconds: float  # of `colonnade run`, from its files to its folder


def by_commands(problem: Problem, folder: Path) -> Run:
    """`colonnade new --clear`, the test files added to the job that it wrote, `colonnade run`."""
    words, tests = problem.write(folder)
    job, out = folder / "job.toml", folder / "run"
    with contextlib.redirect_stdout(io.StringIO()) as shown, contextlib.redirect_stderr(shown):
        new.main([*words, "--clear", "--out", str(job)], standalone_mode=False)
        added = "".join(f"{key} = {value_text(value)}\n" for key, value in tests.items())
        text = job.read_text(encoding="utf-8").replace("[data]\n", f"[data]\n{added}")
        if problem.kind == "counts":
            text = text.replace("[train]\n", '[train]\nloss = "poisson"\n')
        job.write_text(text, encoding="utf-8")
        began = time.perf_counter()
        run.main([str(job), "--out", str(out), "--no-pooled"], standalone_mode=False)
        seconds = time.perf_counter() - began
    scores = TestScores.read(out / FILE)
    quality = Quality.of(problem.kind, scores.y, _predicted(problem.kind, scores.z))
    return Run(quality, read_result(out / RESULT), shown.getvalue(), seconds)


def from_python(problem: Problem, rows: Rows) -> Quality:
    """The estimators as they come."""
    if problem.kind == "classes":
        model: Any = VerticalClassifier().fit(rows.X, rows.y)
        return Quality.of(problem.kind, rows.y_test, model.predict_proba(rows.X_test))
    model = VerticalRegressor() if problem.kind == "number" else VerticalRegressor(loss="poisson")
    return Quality.of(problem.kind, rows.y_test, model.fit(rows.X, rows.y).predict(rows.X_test))


def by_pipeline(problem: Problem, rows: Rows) -> Quality:
    """scikit-learn's models as they come, but for enough iterations."""
    models = {
        "classes": LogisticRegression(max_iter=5_000),
        "number": Ridge(),
        "counts": PoissonRegressor(alpha=1 / len(rows.y), max_iter=5_000),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # unknown categories of test rows are as they should be
        model = make_pipeline(problem.preparation(), models[problem.kind]).fit(rows.X, rows.y)
        predict = model.predict_proba if problem.kind == "classes" else model.predict
        return Quality.of(problem.kind, rows.y_test, predict(rows.X_test))


def _predicted(kind: Kind, z: NDArray[np.float64]) -> NDArray[np.float64]:
    """What scores predict."""
    if kind == "number":
        return z
    if kind == "counts":
        return np.exp(z)
    if z.ndim == 1:
        return np.column_stack([expit(-z), expit(z)])
    return np.asarray(softmax(z, axis=1))
