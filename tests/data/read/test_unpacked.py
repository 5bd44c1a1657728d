"""Packed files that unpack to far more than a table would be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.data.test_table import PACKERS

from colonnade.data.large.csv_to_parquet import as_parquet
from colonnade.data.read import unpacked
from colonnade.data.read.files import AS_FOUND, load
from colonnade.errors import DataError

PACKED = [ending for ending in PACKERS if ending]
BOMB = b"a,b\n" + b"0,0\n" * 2**19  # of two megabytes, which gzip packs into two kilobytes


def packed(folder: Path, ending: str, content: bytes, name: str = "table.csv") -> Path:
    path = folder / f"{name}{ending}"
    with PACKERS[ending](path, "wb") as stream:
        stream.write(content)
    return path


@pytest.mark.parametrize("ending", PACKED)
@pytest.mark.parametrize("large", [False, True])
def test_a_small_file_does_not_fill_the_memory(
    tmp_path: Path, ending: str, large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = packed(tmp_path, ending, BOMB)

    def read() -> object:
        return as_parquet(path, tmp_path / "kept", AS_FOUND) if large else load(path)

    assert load(path).rows == 2**19  # as much as any file may unpack to
    monkeypatch.setattr(unpacked, "ANYWAY", 2**20)
    with pytest.raises(DataError, match=rf"csv\{ending}: unpacks to more than 1,048,576 bytes, 400 times"):
        read()


@pytest.mark.parametrize("ending", PACKED)
def test_a_table_is_read_to_its_end(tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacked, "ANYWAY", 2**10)
    X = np.random.default_rng(0).normal(size=(2000, 3)).round(3)
    text = "a,b,c\n" + "".join(f"{x},{y},{z}\n" for x, y, z in X.tolist())
    assert load(packed(tmp_path, ending, text.encode())).rows == 2000
    rows = "".join(f"1 1:{x} 2:{y} 3:{z}\n" for x, y, z in X.tolist()).encode()
    assert load(packed(tmp_path, ending, rows, "rows.libsvm")).rows == 2000
