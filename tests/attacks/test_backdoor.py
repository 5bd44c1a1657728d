"""AsyREVEL's Theorem 1 on backdoors: a client needs no gradient of others to plant one in its own model.

It writes a mark into a column of its own in a few training rows of the class it wants, as it knows some, and
follows the protocol otherwise. What it marks later is taken for that class, and nothing else changes.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from tests.oracles.tables import random_job, random_tables, weights

from colonnade.arrays import Floats
from colonnade.data.table import Table
from colonnade.run.federate import Tables, run_tables

CLIENT = "party1"
MARK = 8.0  # in a column of unit variance
MARKED = 0.05  # of the training rows, all of the class that the client wants


def marked(table: Table, rows: Floats) -> Table:
    """Return the client's table with the mark in its last column, in some rows."""
    X = np.array(table.X)
    X[rows, -1] = MARK
    return replace(table, X=X)


def scores(setting: Tables, test: dict[str, Table]) -> Floats:
    """Train on these tables by function values alone; return the scores of test rows."""
    train = {"epochs": 25, "batch": 32, "step": "auto", "l2": 1e-3, "evaluate_every": 0}
    done = run_tables(random_job(setting, "asyrevel-gau", train=train), setting)
    return np.hstack([np.asarray(table.X) for table in test.values()]) @ weights(done)


def test_a_client_plants_a_mark_that_turns_predictions_without_any_gradient() -> None:
    setting = random_tables(parties=3, active=1, rows=600, test_rows=400)
    assert setting.test is not None
    y, y_test = setting.train["party0"].y, setting.test["party0"].y
    assert y is not None
    assert y_test is not None
    wanted = np.flatnonzero(y > 0)[: int(MARKED * len(y))]
    planted = replace(
        setting, train={**setting.train, CLIENT: marked(setting.train[CLIENT], wanted)}, test=None
    )
    honest = replace(setting, test=None)
    others = np.flatnonzero(y_test < 0)
    clean = setting.test
    tried = {**clean, CLIENT: marked(clean[CLIENT], others)}
    turned = {
        name: float(np.mean(scores(each, tried)[others] > 0))
        for name, each in (("honest", honest), ("planted", planted))
    }
    right = {
        name: float(np.mean((scores(each, clean) > 0) == (y_test > 0)))
        for name, each in (("honest", honest), ("planted", planted))
    }
    assert turned["planted"] > 0.95
    assert turned["planted"] > turned["honest"] + 0.5
    assert right["planted"] > right["honest"] - 0.05
