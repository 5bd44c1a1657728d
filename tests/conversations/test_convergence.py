"""A run ends when its loss stops falling, says so if it could not, and is an error where it went astray."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.oracles.tables import random_tables, run

from colonnade.conversations.convergence import Settling
from colonnade.errors import Diverged, JobError
from colonnade.run.federate import Tables

AUTO: dict[str, Any] = {"step": "auto", "batch": 8}


def noisy(**options: Any) -> Tables:
    """Tables whose labels no model gets right, so that the optimum is not far away."""
    tables = random_tables(parties=3, active=1, rows=300, columns=6, test_rows=50, **options)
    (holder,) = tables.active
    y = tables.train[holder].y
    assert y is not None
    y[np.random.default_rng(1).random(len(y)) < 0.3] *= -1
    return tables


@pytest.mark.parametrize("algorithm", ["vfb2-saga", "vfb-svrg", "afsaga-vp", "fd-svrg", "asysqn-saga"])
def test_a_run_ends_once_the_loss_stops_falling(algorithm: str) -> None:
    done = run(noisy(), algorithm, train={**AUTO, "epochs": 200}).result
    assert done.converged is True
    assert done.cost.epochs < 200
    assert done.metrics["suboptimality"] < 1e-3 * done.metrics["objective"]


def test_all_parties_know_that_it_converged() -> None:
    done = run(noisy(), "vfb2-saga", train={**AUTO, "epochs": 200})
    assert [share.converged for share in done.shares.values()] == [True, True, True]


def test_a_run_that_its_epochs_end_has_not_converged() -> None:
    done = run(noisy(), "vfb2-saga", train={**AUTO, "epochs": 3})
    assert done.result.cost.epochs == 3
    assert [share.converged for share in done.shares.values()] == [False, False, False]


@pytest.mark.parametrize("algorithm", ["vfb2-saga", "fd-svrg", "lbfgs"])
def test_without_a_tolerance_all_epochs_are_made_and_nobody_asks(algorithm: str) -> None:
    batch = None if algorithm == "lbfgs" else 8
    train = {"step": "auto", "batch": batch, "epochs": 7, "tolerance": 0.0}
    done = run(noisy(), algorithm, train=train)
    assert done.result.cost.epochs == 7
    assert done.result.converged is None


@pytest.mark.parametrize(
    ("epochs", "converged"), [(2, False), pytest.param(400, True, marks=pytest.mark.slow)]
)
def test_steps_that_fade_make_all_their_epochs(epochs: int, converged: bool) -> None:
    done = run(noisy(), "vfb2-sgd", train={**AUTO, "batch": 32, "l2": 0.1, "epochs": epochs}).result
    assert done.cost.epochs == epochs
    assert done.converged is converged


@pytest.mark.parametrize("algorithm", ["vfb2-sgd", "afsgd-vp"])
def test_a_run_that_ends_worse_than_it_began_is_an_error_with_advice(algorithm: str) -> None:
    with pytest.raises(Diverged, match=r"without any.*smaller step.*lbfgs") as caught:
        run(noisy(), algorithm, train={"step": 30.0, "epochs": 2})
    assert caught.value.exit_code == 2


def test_randomised_labels_may_end_worse_than_they_began() -> None:
    """That is no error, as the noise may have done it; but it is no optimum either."""
    private = {"mechanism": "labels", "epsilon": 0.01}
    done = run(noisy(), "vfb2-sgd", train={"step": 5.0, "epochs": 2}, privacy=private)
    assert done.result.converged is False


@pytest.mark.parametrize(
    ("train", "privacy", "words"),
    [
        ({"tolerance": 1e-3, "evaluate_every": 0}, {}, "nobody sees"),
        ({"tolerance": 1e-3}, {"mechanism": "labels", "epsilon": 1.0}, "tells something of the labels"),
        ({"tolerance": 1.0}, {}, "from 0 to below 1"),
    ],
)
def test_a_tolerance_that_cannot_be_watched_is_refused(
    train: dict[str, Any], privacy: dict[str, Any], words: str
) -> None:
    with pytest.raises(JobError, match=words):
        run(noisy(), "vfb2-saga", train=train, privacy=privacy)


def test_a_label_far_from_zero_is_no_reason_to_stop() -> None:
    seen = Settling(tolerance=1e-5, start=5e11)  # of labels near a million, before their mean is found
    falling = [8.0, 6.0, 5.0, 4.5, 4.2, 4.1]
    assert not any(seen.settled(loss, epoch) for epoch, loss in enumerate(falling, 1))
    assert any(seen.settled(4.1, epoch) for epoch in range(7, 11))
