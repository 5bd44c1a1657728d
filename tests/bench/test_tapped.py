"""What crosses is counted beside what was declared, and anything beyond ends the bench."""

from __future__ import annotations

from typing import Any

import pytest
from tests.oracles.tables import random_tables

from colonnade.errors import UndeclaredOpening
from colonnade.openings.opening import Opening
from colonnade_bench.micro import openings
from colonnade_bench.tapping import allowed, declared


def test_a_line_says_how_much_of_what_was_declared_crossed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        openings,
        "credit",
        lambda parties, rows: random_tables(parties=parties, active=1, rows=rows, test_rows=rows // 4),
    )
    job = {"algorithm": "vfb2-sgd", "secure": {"labels": "blind"}, "train": {"epochs": 5, "tolerance": 0.0}}
    line = openings.tapped_line("vfb2-sgd", job, 200).split(" | ")
    most, found = float(line[1]), float(line[2])
    assert 0.75 * most < found <= most

    def fewer(plan: Any, data: Any) -> list[Opening]:
        return [each for each in declared(plan, data) if each.kind != "scores"]

    monkeypatch.setattr(openings, "declared", fewer)
    assert allowed([]) == {}
    with pytest.raises(UndeclaredOpening, match="crossed and declared"):
        openings.tapped_line("vfb2-sgd", job, 200)
