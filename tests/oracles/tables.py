"""Random tables for a few parties, and jobs that train on them: what most tests run."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from colonnade.arrays import Floats
from colonnade.data.table import Table
from colonnade.job import Job, job_from
from colonnade.job.presets import PRESETS
from colonnade.run.federate import Finished, Tables, run_tables


def random_tables(
    *,
    parties: int = 4,
    active: int = 2,
    rows: int = 120,
    columns: int = 12,
    sparse: bool = False,
    regression: bool = False,
    classes: int | None = None,
    test_rows: int = 0,
    seed: int = 0,
) -> Tables:
    """Every party's table: columns of unit variance (a third filled where sparse), a noisy linear label.

    With `classes` the label is the largest of as many noisy linear scores.
    """
    rng = np.random.default_rng([seed, rows, columns])
    n = rows + test_rows
    X = rng.standard_normal((n, columns))
    if sparse:
        X[rng.random(X.shape) < 2 / 3] = 0.0
    y = X @ rng.standard_normal(columns) + 0.3 * rng.standard_normal(n)
    if classes:
        scores = X @ rng.standard_normal((columns, classes)) + 0.3 * rng.standard_normal((n, classes))
        y = scores.argmax(axis=1).astype(np.float64)
    elif not regression:
        y = np.where(y >= 0, 1.0, -1.0)
    names = [f"party{i}" for i in range(parties)]
    blocks = dict(zip(names, np.array_split(np.arange(columns), parties), strict=True))
    labelled = tuple(names[:active])

    def dealt(part: slice) -> dict[str, Table]:
        return {
            party: Table(
                party,
                tuple(f"c{j}" for j in block),
                csr_array(X[part][:, block]) if sparse else np.ascontiguousarray(X[part][:, block]),
                y[part] if party in labelled else None,
            )
            for party, block in blocks.items()
        }

    train = dealt(slice(rows))
    return Tables("random", train, dealt(slice(rows, None)) if test_rows else None, labelled)


def pooled(tables: Tables) -> tuple[Floats, Floats]:
    """All columns of all parties side by side, dense, with the label."""
    blocks = [
        table.X if isinstance(table.X, np.ndarray) else table.X.toarray() for table in tables.train.values()
    ]
    y = tables.train[tables.active[0]].y
    assert y is not None
    return np.hstack(blocks), y


def weights(run: Finished) -> Floats:
    """The weights of all parties side by side, in the order of the pooled columns."""
    return np.concatenate([share.weights["w"] for share in run.shares.values()])


def random_job(tables: Tables, algorithm: str = "vfb2-sgd", **sections: Any) -> Job:
    """A job that trains on these tables; the keyword arguments are its sections (train, network, ...)."""
    sections.setdefault("world", "simulated")
    of_all_rows = PRESETS[algorithm].conversation in ("full", "boost")
    batches = {} if of_all_rows else {"batch": 16, "step": 0.1}
    train = {"loss": "logistic", **batches, "epochs": 2, **sections.pop("train", {})}
    data = {"train": "random", "parties": len(tables.train), "active": len(tables.active)}
    return job_from({"algorithm": algorithm, "data": data, "train": train, **sections})


def run(tables: Tables, algorithm: str = "vfb2-sgd", **sections: Any) -> Finished:
    """Train on these tables with an algorithm."""
    return run_tables(random_job(tables, algorithm, **sections), tables)
