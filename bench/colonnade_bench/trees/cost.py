"""What one more tree costs: processor time of all parties together, and bytes.

Cutting columns into bins is before the first tree, here and in scikit-learn, and counts in neither.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from msgspec import structs
from threadpoolctl import threadpool_limits

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


def ours(data: tuple[Any, Any], labels: str, trees: int = 1) -> Cost:
    """The cost of one more tree: the mean of as many, after as many that are not counted."""
    when, sent = [], []
    job = job_from(
        {
            "algorithm": "secureboost",
            "data": {"train": "made up", "parties": PARTIES},
            "secure": {"labels": labels},
            "train": {"epochs": 2 * trees, "evaluate_every": trees},
            "trees": {"max_bin": BINS, "max_depth": DEPTH},
        }
    )

    def note(moment: Moment) -> None:
        when.append(time.process_time())
        sent.append(moment.bytes / 1e6)

    run_tables(structs.replace(job, compare=False), _dealt(*data), progress=note)
    return Cost((when[1] - when[0]) / trees, (sent[1] - sent[0]) / trees)


def scikit_learn(data: tuple[Any, Any], trees: int) -> Cost:
    """The same of scikit-learn, on one thread: threads that wait for each other spend processor time, too."""
    import sklearn.ensemble  # its threads must be there before they are limited

    with threadpool_limits(1):
        first, all_ = (_fitted(sklearn.ensemble, data, count) for count in (trees, 5 * trees))
    return Cost((all_ - first) / (4 * trees))


def side_by_side(repeats: int, trees: int) -> dict[str, list[Cost]]:
    """What a tree of UCI credit's shape costs every way, in turns, so that all have the same machine."""
    data = credit_like()
    found: dict[str, list[Cost]] = {"scikit-learn": [], "clear": [], "blind": []}
    for _ in range(repeats):
        found["scikit-learn"].append(scikit_learn(data, trees))
        for labels in ("clear", "blind"):
            found[labels].append(ours(data, labels, trees))
    return found


def _fitted(ensemble: Any, data: tuple[Any, Any], trees: int) -> float:
    """Processor seconds of scikit-learn for so many trees."""
    model = ensemble.HistGradientBoostingClassifier(
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
