"""The bench of defaults in small: every kind of problem is measured, and the table says who is behind."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from colonnade_bench.defaults import defaults
from colonnade_bench.defaults.measure import Quality
from colonnade_bench.defaults.problem import Frames, Sparse, folds
from colonnade_bench.defaults.strangers import STRANGERS


def test_files_python_and_pipeline_are_measured_on_the_same_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    lines = [f"{k % 2} 1:{k % 2 + rng.normal():.3f} {k % 3 + 2}:{rng.normal():.3f}\n" for k in range(80)]
    sparse = Sparse("sparse", lines[:60], lines[60:], companies=2)
    monkeypatch.setattr(defaults, "KNOWN", {"sparse": lambda root: iter([sparse]), "absent": _absent})
    monkeypatch.setattr(defaults, "STRANGERS", {name: STRANGERS[name] for name in ("30 rows", "counts")})
    said: list[str] = []
    written = defaults.run(True, tmp_path, said.append)
    found = json.loads(written[0].read_text())
    assert [each["name"] for each in found["sets"]] == ["sparse", "30 rows", "counts"]
    assert "absent: left out, nothing.csv is not there" in said
    for each in found["sets"]:
        assert each["converged"]
        assert each["run"]["loss"] == pytest.approx(each["python"]["loss"], rel=1e-3)
        assert each["run"]["loss"] == pytest.approx(each["pipeline"]["loss"], rel=0.2)
    assert "two classes: yes is positive" in found["printed"]["30 rows"]
    assert "| 30 rows |" in written[1].read_text()


def _absent(root: Path) -> list[Frames]:
    raise FileNotFoundError(2, "no such file", "nothing.csv")


def test_companies_hold_parts_of_the_rows_and_the_pipeline_gets_the_common_ones(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {"a": np.arange(500.0), "b": np.arange(500.0), "c": ["x", "y"] * 250, "y": [0, 1] * 250}
    )
    problem = next(islice(folds("made", frame, companies=3), 1))
    words, tests = problem.write(tmp_path)
    held = [set(pd.read_csv(path)["customer"]) for path in words[:3]]
    assert len(set.intersection(*held)) == len(problem.rows().y) < 400
    assert [len(pd.read_csv(path)) for path in tests["test_files"].values()] == [100, 100, 100]


def test_far_behind_is_not_near() -> None:
    best = Quality(0.3, 0.9, 0.95)
    assert defaults.near(Quality(0.302, 0.8, 0.9), best)  # the loss is as good
    assert defaults.near(Quality(0.4, 0.898, 0.948), best)
    assert not defaults.near(Quality(0.4, 0.898, 0.946), best)
    assert not defaults.near(Quality(0.4, 0.896, 0.96), best)
