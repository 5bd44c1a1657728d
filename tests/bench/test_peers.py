"""Other programs run in environments of their own, and one that cannot be had is a row that says so."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from colonnade_bench.peers import peers, scripts
from colonnade_bench.peers.environments import Environment, NotInstalled


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Environment:
    """An environment that is this interpreter, as if it had been made before."""
    monkeypatch.setenv("COLONNADE_PEERS", str(tmp_path))
    found = Environment("scikit-learn", ("scikit-learn", "numpy"))
    found.python.parent.mkdir(parents=True)
    words = f'#!/bin/sh\nexec "{sys.executable}" "$@"\n'
    found.python.write_text(words)
    found.python.chmod(0o755)
    (found.folder / "ready").touch()
    return found


def test_a_program_is_asked_for_its_versions_and_runs_on_the_columns_it_is_given(
    here: Environment, tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 4)).astype(np.float32)
    y = (X[:, 0] > 0).astype(np.float32)
    for name, array in {"X": X, "y": y, "X_test": X[:50], "y_test": y[:50]}.items():
        np.save(tmp_path / f"{name}.npy", array)
    said: list[str] = []
    row = peers.rival("logistic", here, scripts.LOGISTIC, said.append, str(tmp_path))
    assert row[0] == "logistic"
    assert row[2] > 0
    assert row[3] >= 0.96
    assert f"numpy {np.__version__}" in row[4]


def test_a_program_that_cannot_be_had_is_a_row_that_says_why(
    here: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(NotInstalled, match="nothing of the kind"):
        here.run("raise SystemExit('nothing of the kind')")
    (here.folder / "ready").unlink()
    monkeypatch.setattr("sys.executable", "/bin/false")
    row = peers.rival("another", here, scripts.XGBOOST, lambda line: None)
    assert row[2:4] == [None, None]
    assert row[4].startswith("not here: scikit-learn: ")
