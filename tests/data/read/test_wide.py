"""A first line of too many fields is refused before the parser sees it, which would end the process."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from colonnade.data.read.files import load
from colonnade.data.read.header import MOST_COLUMNS
from colonnade.errors import DataError


def test_too_many_columns_are_one_clear_line(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv.gz"
    header = ",".join(f"c{j}" for j in range(4 * MOST_COLUMNS))
    path.write_bytes(gzip.compress(f"{header}\n{'1,' * (4 * MOST_COLUMNS - 1)}1\n".encode()))
    with pytest.raises(DataError, match="first line has 400,000 fields, and at most 100,000 are read"):
        load(path)


def test_a_blank_line_above_hides_nothing_and_rows_do_not_count(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    path.write_text("\n" + "a," * MOST_COLUMNS + "b\n1\n")
    with pytest.raises(DataError, match="100,001 fields"):
        load(path)
    path.write_text("a,b\n" + "1,2\n" * (MOST_COLUMNS + 5))
    assert load(path).rows == MOST_COLUMNS + 5
