"""Values that their owner declares missing: in every format, for all columns or for one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from colonnade.data.large.big_file import opened
from colonnade.data.read.dialect import Dialect, described
from colonnade.data.read.files import load
from colonnade.data.split.assign import assign
from colonnade.errors import DataError
from colonnade.job import Data

TEXT = "age,rent,town,since\n31,-999,Ulm,2020-01-31\n-999,700,none,9999-12-31\n45,99999999,Rom,2021-05-01\n"


def dialect(na_values: object) -> Dialect:
    return described(Data(na_values=na_values))  # type: ignore[arg-type]


def files(folder: Path) -> list[Path]:
    """Return the same table in every format with named columns."""
    csv, parquet, book = folder / "a.csv", folder / "a.parquet", folder / "a.xlsx"
    csv.write_text(TEXT)
    pa.parquet.write_table(pa.csv.read_csv(csv), parquet)
    openpyxl = pytest.importorskip("openpyxl")
    sheet = openpyxl.Workbook()
    for line in TEXT.splitlines():
        sheet.active.append([int(x) if x.lstrip("-").isdigit() else x for x in line.split(",")])
    sheet.save(book)
    return [csv, parquet, book]


def test_gaps_of_every_column(tmp_path: Path) -> None:
    for path in files(tmp_path):
        raw = load(path, dialect=dialect([-999, 99999999, "none", "9999-12-31"]))
        np.testing.assert_array_equal(raw.column("age"), [31, np.nan, 45])
        np.testing.assert_array_equal(raw.column("rent"), [np.nan, 700, np.nan])
        assert raw.column("town").tolist() == ["Ulm", "", "Rom"]
        assert np.isnan(raw.column("since")).tolist() == [False, True, False]


def test_gaps_of_one_column_leave_others_alone(tmp_path: Path) -> None:
    for path in files(tmp_path):
        raw = load(path, dialect=dialect({"rent": [-999, 99999999.0]}))
        np.testing.assert_array_equal(raw.column("rent"), [np.nan, 700, np.nan])
        np.testing.assert_array_equal(raw.column("age"), [31, -999, 45])


def test_a_number_is_a_gap_however_it_is_spelt(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('a;b\n"1.000,50";1\n"-999,00";2\n"2.000,25";3\n')
    raw = load(path, dialect=dialect([-999]))
    np.testing.assert_array_equal(raw.column("a"), [1000.5, np.nan, 2000.25])


def test_a_date_is_a_gap_however_it_is_written(tmp_path: Path) -> None:
    """A hint names dates as 9999-12-31; the file may say 12/31/9999."""
    path = tmp_path / "a.csv"
    for last in ("12/31/9999", "12/31/9999 00:00"):
        path.write_text(f"a,b\n01/31/2020,1\n{last},2\n05/30/2021,3\n")
        raw = load(path, dialect=dialect({"a": ["9999-12-31"]}))
        assert np.isnan(raw.column("a")).tolist() == [False, True, False], last
        assert raw.reading.dates == {"a": "mdy"}


def test_gaps_where_columns_are_read_in_stretches(tmp_path: Path) -> None:
    for path in files(tmp_path)[:2]:
        big = opened(path, tmp_path, dialect({"rent": -999}))
        (_, raw), *_ = big.stretches(big.wanted(), ["age", "rent"])
        np.testing.assert_array_equal(raw.column("rent"), [np.nan, 700, 99999999])
        np.testing.assert_array_equal(raw.column("age"), [31, -999, 45])


def test_what_is_declared_survives_what_is_found_out(tmp_path: Path) -> None:
    given = replace(dialect([-999]), separator=";")
    path = tmp_path / "a.csv"
    path.write_text("a;b\n-999;1\n2;3\n")
    assert np.isnan(load(path, dialect=given).column("a")).tolist() == [True, False]


def test_a_column_that_nobody_has_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("age,rent,y\n" + "".join(f"{k},{2 * k},{k % 2}\n" for k in range(20)))
    data = Data(train=str(path), label="y", parties=2, na_values={"rant": -999})
    with pytest.raises(DataError, match=r"data.na_values: no party has a column 'rant'; did you mean 'rent'"):
        assign(data, label_holders=("party-0",), task=None, intercept=True, seed=0)
