"""Every gradient estimator is the pooled algorithm, in clear and blind alike, and so is one that is added."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.oracles.tables import pooled, random_tables, run, weights
from tests.oracles.variance_reduced import ORACLES, Problem, svrg_passes

from colonnade.arrays import Floats, Rows
from colonnade.conversations.linear.block import Block
from colonnade.conversations.pacing.schedule import Schedule
from colonnade.errors import JobError
from colonnade.losses import LOSSES
from colonnade.optim.estimators import ESTIMATORS, Coefficients, Estimator, Sgd
from colonnade.regularizers import REGULARIZERS, Penalty
from colonnade.run.federate import Tables

L2, STEP, BATCH, PASSES, BOUND = 0.01, 0.1, 16, 6, 0.05
CLASSES: dict[str, dict[str, Any]] = {"logistic": {}, "softmax": {"classes": 3}}


def trained(setting: Tables, estimator: str, labels: str, loss: str) -> Floats:
    """The weights of all parties of a run."""
    train = {"epochs": PASSES, "l2": L2, "step": STEP, "batch": BATCH, "estimator": estimator, "loss": loss}
    return weights(
        run(setting, "vfb-sgd", train={**train, **CLASSES[loss], "tolerance": 0.0}, secure={"labels": labels})
    )


def problem_of(setting: Tables, loss: str) -> Problem:
    classes = (3,) if loss == "softmax" else ()
    X, y = pooled(setting)
    return Problem(X, y, LOSSES[loss], REGULARIZERS["l2"], L2, STEP, BATCH, seed=0, classes=classes)


@pytest.mark.parametrize("loss", CLASSES)
@pytest.mark.parametrize("labels", ["clear", "blind"])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_clear_and_blind_runs_are_the_pooled_algorithm(name: str, labels: str, loss: str) -> None:
    setting = random_tables(parties=3, rows=150, **CLASSES[loss])
    expected = ORACLES[name](problem_of(setting, loss), PASSES)
    assert np.abs(expected).max() > 0.1
    np.testing.assert_allclose(trained(setting, name, labels, loss), expected, atol=2e-5)


# -- estimators that are none of the table's ----------------------------------------------------------


class CappedSaga(Estimator):
    """Remembers every theta as it is, and steps on no difference that is larger than a bound."""

    fades = False
    remembers = True

    def coefficients(self, rows: Rows, theta: Floats) -> Coefficients:
        change = theta - self.memory.theta[rows]
        return Coefficients(np.clip(change, -BOUND, BOUND), along=self.memory.unseen <= 0, change=change)


class FreshSaga(Estimator):
    """Remembers the theta of every batch, and all of them anew at every snapshot."""

    fades = False
    snapshots = remembers = True

    def coefficients(self, rows: Rows, theta: Floats) -> Coefficients:
        change = theta - self.memory.theta[rows]
        return Coefficients(change, along=self.memory.unseen <= 0, change=change)


def pooled_capped(problem: Problem, passes: int) -> Floats:
    w, table = problem.start(), np.zeros(len(problem.y))
    for epoch in range(passes):
        for rows in problem.batches(epoch):
            theta = problem.loss.dz(problem.X[rows] @ w, problem.y[rows])
            v = problem.X[rows].T @ np.clip(theta - table[rows], -BOUND, BOUND) / len(rows)
            v += problem.X.T @ table / len(table) if epoch else 0.0
            table[rows] = theta
            w = w - problem.step * (v + problem.penalty(w))
    return w


def pooled_fresh(problem: Problem, passes: int) -> Floats:
    w, table, epoch = problem.start(), np.zeros(len(problem.y)), 0
    for what in svrg_passes(passes):
        if what == "snapshot":
            table = problem.loss.dz(problem.X @ w, problem.y)
            continue
        for rows in problem.batches(epoch):
            theta = problem.loss.dz(problem.X[rows] @ w, problem.y[rows])
            v = problem.X[rows].T @ (theta - table[rows]) / len(rows)
            v += problem.X.T @ table / len(table) if epoch else 0.0
            table[rows] = theta
            w = w - problem.step * (v + problem.penalty(w))
        epoch += 1
    return w


@pytest.mark.parametrize("labels", ["clear", "blind"])
@pytest.mark.parametrize(("kind", "oracle"), [(CappedSaga, pooled_capped), (FreshSaga, pooled_fresh)])
def test_one_that_is_added_is_the_same_in_clear_and_blind(
    monkeypatch: pytest.MonkeyPatch,
    kind: type[Estimator],
    oracle: Callable[[Problem, int], Floats],
    labels: str,
) -> None:
    monkeypatch.setitem(ESTIMATORS, "added", kind)
    setting = random_tables(parties=3, rows=150)
    problem = problem_of(setting, "logistic")
    expected = oracle(problem, PASSES)
    assert np.abs(expected - ORACLES["saga"](replace(problem), PASSES)).max() > 1e-3
    np.testing.assert_allclose(trained(setting, "added", labels, "logistic"), expected, atol=2e-5)


def test_one_that_there_is_not_is_refused_by_name() -> None:
    setting = random_tables(parties=3)
    for algorithm in ("vfb2-sgd", "afsgd-vp"):
        with pytest.raises(JobError, match=r"^train\.estimator: there is no 'sagga'; did you mean 'saga'\?$"):
            run(setting, algorithm, train={"estimator": "sagga"})


def test_one_that_remembers_and_does_not_say_so_is_refused() -> None:
    class Silent(CappedSaga):
        remembers = False

        def coefficients(self, rows: Rows, theta: Floats) -> Coefficients:
            return Coefficients(theta, change=theta)

    schedule = Schedule(4, 4, 1, 0, ("a",))
    block = Block(np.eye(4), schedule, Silent(4, (4,)), Penalty(REGULARIZERS["l2"], 0.0))
    with pytest.raises(TypeError, match="Silent says that it remembers nothing"):
        block.step([(schedule.round(0), np.ones(4))], 0.1)


def test_one_derived_from_plain_sgd_is_asked_for_its_coefficients() -> None:
    class Halved(Sgd):
        def coefficients(self, rows: Rows, theta: Floats) -> Coefficients:
            return Coefficients(theta / 2)

    schedule = Schedule(4, 4, 1, 0, ("a",))
    for kind, step in ((Sgd, -0.1), (Halved, -0.05)):
        block = Block(np.eye(4), schedule, kind(4, (4,)), Penalty(REGULARIZERS["l2"], 0.0))
        block.step([(schedule.round(0), np.full(4, 4.0))], 0.1)
        np.testing.assert_allclose(block.w, step)
