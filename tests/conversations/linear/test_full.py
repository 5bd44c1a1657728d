"""L-BFGS on all rows reaches the pooled optimum on any data, and its loss falls with every step."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles.tables import pooled, random_tables, run, weights

from colonnade.conversations.linear.parties import clear_full
from colonnade.conversations.linear.parties.full_evaluator import LineSearcher
from colonnade.data.table import INTERCEPT
from colonnade.errors import JobError
from colonnade.run.federate import Finished, Tables

FULL: dict[str, Any] = {"batch": None, "step": "auto", "epochs": 300, "l2": 0.01}


def fit(tables: Tables, **train: Any) -> Finished:
    return run(tables, "lbfgs", train={**FULL, **train})


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("options", [{}, {"regression": True}, {"classes": 3}])
def test_it_is_at_the_pooled_optimum(options: dict[str, Any], sparse: bool) -> None:
    tables = random_tables(sparse=sparse, test_rows=40, **options)
    loss = {"regression": "squared", "classes": "softmax"}.get(next(iter(options), ""), "logistic")
    more = {"classes": 3} if "classes" in options else {}
    done = fit(tables, loss=loss, **more).result
    assert done.converged
    assert abs(done.metrics["suboptimality"]) < 1e-4 * done.metrics["objective"]


def test_ridge_regression_equals_its_closed_form() -> None:
    tables = random_tables(regression=True)
    X, y = pooled(tables)
    done = fit(tables, loss="squared", tolerance=1e-12)
    exact = np.linalg.solve(X.T @ X / len(y) + 0.01 * np.eye(X.shape[1]), X.T @ y / len(y))
    np.testing.assert_allclose(weights(done), exact, atol=1e-6)


def scaled(tables: Tables, factors: np.ndarray) -> Tables:
    """The tables with every column times a factor."""
    start, train = 0, {}
    for party, table in tables.train.items():
        train[party] = replace(table, X=table.X * factors[start : start + table.width])
        start += table.width
    return replace(tables, train=train, test=None)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 1000), rows=st.integers(5, 60), spread=st.floats(0.0, 1.5))
def test_the_loss_falls_with_every_step_whatever_the_columns(seed: int, rows: int, spread: float) -> None:
    rng = np.random.default_rng(seed)
    tables = random_tables(parties=2, active=1, rows=rows, columns=5, seed=seed)
    done = fit(scaled(tables, 10.0 ** rng.uniform(-spread, spread, 5)), l2="auto").result
    losses = [moment.loss for moment in done.history]
    assert all(after <= before + 1e-9 for before, after in itertools.pairwise(losses))
    assert losses[-1] <= np.log(2) + 1e-9


@pytest.mark.parametrize("seed", range(20))
def test_a_run_that_nobody_ends_stays_in_the_range_and_ends_at_the_last_digit(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """With noise on the labels nobody asks whether the loss still falls: steps go on to the rounding."""
    keys = "colonnade.conversations.gates.secrets.token_bytes"
    monkeypatch.setattr(keys, lambda size: bytes([seed]) * size)  # the same noise whenever this is run
    tables = random_tables(parties=3, active=1, rows=30, columns=6, seed=seed)
    l2 = (0.0, 1e-4, "auto")[seed % 3]
    noise: dict[str, Any] = {"mechanism": "labels", "epsilon": 0.5 if seed % 2 else 8.0}
    done = run(tables, "lbfgs", train={**FULL, "l2": l2}, privacy=noise, compare=False)
    losses = [moment.loss for moment in done.result.history]
    assert len(losses) < 60
    assert all(after <= before + 1e-12 for before, after in itertools.pairwise(losses[:-1]))
    assert losses[-1] == pytest.approx(losses[-2], abs=1e-9)  # measured by itself, to the fixed-point step


def test_gradients_that_grow_out_of_the_range_are_summed_shorter() -> None:
    tables = random_tables(parties=2, active=1, rows=200, columns=6, regression=True)
    wide = scaled(tables, np.array([1e-4, 3e4, 1.0, 1e-2, 1e4, 2e4]))  # products of gradients are 1e17
    done = fit(wide, loss="squared", l2=0.0, tolerance=0)
    X, y = pooled(wide)
    left = y - X @ weights(done)
    assert np.mean(left**2) < 1.001 * np.mean(
        (y - X[:, [1, 4, 5]] @ np.linalg.lstsq(X[:, [1, 4, 5]], y)[0]) ** 2
    )


@pytest.mark.parametrize("seed", [21, 26, 53])
def test_a_step_that_leads_to_the_optimum_is_the_last(seed: int) -> None:
    """As many steps as columns end at the optimum of a quadratic; of the gradient only rounding is left."""
    tables = random_tables(parties=2, active=1, rows=3, columns=2, seed=seed, regression=True)
    done = fit(tables, loss="squared", l2="auto").result
    assert done.converged
    assert abs(done.metrics["suboptimality"]) < 1e-9


def test_a_column_with_a_few_rows_far_away_does_no_harm() -> None:
    tables = random_tables(parties=2, active=1, rows=400, columns=4)
    tables.train["party1"].X[:3, 0] *= 300
    done = fit(tables).result
    assert done.converged
    assert done.metrics["suboptimality"] < 1e-5


def test_labels_of_any_size_can_be_learnt() -> None:
    tables = random_tables(regression=True, active=1)
    y = tables.train["party0"].y
    assert y is not None
    y *= 1e7
    done = fit(tables, loss="squared").result
    assert done.metrics["suboptimality"] < 1e-4 * done.metrics["objective"]


@pytest.mark.parametrize("far", [0.0, 300.0, 10_000.0])
def test_the_loss_of_a_target_far_from_zero_is_known_as_well_as_any(far: float) -> None:
    tables = random_tables(regression=True, active=1)
    table = tables.train["party0"]
    assert table.y is not None
    ones = np.ones((table.rows, 1))
    tables.train["party0"] = replace(
        table, columns=(*table.columns, INTERCEPT), X=np.hstack([table.X, ones]), y=table.y + far
    )
    done = fit(tables, loss="squared", tolerance=1e-9).result
    assert abs(done.metrics["suboptimality"]) < 1e-6 * done.metrics["objective"]
    losses = [moment.loss for moment in done.history[:-1]]
    assert losses == sorted(losses, reverse=True)


def correlated(seed: int = 0) -> Tables:
    """Three parties whose columns go together and differ in size, rows enough to see it."""
    tables = random_tables(rows=400, columns=24, seed=seed)
    rng = np.random.default_rng(seed)
    train = {
        party: replace(
            table, X=table.X @ (np.ones((table.width,) * 2) + 0.3 * rng.random((table.width,) * 2))
        )
        for party, table in tables.train.items()
    }
    return replace(tables, train=train, test=None)


def steps_to(done: Finished, gap: float) -> int:
    """How many steps it took to a loss so near the pooled optimum, as a part of it."""
    optimum = done.result.metrics["objective"] - done.result.metrics["suboptimality"]
    return next(moment.epoch for moment in done.result.history if moment.loss <= (1 + gap) * optimum)


def without_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let one party be of version 0.2, which says nothing in the first sum."""
    begin = LineSearcher.begin
    monkeypatch.setattr(LineSearcher, "begin", lambda searcher, knowing: begin(searcher, knowing - 1))


def test_first_matrices_of_the_parties_own_save_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    own = fit(correlated(), l2=1e-4)
    without_one(monkeypatch)
    plain = fit(correlated(), l2=1e-4)
    assert steps_to(own, 1e-3) < steps_to(plain, 1e-3)
    assert own.result.metrics["objective"] < 1.0001 * plain.result.metrics["objective"]


def test_nobody_has_a_first_matrix_where_one_party_is_of_version_0_2(monkeypatch: pytest.MonkeyPatch) -> None:
    without_one(monkeypatch)
    seen = []
    monkeypatch.setattr(clear_full, "first_matrix", lambda *given: seen.append(given))
    done = fit(random_tables())
    assert done.result.converged
    assert not seen


def test_a_run_is_repeatable_to_the_bit() -> None:
    first, second = fit(random_tables()), fit(random_tables())
    assert np.array_equal(weights(first), weights(second))
    assert first.result.history[-1].virtual_seconds == second.result.history[-1].virtual_seconds


def test_a_penalty_of_auto_is_one_over_the_rows() -> None:
    done = fit(random_tables(rows=80), l2="auto")
    assert done.plan.objective.l2 == 1 / 80


@pytest.mark.parametrize(
    "train", [{"batch": 10}, {"step": 0.1}, {"regularizer": "nonconvex"}, {"l1": 0.1}, {"estimator": "saga"}]
)
def test_what_it_does_not_take_is_refused_by_name(train: dict[str, Any]) -> None:
    with pytest.raises(JobError, match=f"train.{next(iter(train))}"):
        fit(random_tables(), **train)
