"""Columns of very many different texts are read in a time that grows with the rows, not with their square."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from colonnade.data.prepare.learn import widths
from colonnade.data.read.files import load
from colonnade.data.table import RawTable

LETTERS = "abcdefghijklmnopqrstuvwxyz"


@pytest.mark.timeout(60)  # squared it would take minutes
def test_a_column_of_a_hundred_thousand_names(tmp_path: Path) -> None:
    names = ["".join(letters) for letters, _ in zip(product(LETTERS, repeat=4), range(100_000), strict=False)]
    path = tmp_path / "people.csv"
    path.write_text("\n".join(["id,name", *(f"{k},{name}" for k, name in enumerate(names))]))
    assert load(path, id="id").column("name").tolist() == names


@pytest.mark.timeout(60)
def test_a_column_of_very_many_categories() -> None:
    codes = np.array([f"k{k}z" for k in [*range(60_000), *range(40_000), *range(30_000)]], dtype=object)
    raw = RawTable("people", ("code",), (codes,))
    assert widths(raw) == (40_001,)  # those that are there once are one
