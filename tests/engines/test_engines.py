"""Whoever computes inside a party, and with however many workers: the outcome is the same to the last bit."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import numpy as np
import pytest
from tests.oracles.tables import random_tables, run, weights

from colonnade.arrays import Floats
from colonnade.engines.engine import INLINE, engine_of
from colonnade.engines.processes import Processes
from colonnade.errors import EngineError
from colonnade.job import EngineTerms
from colonnade.models.linear import SHARD

ROWS = 3 * SHARD + 100


@pytest.fixture(scope="module", params=[1, 3])
def engine(request: pytest.FixtureRequest) -> Iterator[Processes]:
    with engine_of(EngineTerms(kind="processes", workers=request.param)) as started:
        assert isinstance(started, Processes)
        yield started


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("classes", [(), (3,)])
def test_scores_and_gradients_are_those_of_one_process(
    engine: Processes, classes: tuple[int, ...], dtype: type
) -> None:
    rng = np.random.default_rng(0)
    X: Floats = rng.standard_normal((ROWS, 7)).astype(dtype)
    w, order = rng.standard_normal((7, *classes)), rng.permutation(ROWS)
    for here, there in ((INLINE.rows(X), engine.rows(X)), (INLINE.rows(X, order), engine.rows(X, order))):
        for start, end in ((0, ROWS), (100, 200), (SHARD - 50, 2 * SHARD + 70), (5, 5)):
            theta = rng.standard_normal((end - start, *classes))
            np.testing.assert_array_equal(there.scores(start, end, w), here.scores(start, end, w))
            np.testing.assert_array_equal(there.gradient(start, end, theta), here.gradient(start, end, theta))


def test_shards_add_up_to_the_product() -> None:
    rng = np.random.default_rng(1)
    X, theta = rng.standard_normal((ROWS, 5)), rng.standard_normal(ROWS)
    np.testing.assert_allclose(INLINE.rows(X).gradient(0, ROWS, theta), X.T @ theta, rtol=1e-11)


def test_a_worker_that_dies_is_replaced(engine: Processes) -> None:
    X, w = np.random.default_rng(2).standard_normal((ROWS, 4)), np.ones(4)
    rows = engine.rows(X)
    before = rows.scores(0, ROWS, w)
    os.kill(engine._crew[0].pid, signal.SIGKILL)
    np.testing.assert_array_equal(rows.scores(0, ROWS, w), before)


def test_a_task_that_no_worker_survives_is_an_error_that_says_so() -> None:
    with engine_of(EngineTerms(kind="processes", workers=1)) as engine:
        rows = engine.rows(np.ones((ROWS, 4)))
        with pytest.raises(EngineError, match="worker 0 ended 3 times"):
            rows.scores(0, ROWS, np.ones(5))  # four columns and five weights


@pytest.mark.parametrize("algorithm", ["vfb2-svrg", "lbfgs"])
def test_a_run_has_the_same_weights(algorithm: str) -> None:
    tables = random_tables(parties=2, active=1, rows=2 * SHARD + 10, columns=4)
    train = (
        {"batch": None, "step": "auto", "epochs": 3}
        if algorithm == "lbfgs"
        else {"epochs": 3, "batch": SHARD}
    )
    runs = [
        run(tables, algorithm, train=train, engine={"kind": kind, "workers": 2}, compare=False)
        for kind in ("inline", "processes")
    ]
    np.testing.assert_array_equal(weights(runs[0]), weights(runs[1]))
