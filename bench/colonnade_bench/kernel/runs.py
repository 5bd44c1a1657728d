"""What FDSKL's experiments measure: one split of a data set, trained by one algorithm.

Every algorithm gets the same 3:1 split of the same columns. Federated runs are all parties in this
process on the real clock (`local`).
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from colonnade.arrays import Floats, Matrix
from colonnade.baselines.pooled import pool
from colonnade.baselines.svc import bandwidth_and_penalty, fit_svc, trade_off
from colonnade.conversations.kernel.record import pooled_fit
from colonnade.conversations.pooling import AllColumns
from colonnade.data.datasets.catalogue import DATASETS
from colonnade.data.datasets.loading import train_file
from colonnade.data.table import INTERCEPT, Table
from colonnade.job import Data, Job, job_from
from colonnade.losses import LOSSES
from colonnade.run.federate import Finished, Tables, plan_for, run_tables
from colonnade_bench.party_tables import held_out, read_tables

PARTIES, ACTIVE = 8, 2
SVC_SECONDS = 3600.0  # that LIBSVM may take; its time grows with the square of the rows and more
SUMMED_ROWS = 12_000  # what the whole kernel matrix can be summed for in minutes
# the paper splits 3:1 what we have as a training file
SPLIT_FROM_TRAIN = ("a9a", "cod-rna", "ijcnn1", "w8a", "gisette", "epsilon")


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


def tables_of(name: str, seed: int, parties: int = PARTIES, rows: int | None = None) -> Tables:
    """The columns of a data set, split over parties, three rows for training to one for the test.

    With `rows` only so many of each, drawn at random.
    """
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
    whole = replace(read_tables(data, seed=seed), dataset=name)
    if rows is None:
        return whole
    rng = np.random.default_rng(seed)
    train, test = (_drawn(tables, rows, rng) for tables in (whole.train, held_out(whole)))
    return replace(whole, train=train, test=test)


def _drawn(tables: Mapping[str, Table], rows: int, rng: np.random.Generator) -> dict[str, Table]:
    """So many rows of all parties, or all if there are fewer."""
    count = next(iter(tables.values())).rows
    some = np.sort(rng.permutation(count)[:rows])
    return {party: table.take(some) for party, table in tables.items()}


def job_for(tables: Tables, algorithm: str, seed: int, **sections: Any) -> Job:
    """A job that trains on these tables; it is compared with pooled training here, not by the run itself."""
    data = {"train": tables.dataset, "parties": len(tables.train), "active": len(tables.active)}
    train = {"loss": "smooth_hinge", "evaluate_every": 0, "tolerance": 0.0, **sections.pop("train", {})}
    plain = {"algorithm": algorithm, "seed": seed, "compare": False, "data": data, "train": train}
    # histograms of trees may be hidden as well; all else is compared as the papers run it
    plain["secure"] = {"labels": "blind" if algorithm == "secureboost" else "clear"}
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


def svc_error(tables: Tables, seed: int, limit: float = SVC_SECONDS) -> tuple[float, float] | None:
    """Test error and processor seconds of LIBSVM on pooled columns; None if it takes longer than that."""
    # a process of its own, since LIBSVM cannot be interrupted; leaving the pool ends it
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        try:
            return pool.apply_async(_svc_error, (*pooled_rows(tables), seed)).get(limit)
        except multiprocessing.TimeoutError:
            return None


def _svc_error(X: Matrix, y: Floats, X_test: Matrix, y_test: Floats, seed: int) -> tuple[float, float]:
    began = time.process_time()
    sigma, l2 = bandwidth_and_penalty(X, y, LOSSES["smooth_hinge"], seed=seed)
    fit = fit_svc(X, y, sigma=sigma, C=trade_off(len(y), l2))
    seconds = time.process_time() - began
    return wrong(fit.decision_function(X_test), y_test), seconds


def fd_svrg(tables: Tables, seed: int, **sections: Any) -> Trained:
    """FD-SVRG: a linear model, every party with the label; it has an intercept, which kernels do not need."""
    first = tables.active[0]

    def linear(part: Mapping[str, Table]) -> dict[str, Table]:
        labelled = {party: replace(table, y=part[first].y) for party, table in part.items()}
        with_ones = pool([part[first].X, np.ones((part[first].rows, 1))])
        one = replace(labelled[first], X=with_ones, columns=(*part[first].columns, INTERCEPT))
        return {**labelled, first: one}

    ready = replace(
        tables, train=linear(tables.train), test=linear(held_out(tables)), active=tuple(tables.train)
    )
    own = {"loss": "logistic", "epochs": 30, "batch": max(64, rows_in(tables) // 200)}
    train = {**own, **sections.pop("train", {})}
    return train_federated(job_for(ready, "fd-svrg", seed, train=train, **sections), ready)
