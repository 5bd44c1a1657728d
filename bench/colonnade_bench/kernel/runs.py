"""What FDSKL's experiments measure: one split of a data set, trained by one algorithm.

Every algorithm gets the same 3:1 split of the same columns. Federated runs are all parties in this
process on the real clock (`local`).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from colonnade.arrays import Floats, Matrix
from colonnade.baselines.pooled import fit_pooled, pool
from colonnade.baselines.svc import bandwidth_and_penalty, fit_svc, trade_off
from colonnade.conversations.kernel.record import pooled_fit
from colonnade.conversations.pooling import AllColumns
from colonnade.data.catalogue import DATASETS
from colonnade.data.datasets import train_file
from colonnade.job import Data, Job, job_from
from colonnade.losses import LOSSES
from colonnade.models.linear import rows_of
from colonnade.regularizers import REGULARIZERS, Penalty
from colonnade.run.federate import Finished, Tables, plan_for, run_tables
from colonnade_bench.party_tables import held_out, read_tables

PARTIES, ACTIVE = 8, 2
SVC_ROWS = 10_000  # of which LIBSVM learns: its time grows with their square and more
SPLIT_FROM_TRAIN = ("a9a", "cod-rna")  # the paper splits 3:1 what we have as a training file


@dataclass(frozen=True, eq=False)
class Trained:
    """A federated run."""

    run: Finished
    processor: float  # seconds of the whole run; other programs on the machine change them less

    @property
    def error(self) -> float:
        """The share of test rows that are classified wrongly."""
        return 1 - self.run.result.metrics["test_accuracy"]

    @property
    def seconds(self) -> float:
        """Seconds of training, without measuring."""
        return self.run.result.cost.seconds


def tables_of(name: str, seed: int, parties: int = PARTIES) -> Tables:
    """The columns of a data set, split over parties, three rows for training to one for the test."""
    known = DATASETS[name]
    source = str(train_file(name)) if name in SPLIT_FROM_TRAIN else name
    scale = known.defaults.scale if isinstance(known.defaults.scale, str) else None
    data = Data(
        train=source,
        test_fraction=0.25,
        parties=parties,
        active=ACTIVE,
        scale=scale,
        missing=known.defaults.missing,
        rare=known.defaults.rare,
    )
    return replace(read_tables(data, seed=seed), dataset=name)


def job_for(tables: Tables, algorithm: str, seed: int, **sections: Any) -> Job:
    """A job that trains on these tables; it is compared with pooled training here, not by the run itself."""
    data = {"train": tables.dataset, "parties": len(tables.train), "active": len(tables.active)}
    train = {"loss": "smooth_hinge", "evaluate_every": 0, "tolerance": 0.0, **sections.pop("train", {})}
    plain = {"algorithm": algorithm, "seed": seed, "compare": False, "data": data, "train": train}
    return job_from({**plain, **sections})


def train_federated(job: Job, tables: Tables) -> Trained:
    """Run the job, all parties in this process."""
    began = time.process_time()
    run = run_tables(job, tables)
    return Trained(run, time.process_time() - began)


def rows_in(tables: Tables) -> int:
    """The number of training rows."""
    return next(iter(tables.train.values())).rows


def pooled_rows(tables: Tables) -> tuple[Matrix, Floats, Matrix, Floats]:
    """All columns side by side and the labels, of the training rows and of the test rows."""
    first = tables.active[0]
    return (
        *AllColumns(tables.train, None, first).pooled(),
        *AllColumns(held_out(tables), None, first).pooled(),
    )


def wrong(scores: Floats, y: Floats) -> float:
    """The share of rows whose score has the wrong sign."""
    return float(np.mean((scores >= 0) != (y > 0)))


def dsg_error(tables: Tables, algorithm: str, seed: int, **train: Any) -> tuple[float, float]:
    """Test error and processor seconds of an algorithm's doubly stochastic gradients on pooled columns."""
    X, y, X_test, y_test = pooled_rows(tables)
    job = job_for(tables, algorithm, seed, train=train)
    began = time.process_time()
    plan = plan_for(job, tables)[0]
    fit = pooled_fit(plan, X, y)
    seconds = time.process_time() - began
    return wrong(fit.scores(X_test), y_test), seconds


def svc_error(tables: Tables, seed: int) -> tuple[float, float]:
    """Test error and processor seconds of LIBSVM on pooled columns."""
    X, y, X_test, y_test = pooled_rows(tables)
    some = np.random.default_rng(seed).permutation(len(y))[:SVC_ROWS]  # files may be sorted
    X, y = X[some], y[some]
    began = time.process_time()
    sigma, l2 = bandwidth_and_penalty(X, y, LOSSES["smooth_hinge"], seed=seed)
    fit = fit_svc(X, y, sigma=sigma, C=trade_off(len(y), l2))
    seconds = time.process_time() - began
    return wrong(fit.decision_function(X_test), y_test), seconds


def linear_error(tables: Tables) -> float:
    """Test error of the pooled linear model, with an intercept, which a kernel machine does not need."""
    X, y, X_test, y_test = pooled_rows(tables)
    X, X_test = (pool([part, np.ones((part.shape[0], 1))]) for part in (X, X_test))
    fit = fit_pooled(X, y, LOSSES["logistic"], Penalty(REGULARIZERS["l2"], 1e-4))
    return wrong(rows_of(X_test).scores(0, len(y_test), fit.w), y_test)
