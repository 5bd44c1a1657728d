"""How far FDSKL is from the kernel machine's optimum after T rounds, with its theorem's step for T."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.spatial.distance import cdist

from colonnade.arrays import Floats
from colonnade.data.table import Table
from colonnade.job import job_from
from colonnade.run.federate import Tables, plan_for
from colonnade.run.launch import launch
from colonnade.run.world import Launch

ROWS, BATCH, BLOCK, L2, SIGMA = 400, 20, 20, 0.1, 2.0
STEP = 1.0  # of one epoch's run: gamma is this over T


@lru_cache(maxsize=1)
def _tables() -> tuple[Tables, Floats]:
    """Four columns over two parties, a smooth label with noise, and the optimum's score of every row."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((ROWS, 4))
    y = np.sin(2 * X[:, 0]) * X[:, 2] + 0.1 * rng.standard_normal(ROWS)
    K = np.exp(-cdist(X, X, "sqeuclidean") / (2 * SIGMA**2))
    best: Floats = K @ np.linalg.solve(K + ROWS * L2 * np.eye(ROWS), y)
    train = {
        "one": Table("one", ("a", "b"), np.ascontiguousarray(X[:, :2]), y),
        "two": Table("two", ("c", "d"), np.ascontiguousarray(X[:, 2:]), None),
    }
    return Tables("made", train, train, ("one",)), best


def distance(epochs: int, seed: int) -> float:
    """Return the mean over all rows of (f_T - f*)^2."""
    tables, best = _tables()
    job = job_from(
        {
            "algorithm": "fdskl",
            "world": "simulated",
            "seed": seed,
            "compare": False,
            "data": {"train": "made", "parties": 2, "active": 1},
            "train": {
                "loss": "squared", "l2": L2, "batch": BATCH, "epochs": epochs, "step": STEP / epochs,
                "tolerance": 0.0, "evaluate_every": 0,
            },
            "kernel": {"sigma": SIGMA, "block": BLOCK, "bits": 32},
            "secure": {"labels": "clear"},
        }
    )  # fmt: skip
    plan, data = plan_for(job, tables)
    scores = launch(Launch(plan, data))["one"].test_scores
    return float(np.mean((np.asarray(scores).ravel() - best) ** 2))
