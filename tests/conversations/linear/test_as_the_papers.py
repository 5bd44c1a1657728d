"""Batches drawn with replacement and estimators filled before the first step, as the papers write them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.oracles.tables import pooled, random_tables, run, weights

from colonnade.arrays import Floats, Rows
from colonnade.conversations.linear.timetable import INNER, Timetable
from colonnade.conversations.pacing.schedule import Schedule
from colonnade.errors import JobError

STEP, L2, BATCH, EPOCHS = 0.1, 1e-3, 16, 6
PAPERS: dict[str, Any] = {"sampling": "replacement", "start": "all-rows"}


def tables() -> Any:
    return random_tables(parties=3, active=1, rows=80, columns=6)


def draws(rows: int, epoch: int) -> list[Rows]:
    """The batches of an epoch, drawn anew."""
    schedule = Schedule(rows, BATCH, EPOCHS, 0, ("one",), replaced=True)
    per = schedule.per_epoch
    return [schedule.rows_of(schedule.round(number)) for number in range(epoch * per, (epoch + 1) * per)]


def naive(estimator: str, *, filled: bool) -> Floats:
    """The weights of a run on pooled columns, with a gradient kept for every row."""
    X, y = pooled(tables())
    n, w = len(y), np.zeros(X.shape[1])

    def gradients(w: Floats, rows: Rows) -> Floats:
        found: Floats = X[rows] * (-y[rows] / (1 + np.exp(y[rows] * (X[rows] @ w))))[:, None]
        return found

    table = gradients(w, np.arange(n)) if filled else np.zeros_like(X)
    for epoch in range(EPOCHS - filled if estimator == "saga" else EPOCHS):
        for rows in draws(n, epoch):
            new = gradients(w, rows)
            v = new.mean(axis=0)
            if estimator == "saga":
                v += table.mean(axis=0) - table[rows].mean(axis=0)
                table[rows] = new
            w = w - STEP * (v + L2 * w)
    return w


@pytest.mark.parametrize(("estimator", "filled"), [("sgd", False), ("saga", True)])
def test_a_run_equals_one_on_pooled_columns(estimator: str, filled: bool) -> None:
    train = {"step": STEP, "l2": L2, "batch": BATCH, "epochs": EPOCHS, "sampling": "replacement"}
    if filled:
        train["start"] = "all-rows"
    done = run(tables(), f"vfb-{estimator}", train=train, secure={"labels": "clear"})
    np.testing.assert_allclose(weights(done), naive(estimator, filled=filled), atol=1e-7)


@pytest.mark.parametrize("algorithm", ["vfb2-saga", "vfb2-svrg", "afsaga-vp", "asysqn-svrg", "fd-svrg"])
def test_every_linear_algorithm_of_the_papers_runs_so(algorithm: str) -> None:
    train = {"step": STEP, "batch": BATCH, "epochs": 12, "tolerance": 0.0, **PAPERS}
    two = random_tables(parties=3, active=2, rows=80, columns=6)
    found = run(two, algorithm, train=train, secure={"labels": "clear"}).result
    assert found.metrics["train_loss"] < 0.45


def test_rows_are_drawn_from_all_with_replacement() -> None:
    found = np.concatenate([np.concatenate(draws(1000, epoch)) for epoch in range(4)])
    seen = np.bincount(found, minlength=1000)
    assert len(found) == 4000
    assert seen.min() == 0, "some row is never drawn"
    assert seen.var() == pytest.approx(4, rel=0.2), "as often as a Poisson variable says"


@pytest.mark.parametrize("svrg", [True, False])
def test_a_look_at_all_rows_first_counts_as_a_pass(svrg: bool) -> None:
    plan = Timetable.of(7, 10, svrg=svrg, tune=False, pair_every=None, all_rows_first=True)
    assert plan.snapshots[0] == 0
    assert plan.passes(10 * plan.epochs) == 7
    if svrg:
        assert np.diff(plan.snapshots).tolist() == [INNER] * (len(plan.snapshots) - 1)


@pytest.mark.parametrize(
    ("algorithm", "train", "words"),
    [
        ("vfb2-saga", {"sampling": "replacement"}, "train.sampling = 'replacement': runs with blind labels"),
        ("vfb2-saga", {"start": "all-rows"}, "train.start = 'all-rows': runs with blind labels"),
        ("afsgd-vp", {"start": "all-rows"}, "plain SGD remembers nothing"),
        ("afsgd-vp", {"sampling": "replacement", "reshuffle": False}, "train.reshuffle"),
        ("fdskl-capped", {"sampling": "replacement"}, "keeps what it has of a row"),
    ],
)
def test_what_makes_no_sense_is_refused(algorithm: str, train: dict[str, Any], words: str) -> None:
    labels = {"labels": "blind"} if algorithm.startswith("vfb2") else {}
    with pytest.raises(JobError, match=words):
        run(tables(), algorithm, train=train, secure=labels)
