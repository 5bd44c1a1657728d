"""What an owner reads off its own weights: labels that it packs eight to a column, if these are told finely,
and something of all labels, if it has many columns."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from tests.oracles.tables import random_job

from colonnade.arrays import Floats
from colonnade.conversations.predict import Holding
from colonnade.data.table import Table
from colonnade.metrics import auc
from colonnade.openings.opening import most_columns
from colonnade.run import inprocess
from colonnade.run.federate import Tables, plan_for, run_tables
from colonnade.run.party import Work
from colonnade.run.registry import CONVERSATIONS

ROWS, PACKED = 960, 8


def tables_of(columns: dict[str, Floats], y: Floats) -> Tables:
    train = {
        party: Table(party, tuple(f"{party}{k}" for k in range(X.shape[1])), X)
        for party, X in columns.items()
    }
    train["party0"] = replace(train["party0"], y=y)
    return Tables("chosen", train, None, ("party0",))


def read_labels(reveal: str = "owner") -> float:
    """Return which part of the labels an owner reads that chose its columns for it, at a tiny step.

    It is told its weights or, where nobody is, asks for scores of rows that have a single one in them.
    """
    rng = np.random.default_rng(3)
    y = np.where(rng.random(ROWS) < 0.5, 1.0, -1.0)
    packed = np.zeros((ROWS, ROWS // PACKED))
    packed[np.arange(ROWS), np.arange(ROWS) // PACKED] = 2.0 ** -(np.arange(ROWS) % PACKED)
    columns = {"party0": rng.standard_normal((ROWS, 3)), "party1": packed}
    columns["party2"] = rng.standard_normal((ROWS, 3))
    tables = tables_of(columns, y)
    train = tables.train
    job = random_job(
        tables,
        "vfb2-sgd",
        train={"epochs": 1, "step": 1e-3, "l2": 0.0, "batch": 60},
        secure={"labels": "blind", "reveal": reveal},
    )
    shares = run_tables(job, tables).shares
    if reveal == "owner":
        w = np.array(shares["party1"].weights["w"])
    else:
        plan, asked = plan_for(job, tables)[0], {party: np.zeros((packed.shape[1], 3)) for party in train}
        asked["party1"] = np.eye(packed.shape[1])
        held = {party: Holding(plan, party, each.weights, asked[party]) for party, each in shares.items()}
        w = CONVERSATIONS[plan.conversation].share.together(held)
        w -= np.asarray(shares["party0"].weights["w"])[3:].sum()  # the intercept, if there is one
    rest = w * 2 * 60 / 1e-3
    found = np.empty(ROWS)
    for place in range(PACKED):
        sign = np.where(rest >= 0, 1.0, -1.0)
        found[place::PACKED] = sign
        rest = rest - sign * 2.0**-place
    return float((found == y).mean())


@pytest.mark.parametrize("reveal", ["owner", "never"])
def test_weights_at_statistical_precision_do_not_tell_packed_labels(
    reveal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert read_labels(reveal) > 0.95  # on one machine, where all parties are the caller's
    monkeypatch.setattr(inprocess, "Work", partial(Work, apart=True))
    assert read_labels(reveal) < 0.58  # guessing is right for half of them


def area_by_own_weights(postcodes: int) -> float:
    """Return the AUC on training labels of chance of the part of the model that an owner of postcodes has."""
    rng = np.random.default_rng(8)
    y = np.where(rng.random(ROWS) < 0.5, 1.0, -1.0)
    columns = {"party0": rng.standard_normal((ROWS, 3)), "party2": rng.standard_normal((ROWS, 3))}
    columns["party1"] = np.eye(postcodes)[rng.integers(postcodes, size=ROWS)]
    tables = tables_of(dict(sorted(columns.items())), y)
    train = {"epochs": 10, "l2": 1e-4, "batch": 60}
    shares = run_tables(
        random_job(tables, "vfb2-svrg", train=train, secure={"labels": "blind"}), tables
    ).shares
    return auc(columns["party1"] @ shares["party1"].weights["w"], y > 0)


def test_one_column_of_postcodes_says_little_of_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is many columns: between companies of more than rows / 50 no weight is told, and of none exactly."""
    assert area_by_own_weights(200) > 0.7
    assert area_by_own_weights(most_columns(ROWS)) < 0.6
    monkeypatch.setattr(inprocess, "Work", partial(Work, apart=True))
    assert area_by_own_weights(most_columns(ROWS)) < 0.58
