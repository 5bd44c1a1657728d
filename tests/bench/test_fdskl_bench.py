"""The bench of FDSKL: what a split measures is what its tables say, and they are written as it goes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from colonnade_bench.common import Bench
from colonnade_bench.kernel.fdskl import Splits
from colonnade_bench.kernel.runs import job_for, pooled_rows, tables_of, train_federated


def test_splits_are_counted_compared_and_written(tmp_path: Path) -> None:
    splits, bench = Splits(), Bench("fdskl", "kernels", quick=True)
    said: list[str] = []
    bench.grids += splits.tables()
    for seed in range(2):  # the first also trains dsg and svc
        splits.trial("breast-cancer", seed, said.append)
        written = splits.write(bench, tmp_path)
    found = splits.errors["breast-cancer"]
    assert {kind: len(errors) for kind, errors in found.items()} == {
        "fdskl": 2, "fdskl-capped": 2, "linear": 2, "dsg": 1, "dsg, capped": 1, "svc": 1
    }  # fmt: skip
    assert all(error < 0.1 for errors in found.values() for error in errors)
    figure, table = bench.grids
    spread = [edge(found[algorithm]) for algorithm in ("fdskl", "fdskl-capped") for edge in (min, max)]
    means = [np.mean(each) for each in found.values()]
    assert figure.rows == [["breast-cancer", *means, *spread, 2]]
    assert [row[:2] for row in table.rows] == [["breast-cancer", "fdskl"], ["breast-cancer", "fdskl-capped"]]
    assert table.rows[0][3] == pytest.approx(np.median(splits.seconds["breast-cancer"]["fdskl"]))
    assert table.rows[0][-2:] == [None, None]
    assert json.loads(written[0].read_text())["errors"]["breast-cancer"]["fdskl"] == found["fdskl"]
    assert len(said) == 4


def test_a_run_s_error_is_that_of_its_shares_on_the_test_rows() -> None:
    tables = tables_of("breast-cancer", 3, parties=3)
    _, y, X_test, y_test = pooled_rows(tables)
    assert len(y_test) == pytest.approx((len(y) + len(y_test)) / 4, abs=1)
    done = train_federated(job_for(tables, "fdskl-capped", 3, kernel={"features": 512}), tables)
    scores = np.zeros(len(y_test))
    for owner in tables.active:
        shares = done.run.shares.values()
        omega = np.vstack([share.weights[f"omega.{owner}"] for share in shares])
        b = np.sum([share.weights[f"b.{owner}"] for share in shares], axis=0)
        scores += np.sqrt(2) * np.cos(X_test @ omega + b) @ done.run.shares[owner].weights["alpha"]
    assert np.mean((scores >= 0) != (y_test > 0)) == pytest.approx(done.error)
    assert done.seconds > 0
    assert done.processor > 0


def test_digits_are_learnt_with_default_settings() -> None:
    """Odd against even: a linear model is wrong on 7 to 10 rows of a hundred."""
    tables = tables_of("digits-odd", 0)
    assert train_federated(job_for(tables, "fdskl-capped", 0), tables).error <= 0.012
    assert train_federated(job_for(tables, "fdskl", 0), tables).error <= 0.03
