"""The privacy rows of the czofo bench, on a small data set that comes with scikit-learn."""

from __future__ import annotations

from pathlib import Path

import pytest

from colonnade_bench.czofo import privacy as czofo_privacy
from colonnade_bench.czofo.privacy import HEADS, privacy_rows
from colonnade_bench.czofo.records import records
from colonnade_bench.czofo.steps import NOISY, noisy


def test_every_row_has_its_epsilon_and_only_exact_deltas_the_papers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settings = {
        "train": {"epochs": 2, "batch": 50, "step": 0.05, "evaluate_every": 0},
        "cascade": {"directions": 5},
        "model": {"outputs": 4, "server": {"kind": "linear"}},
    }
    monkeypatch.setitem(czofo_privacy.SETTINGS, "digits", settings)
    monkeypatch.setitem(NOISY, "digits", {4.0: noisy(0.05, 2, 200)})
    said: list[str] = []
    rows = privacy_rows(
        "digits", lambda cases: records(cases, tmp_path, said.append), epsilons=(4.0,), rows=400
    )
    assert [row[:3] for row in rows] == [
        ["vafl", "none", None],
        ["czofo-coord", "none", None],
        ["czofo", "none", None],
        ["vafl-dp", "gradient", 4.0],
        ["vafl", "labels", 4.0],
        ["czofo", "labels", 4.0],
    ]
    assert len(said) == 2 * len(rows)
    assert all(len(row) == len(HEADS) for row in rows)
    spent = [row[3] for row in rows]
    assert spent[:3] == [None, None, None]
    assert spent[4:] == [4.0, 4.0]
    assert 3 < spent[3] <= 4.0 + 1e-3
    assert all(0 < row[5] <= 100 for row in rows)
    claimed = [row[6] for row in rows]
    assert claimed[2] > 0
    assert [*claimed[:2], *claimed[3:]] == [None] * 5
