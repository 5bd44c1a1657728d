"""An owner that packs eight rows into a column reads their labels off one weight, if that is told finely."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from tests.oracles.tables import random_job

from colonnade.data.table import Table
from colonnade.run import inprocess
from colonnade.run.federate import Tables, run_tables
from colonnade.run.party import Work

ROWS, PACKED = 960, 8


def read_labels() -> float:
    """Return which part of the labels an owner reads that chose its columns for it, at a tiny step."""
    rng = np.random.default_rng(3)
    y = np.where(rng.random(ROWS) < 0.5, 1.0, -1.0)
    packed = np.zeros((ROWS, ROWS // PACKED))
    packed[np.arange(ROWS), np.arange(ROWS) // PACKED] = 2.0 ** -(np.arange(ROWS) % PACKED)
    columns = {"party0": rng.standard_normal((ROWS, 3)), "party1": packed}
    columns["party2"] = rng.standard_normal((ROWS, 3))
    train = {
        party: Table(party, tuple(f"{party}{k}" for k in range(X.shape[1])), X)
        for party, X in columns.items()
    }
    train["party0"] = replace(train["party0"], y=y)
    tables = Tables("packed", train, None, ("party0",))
    job = random_job(
        tables,
        "vfb2-sgd",
        train={"epochs": 1, "step": 1e-3, "l2": 0.0, "batch": 60},
        secure={"labels": "blind", "reveal": "owner"},
    )
    rest = np.array(run_tables(job, tables).shares["party1"].weights["w"]) * 2 * 60 / 1e-3
    found = np.empty(ROWS)
    for place in range(PACKED):
        sign = np.where(rest >= 0, 1.0, -1.0)
        found[place::PACKED] = sign
        rest = rest - sign * 2.0**-place
    return float((found == y).mean())


def test_weights_at_statistical_precision_do_not_tell_packed_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_labels() > 0.95  # on one machine, where all parties are the caller's
    monkeypatch.setattr(inprocess, "Work", partial(Work, apart=True))
    assert read_labels() < 0.58  # guessing is right for half of them
