"""What one more tree costs: processor time of all parties together, and bytes."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from msgspec import structs

from colonnade.data.table import Table
from colonnade.job import job_from
from colonnade.result import Moment
from colonnade.run.federate import Tables, run_tables

PARTIES, BINS, DEPTH = 4, 32, 6


@dataclass(frozen=True)
class Cost:
    """Of one tree: processor seconds of all parties, and megabytes sent."""

    seconds: float
    megabytes: float = 0.0


def made_up(rows: int, columns: int) -> tuple[Any, Any]:
    """Columns and labels of two classes that trees can learn."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, columns))
    return X, np.where(X[:, 0] + X[:, 1] * X[:, 2] + rng.standard_normal(rows) > 0, 1.0, -1.0)


def credit_like() -> tuple[Any, Any]:
    """As many rows and columns as UCI credit has, all of them numbers."""
    return made_up(30_000, 23)


def per_tree(data: tuple[Any, Any], way: str, trees: int) -> Cost:
    """The cost of one more tree: the least of several, as other programs here only ever add to it."""
    if way == "scikit-learn":
        return Cost(min((_scikit_learn(data, 12) - _scikit_learn(data, 2)) / 10 for _ in range(trees)))
    tables, when, sent = _dealt(*data), [], []
    job = job_from(
        {
            "algorithm": "secureboost",
            "data": {"train": "made up", "parties": PARTIES},
            "secure": {"labels": way},
            "train": {"epochs": 1 + trees},
            "trees": {"max_bin": BINS, "max_depth": DEPTH},
        }
    )

    def note(moment: Moment) -> None:
        when.append(time.process_time())
        sent.append(moment.bytes / 1e6)

    run_tables(structs.replace(job, compare=False), tables, progress=note)
    rounds = slice(1 + trees)  # the last moment is measured twice
    return Cost(float(np.diff(when[rounds]).min()), float(np.diff(sent[rounds]).mean()))


def _scikit_learn(data: tuple[Any, Any], trees: int) -> float:
    """Processor seconds of scikit-learn for so many trees."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    model = HistGradientBoostingClassifier(
        max_iter=trees,
        max_depth=DEPTH,
        max_leaf_nodes=None,
        max_bins=BINS,
        l2_regularization=1.0,
        early_stopping=False,
    )
    began = time.process_time()
    model.fit(*data)
    return time.process_time() - began


def _dealt(X: Any, y: Any) -> Tables:
    """Columns dealt to four parties, of which the first holds the label."""
    train = {}
    for number, block in enumerate(np.array_split(np.arange(X.shape[1]), PARTIES)):
        names = tuple(f"c{j}" for j in block)
        own = np.ascontiguousarray(X[:, block])
        train[f"party-{number}"] = Table(f"party-{number}", names, own, y if number == 0 else None)
    return Tables("made up", train, None, ("party-0",))
