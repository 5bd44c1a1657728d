"""The example's files are what the tutorial says of them, and never overwrite anything."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from colonnade.errors import DataError
from colonnade.example import write_example


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_two_files_share_customers_and_only_the_bank_has_the_label(tmp_path: Path) -> None:
    bank, shop = map(rows, write_example(tmp_path / "new"))
    shared = {row["customer"] for row in bank} & {row["customer"] for row in shop}
    assert 1000 < len(shared) < min(len(bank), len(shop))
    assert "default" in bank[0]
    assert "default" not in shop[0]
    assert 0.08 < sum(row["default"] == "yes" for row in bank) / len(bank) < 0.4
    assert any(row["income"] == "" for row in bank)


def test_a_file_that_is_there_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "shop.csv").write_text("mine")
    with pytest.raises(DataError, match="not overwritten"):
        write_example(tmp_path)
    assert not (tmp_path / "bank.csv").exists()
    assert (tmp_path / "shop.csv").read_text() == "mine"
