"""What AsyREVEL's experiments have in common: the data, the jobs, and what is called non-federated."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from colonnade.conversations.cascade.pooled import by_gradient, by_values, stack_of
from colonnade.conversations.pooling import AllColumns
from colonnade.data.datasets.catalogue import DATASETS
from colonnade.job import Data, Job, job_from
from colonnade.losses import LOSSES
from colonnade.metrics import metrics_of
from colonnade.result import Result
from colonnade.run.federate import Tables, plan_for
from colonnade_bench.party_tables import first_rows, held_out, read_tables

PARTIES = 8
IMAGES = ("mnist", "fashion-mnist")
# section 5.1: a party's network ends in one number, whatever the number of classes
NETWORK: dict[str, Any] = {"kind": "mlp", "hidden": [128], "outputs": 1, "server": {"kind": "linear"}}


def tables_of(name: str, rows: int | None = None, parties: int = PARTIES) -> Tables:
    """The columns of a data set, split evenly; the first party holds the label and is the server."""
    centred = DATASETS[name].defaults.scale == "zscore"  # such columns cannot carry the label's mean
    tables = read_tables(Data(train=name, parties=parties, active=1, test_fraction=0.1, intercept=centred))
    return tables if rows is None else replace(tables, train=first_rows(tables.train, rows))


def job_for(tables: Tables, algorithm: str, world: str = "local", **sections: Any) -> Job:
    """A job that trains on these tables; images have ten classes, and networks as models."""
    usual = {"regularizer": "nonconvex", "batch": 256, "evaluate_every": 0, "tolerance": 0.0}
    train = {**usual, **sections.pop("train", {})}
    if tables.dataset in IMAGES:
        sections.setdefault("model", NETWORK)
        train |= {"loss": "softmax", "classes": 10}
    data = {"train": tables.dataset, "parties": len(tables.train), "active": 1}
    plain = {"algorithm": algorithm, "world": world, "compare": False, "data": data, "train": train}
    plain["secure"] = {"labels": "clear"}  # said, so that no table moves with a default
    return job_from({**plain, **sections})


def accuracy(result: Result) -> float:
    """Test accuracy in per cent."""
    return 100 * result.metrics["test_accuracy"]


def non_federated(job: Job, tables: Tables, steps: dict[str, float], *, by: str) -> float:
    """Test accuracy in per cent of the same models trained in one place, by values or by gradient."""
    (plan, _), server, test = plan_for(job, tables), tables.active[0], held_out(tables)
    stack = stack_of(plan, AllColumns(tables.train, test, server))
    if by == "gradient":
        by_gradient(stack)
    else:
        by_values(stack, step=float(np.mean(list(steps.values()))))
    z, y = stack.scores([test[party].X for party in sorted(test)]), test[server].y
    if y is None:
        raise RuntimeError(f"{server} holds no label")
    return 100 * metrics_of(LOSSES[plan.objective.loss], z, y)["test_accuracy"]
