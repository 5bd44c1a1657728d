"""The bench of trees in small: every part gives a table."""

from __future__ import annotations

from pathlib import Path

import pytest

from colonnade_bench.trees import trees
from colonnade_bench.trees.cost import made_up, per_tree


def test_trees_are_compared_on_the_same_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trees, "SETS", {"breast-cancer": "test_auc", "diabetes": "r2"})
    said: list[str] = []
    written = trees.run(True, tmp_path, said.append, only=("accuracy",))
    assert "breast-cancer" in written[1].read_text()
    for line in said:
        numbers = [float(cell) for cell in line.split()[2:] if cell != "-"]
        assert max(numbers) - min(numbers) < 0.2
        assert numbers[0] == numbers[-1]  # federated and pooled


def test_blind_trees_send_more_than_clear_ones() -> None:
    clear, blind = (per_tree(made_up(5000, 8), way, 1) for way in ("clear", "blind"))
    assert blind.megabytes > 1.5 * clear.megabytes > 0
