"""Whoever computes inside a party, and with however many workers: the outcome is the same to the last bit."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Literal

import numpy as np
import pytest
from tests.oracles.tables import random_tables, run, weights

from colonnade.arrays import Floats
from colonnade.engines import processes
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


def test_a_worker_that_dies_is_replaced_and_the_log_says_so(
    engine: Processes, caplog: pytest.LogCaptureFixture
) -> None:
    X, w = np.random.default_rng(2).standard_normal((ROWS, 4)), np.ones(4)
    rows = engine.rows(X)
    before = rows.scores(0, ROWS, w)
    os.kill(engine._crew[0].pid, signal.SIGKILL)
    np.testing.assert_array_equal(rows.scores(0, ROWS, w), before)
    assert [each.getMessage() for each in caplog.records] == [
        "worker 0 ended with status -9; another one does its task again"
    ]


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


def test_histograms_are_those_of_one_process(engine: Processes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "WORTHWHILE", 100)
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 8, (3, 400)).astype(np.uint8)
    starts, rows = np.array([0, 8, 16], dtype=np.int32), rng.permutation(400)[:300]
    slot = np.repeat(np.array([0, 24], dtype=np.int32), 150)
    words = rng.integers(0, 2**64, 300, dtype=np.uint64)
    found = engine.sums(codes, starts, rows, slot, words, 48)
    np.testing.assert_array_equal(found, INLINE.sums(codes, starts, rows, slot, words, 48))
    assert int(found[:8].sum()) % 2**64 == sum(words[:150].tolist()) % 2**64


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["mpi", "ray"])
def test_workers_that_hold_their_shards_compute_the_same(kind: Literal["mpi", "ray"]) -> None:
    needed = {"mpi": "mpi4py", "ray": "ray"}[kind]
    if importlib.util.find_spec(needed) is None:
        pytest.skip(f"{needed} is not installed (extra {kind})")
    # a process of its own: MPI and Ray change the process that starts them for good
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM, kind], capture_output=True, text=True, timeout=120, check=False
    )
    assert found.returncode == 0, found.stderr[-2000:]
    assert found.stdout.split() == ["same"] * 8


PROGRAM = """
import sys
import numpy as np
from colonnade.engines import processes
from colonnade.engines.engine import INLINE, engine_of
from colonnade.job import EngineTerms
from colonnade.models.linear import SHARD
rng, n = np.random.default_rng(0), 3 * SHARD + 100
X, order = rng.standard_normal((n, 7)), rng.permutation(n)
terms = EngineTerms(kind=sys.argv[1], workers=2)
with engine_of(terms) as one, engine_of(terms) as other:  # as two parties of one process have them
    for here, there in ((INLINE.rows(X), one.rows(X)), (INLINE.rows(X, order), other.rows(X, order))):
        for start, end in ((0, n), (SHARD - 50, 2 * SHARD + 70)):
            w, theta = rng.standard_normal((7, 2)), rng.standard_normal((end - start, 2))
            for verb, values in (("scores", w), ("gradient", theta)):
                mine, theirs = (getattr(rows, verb)(start, end, values) for rows in (here, there))
                print("same" if np.array_equal(mine, theirs) else abs(mine - theirs).max())
    del there
"""
