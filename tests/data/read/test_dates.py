"""Dates as people write them become days; ids, amounts, seasons and versions do not."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from colonnade import VerticalClassifier, split_columns
from colonnade.data.prepare.prepare import Preparation
from colonnade.data.read.dates import compact_dates, date_pattern, days_of
from colonnade.data.read.dialect import Dialect
from colonnade.data.read.files import load
from colonnade.data.read.recognise import recognise
from colonnade.errors import DataError

START = date(1998, 11, 5)
DAYS = [START + timedelta(days=97 * k) for k in range(60)]  # 1998 to 2014
NUMBERS = [(day - date(1970, 1, 1)).days for day in DAYS]


@pytest.mark.parametrize(
    ("style", "pattern"),
    [
        ("%d/%m/%y", "dmy"),
        ("%m/%d/%y", "mdy"),
        ("%d.%m.%y", "dmy"),
        ("%d-%m-%y", "dmy"),
        ("%y-%m-%d", "ymd"),
        ("%d-%b-%y", "dby"),
        ("%b %d, %y", "bdy"),
        ("%d/%m/%Y", "dmy"),
        ("%Y/%m/%d", "ymd"),
        ("%Y-%b-%d", "ybd"),
        ("%d.%m.%Y %H:%M", "dmy"),
        ("%Y-%m-%d %H:%M:%S UTC", "ymd"),
        ("%Y-%m-%dT%H:%M:%S+00:00", "ymd"),
    ],
)
def test_every_writing_gives_the_same_days(style: str, pattern: str) -> None:
    texts = [day.strftime(style) for day in DAYS]
    found = recognise("born", texts, Dialect(decimal="."))
    assert found.date is not None
    assert found.date.split(":")[0] == pattern
    assert found.values.tolist() == NUMBERS


@pytest.mark.parametrize(
    "style", ["%Y-%m", "%Y/%m", "%m/%Y", "%b %Y", "%B %Y", "%b-%Y", "%Y-%b"], ids=lambda style: style
)
def test_months_are_their_first_days(style: str) -> None:
    found = recognise("month", [day.strftime(style) for day in DAYS], Dialect(decimal="."))
    firsts = [(day.replace(day=1) - date(1970, 1, 1)).days for day in DAYS]
    assert found.values.tolist() == firsts


def test_quarters_are_their_first_days() -> None:
    assert date_pattern(["2019-Q4", "2020-Q1"]) == date_pattern(["2019Q4"]) == "yq"
    assert days_of("2020Q3", "yq") == (date(2020, 7, 1) - date(1970, 1, 1)).days
    assert days_of("Q1 1970", "qy") == 0


@pytest.mark.parametrize(
    ("years", "first", "last"),
    [
        ((45, 60, 99, 2), 1945, 2002),  # births
        ((18, 19, 20), 2018, 2020),
        ((25, 35, 48), 2025, 2048),  # loans that end
        ((98, 99, 0, 1, 12), 1998, 2012),
        ((72,), 1972, 1972),
    ],
)
def test_years_of_two_digits_lie_together(years: tuple[int, ...], first: int, last: int) -> None:
    pattern = date_pattern([f"13/{4 + k:02}/{year:02}" for k, year in enumerate(years)])
    assert pattern is not None
    found = [1970 + days_of(f"13/06/{year:02}", pattern) / 365.25 for year in years]
    assert int(min(found)) == first
    assert int(max(found)) == last


def test_zones_are_brought_to_one_time() -> None:
    early, late = days_of("2020-04-13 10:00+02:00", "ymd"), days_of("2020-04-13 10:00 -0530", "ymd")
    assert late - early == pytest.approx(7.5 / 24)
    assert days_of("2020-04-13T08:00:00Z", "ymd") == early
    assert np.isnan(days_of("2020-04-13 25:00", "ymd"))


@pytest.mark.parametrize(
    "texts",
    [
        ["2008-09", "2009-10", "2010-11", "2011-12"],  # seasons
        ["1.2.30", "4.15.10"],  # versions
        ["12-345-67", "10-222-33"],
        ["1200-05", "4410-11"],  # article numbers
        ["20-25", "25-30"],  # ages
        ["3/4", "5/8"],
        ["Mayer 2001", "Junker 1999", "Oto 2001"],
    ],
)
def test_what_only_looks_like_a_date_stays_text(texts: list[str]) -> None:
    assert recognise("code", texts * 10, Dialect(decimal=".")).values.dtype == object


@pytest.mark.parametrize("texts", [["01/02/20", "03/04/20"], ["20-04-13", "13-04-20"]])
def test_dates_that_can_be_read_in_two_ways_are_not_guessed(texts: list[str]) -> None:
    assert date_pattern(texts) == "?"
    warned = recognise("born", texts * 30, Dialect(decimal=".")).warned
    assert warned is not None
    assert "cannot be told apart" in warned


def test_numbers_of_eight_digits_are_dates_only_where_nearly_all_are() -> None:
    dates = np.array([float(f"{day:%Y%m%d}") for day in DAYS])
    found = compact_dates(dates)
    assert found is not None
    assert found.days.tolist() == NUMBERS
    rng = np.random.default_rng(0)
    assert compact_dates(rng.integers(19000101, 21001231, 60).astype(float)) is None  # ids
    assert compact_dates(np.arange(20200001.0, 20200061.0)) is None  # numbers that begin with their year
    assert compact_dates(np.array([20200413.0] * 60)) is None  # one amount
    assert compact_dates(dates * 10.0) is None
    assert compact_dates(dates + 0.5) is None
    with_odd = compact_dates(np.append(dates, [99999999, 0, np.nan]))
    assert with_odd is not None
    assert with_odd.odd.tolist() == [False] * 60 + [True, True, False]
    assert np.isnan(with_odd.days[60:]).all()


def _file(folder: Path, name: str, values: list[str]) -> Path:
    path = folder / name
    path.write_text("\n".join(["when,x", *(f"{value},{k % 7}" for k, value in enumerate(values))]) + "\n")
    return path


def test_compact_dates_in_a_file_become_days_and_odd_ones_are_told(tmp_path: Path) -> None:
    texts = [f"{day:%Y%m%d}" for day in DAYS]
    raw = load(_file(tmp_path, "a.csv", [*texts, "99999999", ""]))
    assert raw.reading.dates == {"when": "compact"}
    assert raw.column("when").tolist()[:60] == NUMBERS
    assert any("'when' has dates and, in 1 row, '99999999'" in each for each in raw.reading.warned)
    raw = load(_file(tmp_path, "b.csv", [*texts, "unknown"]))
    assert raw.reading.dates == {"when": "compact"}
    assert load(_file(tmp_path, "c.csv", texts), categorical=["when"]).column("when")[0] == "19981105"


def test_words_and_days_that_do_not_exist_are_gaps_among_many_dates(tmp_path: Path) -> None:
    texts = [f"{day:%d.%m.%Y}" for day in DAYS]
    raw = load(_file(tmp_path, "a.csv", [*texts, "unknown", "unknown"]))
    assert np.isnan(raw.column("when")[60:].astype(float)).all()
    assert "'when' has dates and, in 2 rows, 'unknown'" in raw.reading.warned[0]
    raw = load(_file(tmp_path, "b.csv", [*texts, "31.02.2001"]))
    assert "'when' has dates and, in 1 row, '31.02.2001'" in raw.reading.warned[0]


@pytest.mark.parametrize("style", ["%Y%m%d", "%d/%m/%y"])
def test_new_rows_are_read_with_the_dates_of_training(style: str, tmp_path: Path) -> None:
    train = load(_file(tmp_path, "a.csv", [day.strftime(style) for day in DAYS]))
    learnt = Preparation.fit(train, scale="none")
    new = ["20070705", "20070706"] if style == "%Y%m%d" else ["05/07/07", "06/07/07"]
    path = _file(tmp_path, "new.csv", new)
    raw = load(path, dialect=Dialect(dates=learnt.dates))
    alone = [(date(2007, 7, day) - date(1970, 1, 1)).days for day in (5, 6)]
    assert learnt.transform(raw).X[:, 0].tolist() == alone
    if style == "%Y%m%d":  # two numbers alone could be anything
        with pytest.raises(DataError, match="'when' has numbers, and training had dates"):
            learnt.transform(load(path))


def test_numbers_of_training_stay_numbers_in_new_rows(tmp_path: Path) -> None:
    train = load(_file(tmp_path, "a.csv", [str(20200101 + 37 * k) for k in range(60)]))
    learnt = Preparation.fit(train, scale="none")
    path = _file(tmp_path, "new.csv", ["20200101", "20200102", "20200103"])
    assert learnt.transform(load(path, dialect=Dialect(dates=learnt.dates))).X[0, 0] == 20200101
    with pytest.raises(DataError, match="'when' has dates, and training had numbers"):
        learnt.transform(load(path))


def test_one_new_row_of_a_frame_is_read_as_the_training_rows_were() -> None:
    pd = pytest.importorskip("pandas")
    late = np.array(NUMBERS) > np.median(NUMBERS)
    frame = pd.DataFrame(
        {
            "when": [int(f"{day:%Y%m%d}") for day in DAYS],
            "seen": [day.strftime("%d/%m/%y") for day in DAYS],
            "x": np.arange(60) % 7,
        }
    )
    model = VerticalClassifier(parties=2).fit(frame, late)
    together = model.predict_proba(frame)
    alone = np.vstack([model.predict_proba(frame.iloc[[k]]) for k in range(60)])
    assert np.allclose(together, alone)
    parties = split_columns(frame, late, parties=2)
    assert split_columns(frame.iloc[[1]], like=parties).dates == parties.dates


def test_times_with_a_zone_in_a_file(tmp_path: Path) -> None:
    moments = [datetime(2020, 1, 1, 12) + timedelta(hours=31 * k) for k in range(40)]
    texts = [f"{moment:%Y-%m-%d %H:%M:%S}{'+02:00' if k % 2 else 'Z'}" for k, moment in enumerate(moments)]
    raw = load(_file(tmp_path, "a.csv", texts))
    assert raw.column("when").dtype == float
    assert raw.column("when")[1] - raw.column("when")[0] == pytest.approx((31 - 2) / 24)
