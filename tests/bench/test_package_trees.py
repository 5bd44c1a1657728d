"""Trees on tables of statistics packages: folds count alike, and a table that is not here is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from colonnade_bench.defaults.measure import Quality
from colonnade_bench.defaults.problem import folds
from colonnade_bench.trees import packages


def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    y = np.where(X[:, 0] * X[:, 1] > 0, "yes", "no")
    return pd.DataFrame(X, columns=list("abcd")).assign(label=y)


def test_a_figure_is_the_mean_of_all_folds(monkeypatch: pytest.MonkeyPatch) -> None:
    problems = list(folds("small", frame(), label="label", kind="classes", companies=2))
    assert len(problems) == 5
    accuracy = {id(each): k / 10 for k, each in enumerate(problems)}
    for name in ("ours", "theirs"):
        monkeypatch.setattr(packages, name, lambda problem, *_: Quality(0.0, accuracy[id(problem)], 0.0))
    monkeypatch.setattr(packages, "by_file", lambda problem, _: Quality(0.0, 2 * accuracy[id(problem)], 0.0))
    assert [each.accuracy for each in packages.measured(problems)] == pytest.approx([0.4, 0.2, 0.2])


def test_by_file_and_from_python_trees_are_the_same() -> None:
    (problem, *_) = folds("small", frame(), label="label", kind="classes", companies=2)
    by_file, ours, theirs = packages.measured([problem])
    assert by_file.accuracy == pytest.approx(ours.accuracy, abs=0.06)
    assert by_file.auc > 0.8 < theirs.auc
    exact, _, _ = packages.measured([problem], {"bits": 0})
    assert exact.loss != by_file.loss


def test_a_table_that_is_not_here_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[Any]
) -> None:
    monkeypatch.setenv("COLONNADE_DATA", str(tmp_path))
    monkeypatch.setattr("sys.argv", ["packages", "--only", "ames"])
    packages.main()
    told = capsys.readouterr()
    assert "ames is left out: there is no" in told.err
    assert "0 of 0 are" in told.out
