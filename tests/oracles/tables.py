"""Random columns dealt to parties, and the jobs that train on them: the setting of most tests."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from colonnade.arrays import Floats
from colonnade.data.table import Table
from colonnade.job import Job, job_from
from colonnade.run.federate import Finished, Tables, run_tables


def random_setting(
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
    """Columns of unit variance (a third of them filled where sparse), and a noisy linear label.

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

    def tables(part: slice) -> dict[str, Table]:
        return {
            party: Table(
                party,
                tuple(f"c{j}" for j in block),
                csr_array(X[part][:, block]) if sparse else np.ascontiguousarray(X[part][:, block]),
                y[part] if party in labelled else None,
            )
            for party, block in blocks.items()
        }

    train = tables(slice(rows))
    return Tables("random", train, tables(slice(rows, None)) if test_rows else None, labelled)


def pooled(setting: Tables) -> tuple[Floats, Floats]:
    """All columns of all parties side by side, dense, with the label."""
    blocks = [
        table.X if isinstance(table.X, np.ndarray) else table.X.toarray() for table in setting.train.values()
    ]
    y = setting.train[setting.active[0]].y
    assert y is not None
    return np.hstack(blocks), y


def weights(run: Finished) -> Floats:
    """The weights of all parties side by side, in the order of the pooled columns."""
    return np.concatenate([share.weights["w"] for share in run.shares.values()])


def random_job(setting: Tables, algorithm: str = "vfb2-sgd", **sections: Any) -> Job:
    """A job for such a setting; `train`, `network` and `secure` are its sections."""
    sections.setdefault("world", "simulated")
    train = {"loss": "logistic", "batch": 16, "epochs": 2, "step": 0.1, **sections.pop("train", {})}
    data = {"train": "random", "parties": len(setting.train), "active": len(setting.active)}
    return job_from({"algorithm": algorithm, "data": data, "train": train, **sections})


def run(setting: Tables, algorithm: str = "vfb2-sgd", **sections: Any) -> Finished:
    return run_tables(random_job(setting, algorithm, **sections), setting)
