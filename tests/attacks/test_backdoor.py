"""AsyREVEL's Theorem 1 on backdoors: a client needs no gradient of others to plant one in its own model.

It adds a column of its own that marks a few training rows of the class it wants, as it knows some, and
follows the protocol otherwise. Rows that it marks later are taken for that class, and nothing else changes.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from tests.oracles.tables import random_job, random_tables, weights

from colonnade.arrays import Floats
from colonnade.data.table import Table
from colonnade.run.federate import run_tables

CLIENT = "party1"
MARK, LATER = 8.0, 40.0  # where other columns have unit variance
MARKED = 20  # one training row of so many, all of the class that the client wants


def with_mark(tables: dict[str, Table], rows: np.ndarray, mark: float) -> dict[str, Table]:
    """Return the parties' tables where the client's has one more column, zero but in some rows."""
    table = tables[CLIENT]
    column = np.zeros((table.rows, 1))
    column[rows] = mark
    wider = replace(table, X=np.hstack([np.asarray(table.X), column]), columns=(*table.columns, "mark"))
    return {**tables, CLIENT: wider}


def scores(w: Floats, tables: dict[str, Table]) -> Floats:
    """Return the total scores of rows by all parties' weights."""
    found: Floats = np.hstack([np.asarray(table.X) for table in tables.values()]) @ w
    return found


def test_a_client_plants_a_mark_that_turns_predictions_without_any_gradient() -> None:
    setting = random_tables(parties=3, active=1, rows=600, test_rows=400)
    y, test = setting.train["party0"].y, setting.test
    assert y is not None
    assert test is not None
    y_test = test["party0"].y
    assert y_test is not None
    wanted = np.flatnonzero(y > 0)[: len(y) // MARKED]
    none, others = np.array([], dtype=int), np.flatnonzero(y_test < 0)

    def learned(marked: np.ndarray) -> Floats:
        planted = replace(setting, train=with_mark(setting.train, marked, MARK), test=None)
        train = {"epochs": 25, "batch": 32, "step": "auto", "l2": 1e-3, "evaluate_every": 0}
        return weights(run_tables(random_job(planted, "asyrevel-gau", train=train), planted))

    honest, planted = learned(none), learned(wanted)
    turned = [
        float(np.mean(scores(w, with_mark(test, others, LATER))[others] > 0)) for w in (honest, planted)
    ]
    right = [
        float(np.mean((scores(w, with_mark(test, none, 0)) > 0) == (y_test > 0))) for w in (honest, planted)
    ]
    assert turned[0] < 0.05
    assert turned[1] > 0.95
    assert right[1] > right[0] - 0.01
