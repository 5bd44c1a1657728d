"""SVRG and SAGA, federated: synchronous, they are the pooled algorithms; with delays they still get there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.oracles.sgd import BOUNDED_LOSSES, objective
from tests.oracles.tables import pooled, random_tables, run, weights
from tests.oracles.variance_reduced import Problem, pooled_saga, pooled_svrg

from colonnade.losses import LOSSES
from colonnade.regularizers import REGULARIZERS
from colonnade.run.federate import Finished, Tables

ORACLES = {"vfb-saga": pooled_saga, "vfb-svrg": pooled_svrg, "fd-svrg": pooled_svrg}
SLOW = {"latency_ms": 5, "bandwidth_mbps": 20, "speeds": [1, 1, 0.3, 1]}


def problem_of(setting: Tables, done: Finished) -> Problem:
    X, y = pooled(setting)
    train = done.job.train
    classes = (train.classes,) if train.classes else ()
    return Problem(
        X,
        y,
        LOSSES[train.loss or ""],
        REGULARIZERS[train.regularizer],
        l2=train.l2_for(len(y)),
        step=float(train.step),
        batch=done.plan.pace.batch,
        seed=done.job.seed,
        classes=classes,
    )


def assert_equals_pooled(setting: Tables, done: Finished) -> None:
    w = ORACLES[done.job.algorithm](problem_of(setting, done), done.job.train.epochs)
    assert np.abs(w).max() > 0.1
    np.testing.assert_allclose(weights(done), w, atol=1e-6)
    assert done.result.cost.epochs == done.job.train.epochs


def gap(setting: Tables, done: Finished) -> float:
    """Sub-optimality from the weights themselves: what is reported has been through fixed point."""
    X, y = pooled(setting)
    train = done.job.train
    loss, regularizer = LOSSES[train.loss or ""], REGULARIZERS[train.regularizer]
    value = objective(X, y, weights(done), loss, regularizer, train.l2_for(len(y)))
    return value - done.result.pooled["objective"]


# -- synchronous: federated == pooled ---------------------------------------------------------------


@pytest.mark.parametrize("world", ["simulated", "local"])
@pytest.mark.parametrize("parties", [1, 2, 5])
@pytest.mark.parametrize("algorithm", sorted(ORACLES))
def test_a_synchronous_run_equals_the_pooled_algorithm_for_any_number_of_parties(
    algorithm: str, parties: int, world: str
) -> None:
    setting = random_tables(parties=parties, active=min(parties, 3))
    assert_equals_pooled(setting, run(setting, algorithm, world=world, train={"epochs": 7}))


@pytest.mark.parametrize("epochs", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("algorithm", sorted(ORACLES))
def test_a_synchronous_run_equals_the_pooled_algorithm_for_any_number_of_passes(
    algorithm: str, epochs: int
) -> None:
    setting = random_tables(rows=50, columns=6)
    assert_equals_pooled(setting, run(setting, algorithm, train={"epochs": epochs, "batch": 7}))


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("regularizer", sorted(REGULARIZERS))
@pytest.mark.parametrize("loss", sorted(BOUNDED_LOSSES))
@pytest.mark.parametrize("algorithm", sorted(ORACLES))
def test_a_synchronous_run_equals_the_pooled_algorithm_for_any_objective(
    algorithm: str, loss: str, regularizer: str, sparse: bool
) -> None:
    classes = 3 if loss == "softmax" else None
    setting = random_tables(rows=80, sparse=sparse, regression=loss == "squared", classes=classes)
    train = {"loss": loss, "regularizer": regularizer, "l2": 0.05, "epochs": 5, "classes": classes}
    done = run(setting, algorithm, train=train)
    assert_equals_pooled(setting, done)
    if classes:
        assert {share.weights["w"].shape for share in done.shares.values()} == {(3, 3)}


@pytest.mark.parametrize("secure", ["masked", "tree", "plain"])
@pytest.mark.parametrize("algorithm", sorted(ORACLES))
def test_a_synchronous_run_equals_the_pooled_algorithm_with_every_sum(algorithm: str, secure: str) -> None:
    setting = random_tables(classes=3)
    train = {"epochs": 5, "loss": "softmax", "classes": 3}
    assert_equals_pooled(setting, run(setting, algorithm, secure={"sum": secure}, train=train))


@pytest.mark.parametrize("algorithm", sorted(ORACLES))
def test_the_network_s_speed_does_not_change_synchronous_weights(algorithm: str) -> None:
    setting = random_tables()
    slow, fast = (
        weights(run(setting, algorithm, network=net, train={"epochs": 5, "step": "auto"}))
        for net in (SLOW, {})
    )
    np.testing.assert_array_equal(slow, fast)


# -- where they end -----------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["vfb-saga", "vfb-svrg", "vfb2-saga", "vfb2-svrg", "fd-svrg"])
def test_a_constant_step_takes_saga_and_svrg_to_the_optimum_and_sgd_not(algorithm: str) -> None:
    setting = random_tables(rows=200)
    train = {"epochs": 60, "l2": 0.1, "step": 0.2, "batch": 20, "evaluate_every": 0}
    done, sgd = (run(setting, name, train=train) for name in (algorithm, "vfb-sgd"))
    assert abs(gap(setting, done)) < 1e-10
    assert gap(setting, sgd) > 1e-5
    assert abs(done.result.metrics["suboptimality"] - gap(setting, done)) < 1e-9


@pytest.mark.parametrize("algorithm", ["vfb-saga", "vfb2-saga", "vfb2-svrg", "afsaga-vp", "afsvrg-vp"])
def test_squared_loss_ends_at_the_closed_form_of_ridge(algorithm: str) -> None:
    setting = random_tables(rows=200, regression=True)
    X, y = pooled(setting)
    train = {"loss": "squared", "l2": 0.1, "epochs": 60, "step": "auto", "batch": 40, "evaluate_every": 0}
    done = run(setting, algorithm, network=SLOW, train=train)
    exact = np.linalg.solve(X.T @ X / 200 + 0.1 * np.eye(12), X.T @ y / 200)
    np.testing.assert_allclose(weights(done), exact, atol=1e-5)


@pytest.mark.parametrize("ahead", [1, 4, 8])
@pytest.mark.parametrize("algorithm", ["vfb2-saga", "vfb2-svrg"])
def test_with_delays_and_a_straggler_the_automatic_step_still_gets_there(algorithm: str, ahead: int) -> None:
    setting = random_tables(rows=400)
    train = {"ahead": ahead, "step": "auto", "epochs": 60, "l2": 0.02, "batch": 40, "evaluate_every": 0}
    done = run(setting, algorithm, network=SLOW, train=train)
    assert abs(gap(setting, done)) < 1e-6
    assert done.result.staleness.max <= 2 * (ahead - 1)
    assert (done.result.staleness.max > 0) is (ahead > 1)


def with_rare_labels(rows: int = 6_000) -> Tables:
    """Columns that are never negative, and a label that one row in ten has: far from where weights begin."""
    rng = np.random.default_rng(0)
    setting = random_tables(rows=rows, active=3)
    X = {party: np.abs(table.X) for party, table in setting.train.items()}
    z = sum(block.sum(axis=1) for block in X.values()) + 3 * rng.standard_normal(rows)
    y = np.where(z > np.quantile(z, 0.9), 1.0, -1.0)
    train = {
        party: replace(table, X=X[party], y=None if table.y is None else y)
        for party, table in setting.train.items()
    }
    return replace(setting, train=train)


@pytest.mark.parametrize("speed", [1.0, 0.4])
def test_saga_is_not_led_astray_by_what_it_remembers_of_its_first_batches(speed: float) -> None:
    """They were met again as the same batches, and the loss rose where the second pass began."""
    setting = with_rare_labels()
    train = {"step": "auto", "stale": 0, "epochs": 2, "batch": 32, "evaluate_every": 0.05, "tolerance": 0.0}
    network = {"speeds": [1, 1, 1, speed], "us_per_call": 200.0}
    done = run(setting, "vfb2-saga", network=network, train=train, secure={"labels": "clear"})
    losses = [moment.loss for moment in done.result.history]
    assert max(losses[20:]) < max(losses[10:20]), "differences to what is remembered are less noisy than SGD"


@pytest.mark.parametrize("algorithm", ["vfb2-sgd", "vfb2-saga", "vfb2-svrg"])
def test_several_classes_come_out_as_on_pooled_data(algorithm: str) -> None:
    setting = random_tables(rows=400, classes=4, test_rows=200)
    train = {"step": "auto", "epochs": 40, "l2": 0.02, "loss": "softmax", "classes": 4, "batch": 40}
    done = run(setting, algorithm, network=SLOW, train=train)
    assert abs(gap(setting, done)) < (1e-3 if algorithm == "vfb2-sgd" else 1e-5)
    ours, theirs = done.result.metrics["test_accuracy"], done.result.pooled["test_accuracy"]
    assert abs(ours - theirs) <= 0.01
    assert theirs > 0.8


@pytest.mark.parametrize("algorithm", ["vfb2-saga", "vfb2-svrg"])
def test_the_same_seed_gives_the_same_weights_and_the_same_bytes(algorithm: str) -> None:
    setting = random_tables()
    sections: dict[str, Any] = {
        "network": {**SLOW, "faults": {"drop": 0.05, "delay": 0.1, "delay_s": 0.02}},
        "train": {"ahead": 5, "step": "auto", "epochs": 5},
    }
    first, second = (run(setting, algorithm, seed=3, **sections) for _ in range(2))
    np.testing.assert_array_equal(weights(first), weights(second))
    assert first.result.cost.bytes_by_pair == second.result.cost.bytes_by_pair
    assert first.result.cost.virtual_seconds == second.result.cost.virtual_seconds


# -- what a pass costs ----------------------------------------------------------------------------------


def test_saga_sends_what_sgd_sends_and_a_snapshot_of_svrg_no_more_than_a_pass() -> None:
    setting = random_tables(parties=4, active=2)
    sent = {
        name: run(setting, name, train={"epochs": 8}).result.cost.bytes_sent
        for name in ("vfb-sgd", "vfb-saga", "vfb-svrg")
    }
    assert sent["vfb-saga"] == sent["vfb-sgd"]
    assert sent["vfb-svrg"] < sent["vfb-sgd"]


@pytest.mark.parametrize("secure", ["masked", "tree", "plain"])
@pytest.mark.parametrize("seed", range(4))
def test_a_target_ends_svrg_at_all_parties_wherever_its_snapshots_are(seed: int, secure: str) -> None:
    setting = random_tables(rows=100, seed=seed)
    done = run(
        setting,
        "vfb2-svrg",
        seed=seed,
        secure={"sum": secure},
        network={**SLOW, "faults": {"delay": 0.2, "delay_s": 0.03}},
        train={
            "ahead": 1 + 2 * seed,
            "step": "auto",
            "epochs": 80,
            "l2": 0.05,
            "target": 10.0 ** -(seed + 1),
        },
    )
    assert done.result.metrics["suboptimality"] <= 10.0 ** -(seed + 1)
    assert done.result.cost.epochs < 80
    assert {share.rounds for share in done.shares.values()} == {done.result.cost.rounds}
    assert len({share.updates for share in done.shares.values()}) == 1
