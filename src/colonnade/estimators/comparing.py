"""`colonnade.compare`: several algorithms on one split, from Python."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.model_selection import train_test_split
from sklearn.utils.multiclass import type_of_target

from colonnade.errors import ColonnadeError, DataError
from colonnade.estimators.classifier import VerticalClassifier
from colonnade.estimators.inputs import Holders
from colonnade.estimators.regressor import VerticalRegressor
from colonnade.job.advice import FAMILIES
from colonnade.result import Result


def compare(
    X: Any,
    y: ArrayLike,
    algorithms: Sequence[str] = FAMILIES,
    *,
    columns: Holders | None = None,
    parties: int | None = None,
    test_size: float = 0.25,
    random_state: int = 0,
    job: Mapping[str, Any] | None = None,
    **parameters: Any,
) -> list[dict[str, Any]]:
    """Train several algorithms on the same rows and measure them on the same test rows.

    Returns a row for every algorithm, the best first, and last those that could not be trained, with why:
    what `pandas.DataFrame` takes. `alone` is what the label holder reaches by itself with that kind of model,
    `opens` what the run would give away between companies, `model` the trained estimator. `parameters` are
    those of the estimators. The test rows choose the winner, so its figures are slightly optimistic.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 4))
    >>> rows = compare(X, X[:, 0] * X[:, 2] > 0, ["lbfgs", "secureboost"], parties=2,
    ...                job={"secure": {"labels": "clear"}})
    >>> rows[0]["algorithm"]
    'secureboost'
    """
    truth = np.asarray(y)
    places = np.arange(len(truth))
    classes = type_of_target(truth) in ("binary", "multiclass") and truth.dtype.kind != "f"
    train, test = train_test_split(
        places, test_size=test_size, random_state=random_state, stratify=truth if classes else None
    )
    kind: Any = VerticalClassifier if classes else VerticalRegressor
    rows, failed = [], []
    for name in algorithms:
        model = kind(name, columns=columns, parties=parties, random_state=random_state, job=job, **parameters)
        began = time.perf_counter()
        try:
            model.fit(_take(X, train), truth[train])
        except ColonnadeError as error:
            failed.append({"algorithm": name, "why": str(error)})
            continue
        seconds = time.perf_counter() - began
        rows.append(_row(name, model, model.quality(_take(X, test), truth[test]), seconds))
    if not rows:
        raise DataError("; ".join(f"{each['algorithm']}: {each['why']}" for each in failed))
    key = next(key for key in ("test_auc", "test_accuracy", "r2", "d2") if key in rows[0])
    return [*sorted(rows, key=lambda row: -float(row[key])), *failed]


def _row(name: str, model: Any, result: Result, seconds: float) -> dict[str, Any]:
    """Return an algorithm's row: its metrics, what the label holder reaches alone, costs and openings."""
    alone = next((each.metrics for each in result.compared if each.name == "alone"), {})
    measured = {key: value for key, value in result.metrics.items() if key not in ("train_loss", "objective")}
    key = next((key for key in ("test_auc", "test_accuracy", "r2", "d2") if key in alone), "")
    return {
        "algorithm": name,
        **measured,
        "alone": alone.get(key, float("nan")),
        "seconds": seconds,
        "bytes": result.cost.bytes_sent,
        "opens": list(result.privacy.leaks),
        "model": model,
    }


def _take(X: Any, rows: Any) -> Any:
    """Return some rows of an array, a frame or a sparse matrix."""
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return X[rows] if hasattr(X, "shape") else np.asarray(X, dtype=object)[rows]
