"""Ids of a file that somebody wants scores for: read however they are written, row by row."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from colonnade.data.read.files import load_ids
from colonnade.errors import DataError


def test_ids_are_found_in_files_of_any_dialect_and_stay_in_their_rows(tmp_path: Path) -> None:
    path = tmp_path / "new.csv"
    path.write_bytes("Kunde;Größe;Betrag\n007;1,5;1.000,50\n8;2,5;3,00\n007;9,9;1,00\n".encode("cp1252"))
    (ids,) = load_ids(path, ["Kunde"])
    assert ids.tolist() == ["007", "8", "007"]  # also where one is there twice


def test_several_columns_are_an_id_together(tmp_path: Path) -> None:
    path = tmp_path / "new.parquet"
    pa.parquet.write_table(pa.table({"a": [1.0, 2.0], "b": ["x", "y"]}), path)
    assert [part.tolist() for part in load_ids(path, ["a", "b"])] == [["1", "2"], ["x", "y"]]


def test_rows_without_an_id_are_counted_and_named(tmp_path: Path) -> None:
    path = tmp_path / "new.csv"
    path.write_text("id,x\n1,2\n,3\n,4\n")
    with pytest.raises(DataError, match=r"new.csv: 2 rows without an id, first row 2"):
        load_ids(path, ["id"])
    (tmp_path / "new.svm").write_text("1 1:2\n")
    with pytest.raises(DataError, match="its columns have no names"):
        load_ids(tmp_path / "new.svm", ["id"])
