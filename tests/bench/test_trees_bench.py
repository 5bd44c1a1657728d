"""The bench of trees in small: every part gives a table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

from colonnade.data.table import Table
from colonnade_bench.trees import trees
from colonnade_bench.trees.accuracy import dense, most_filled
from colonnade_bench.trees.cost import made_up, ours
from colonnade_bench.trees.large import large


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
    clear, blind = (ours(made_up(5000, 8), way) for way in ("clear", "blind"))
    assert blind.megabytes > 1.5 * clear.megabytes > 0


@pytest.mark.slow
def test_memory_of_a_process_is_bounded_by_its_rows() -> None:
    few, many = large(50_000, "blind"), large(450_000, "blind")
    per_row = (many.largest - few.largest) * 1e9 / 400_000
    assert per_row < 400, "ten million rows would take more than 4 GB"


def test_every_part_is_in_some_piece() -> None:
    assert {piece.partition(":")[0] for piece in trees.pieces(quick=False)} == set(trees.PARTS)


def test_wide_tables_keep_the_columns_that_are_filled_most_often() -> None:
    X = csr_array(np.array([[0.0, 3.0, 1.0], [0.0, 2.0, 0.0], [5.0, 1.0, 4.0]]))
    table = Table("shop", ("a", "b", "c"), X)
    usual = most_filled(table, 2)
    assert usual.tolist() == [1, 2]
    kept = dense(table, usual)
    assert kept.columns == ("b", "c")
    np.testing.assert_array_equal(kept.X, [[3, 1], [2, 0], [1, 4]])
