"""Quasi-Newton steps on data that H knows badly end no worse than they were at their best."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partialmethod
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from tests.oracles.tables import random_tables, run

from colonnade.conversations.linear.quasi_newton.caution import Caution, Watch
from colonnade.conversations.linear.quasi_newton.heavy_columns import hidden_curvature


def test_weights_go_back_to_those_of_the_best_mark_and_steps_become_shorter() -> None:
    w = np.zeros(2)
    caution = Caution(w.copy())
    w += 1.0
    caution.mark(10, w)
    assert not caution.heed(10.0, w)
    w += 5.0
    caution.mark(20, w)
    assert caution.heed(-10.0, w)
    np.testing.assert_array_equal(w, [1.0, 1.0])
    found = [caution.factor]
    for word in (30.0, 40.0, 50.0, 60.0, -60.0, 70.0, -70.0, 80.0):
        caution.heed(word, w)
        found.append(caution.factor)
    assert found == [0.125, 0.25, 0.5, 1.0, 1.0, 0.125, 0.125, 0.0, 0.0]


def test_where_h_adds_nothing_any_more_weights_go_back_in_the_end_alone() -> None:
    """First order jumps by its noise: to go back each time would undo what it learns between two marks."""
    w = np.zeros(1)
    caution = Caution(w.copy())
    for word in (-1.0, -1.0, -1.0):
        assert caution.heed(word, w)
    assert caution.factor == 0.0
    w += 3.0
    assert not caution.heed(-1.0, w)
    assert w == 3.0
    assert caution.heed(-1.0, w, final=True)
    assert w == 0.0


@pytest.mark.parametrize(("algorithm", "goes_back"), [("vfb2-sgd", False), ("vfb2-saga", True)])
def test_plain_sgd_goes_back_from_jumps_alone(
    algorithm: str, goes_back: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its losses rise by noise to the end, with a good H as well; other estimators have no such noise."""
    told: list[float] = []
    said = Watch.said

    def heard(self: Watch) -> float:
        told.append(said(self))
        return told[-1]

    monkeypatch.setattr(Watch, "said", heard)
    losses = iter([0.5, 0.4, *(0.41 + 0.001 * k for k in range(100))])
    monkeypatch.setattr(Watch, "measured", partialmethod(_measured, losses, Watch.measured))
    train = {"direction": "lbfgs", "epochs": 8, "tolerance": 0.0}
    run(random_tables(parties=2, active=1), algorithm, train=train)
    assert any(word < 0 for word in told) == goes_back


def _measured(
    self: Watch, losses: Iterator[float], measured: Callable[[Watch, int, float], None], mark: int, _: float
) -> None:
    """Let the watch see losses that rise a little, pass for pass."""
    measured(self, mark, next(losses))


def test_two_marks_before_a_word_is_heard_go_back_to_the_better_one() -> None:
    watch, caution, w = Watch(), Caution(np.zeros(1)), np.zeros(1)
    for mark, loss in ((10, 0.5), (20, 0.4), (30, 0.9)):
        w += 1.0
        caution.mark(mark, w)
        watch.measured(mark, loss)
    assert caution.heed(watch.said(), w)
    np.testing.assert_array_equal(w, [2.0])


def test_within_a_pass_a_jump_counts_and_noise_does_not() -> None:
    watch = Watch(patience=8)
    watch.measured(2, 0.5)
    assert watch.said() == 2.0
    watch.measured(4, 0.51)
    assert watch.said() == 0.0
    watch.measured(6, 0.6)
    assert watch.said() == -2.0
    watch.measured(10, 0.51)
    assert watch.said() == -2.0


def test_a_run_ends_with_the_weights_of_its_best_mark() -> None:
    tables = random_tables(parties=2, active=1, rows=60, columns=4)
    train: dict[str, Any] = {"direction": "lbfgs", "step": 4.0, "batch": 10, "epochs": 5, "tolerance": 0.0}
    done = run(tables, "vfb2-sgd", train=train, direction={"step": 0.4})
    losses = [moment.loss for moment in done.result.history]
    assert losses[-1] == min(losses), losses
    assert len(set(losses)) < len(losses), "the best was not the last"


def test_heavy_columns_are_the_same_dense_and_sparse() -> None:
    X = np.random.default_rng(0).standard_normal((50, 3))
    X[49, 1] = 500.0
    sample = np.arange(40)
    dense = hidden_curvature(X, sample, 8, 0.25)
    np.testing.assert_allclose(hidden_curvature(csr_array(X), sample, 8, 0.25), dense)
    assert dense[1] >= 0.25 * 500.0**2 / 8
    assert dense[[0, 2]].tolist() == [0.0, 0.0]


def test_a_few_rows_far_away_do_not_throw_a_quasi_newton_run_off() -> None:
    tables = random_tables(parties=2, active=1, rows=3000, columns=4)
    tables.train["party1"].X[:, 0] *= 0.01
    tables.train["party1"].X[-3:, 0] = 200.0
    train: dict[str, Any] = {"step": "auto", "batch": 30, "epochs": 6}
    plain, newton = (
        run(tables, "vfb2-svrg", train={**train, "direction": direction}).result.metrics["objective"]
        for direction in ("plain", "lbfgs")
    )
    assert newton <= plain
