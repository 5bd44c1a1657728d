"""Files as people write them: each of them trains as it is, or an error says all that is wrong with it."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from colonnade.errors import DataError
from colonnade.job import job_from
from colonnade.result import Result
from colonnade.run.federate import federate

ROWS = 120
RNG = np.random.default_rng(0)
INCOME = 1000 + RNG.integers(0, 4000, ROWS) + 0.5
VISITS = RNG.integers(0, 9, ROWS)
LABEL = (INCOME / 1000 + VISITS > 6.5).astype(int)
TOWN = np.array(["Köln", "Ulm", "Rom"])[RNG.integers(0, 3, ROWS)]

Table = dict[str, list[Any]]
Files = dict[str, bytes]


def bank(**more: Any) -> Table:
    return {
        "id": [f"c{k}" for k in range(ROWS)],
        "income": list(INCOME),
        "town": list(TOWN),
        "y": list(LABEL),
    } | more


def shop(**more: Any) -> Table:
    return {"id": [f"c{k}" for k in range(ROWS)], "visits": list(VISITS)} | more


def written(table: Table, separator: str = ",", encoding: str = "utf-8", end: str = "\n") -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=separator, lineterminator=end)
    writer.writerow(table)
    writer.writerows(zip(*table.values(), strict=True))
    return text.getvalue().encode(encoding)


def german(value: float) -> str:
    return f"{value:,.2f}".replace(",", " ").replace(".", ",").replace(" ", ".")


def excel(
    table: Table, *, before: Sequence[Sequence[Any]] = (), above: Sequence[Sequence[Any]] = ()
) -> bytes:
    openpyxl = pytest.importorskip("openpyxl", reason="Excel files need the extra 'excel'")
    book, packed = openpyxl.Workbook(), io.BytesIO()
    for cells in before:
        book.active.append(cells)
    sheet = book.create_sheet("rows") if before else book.active
    for cells in (*above, list(table)):
        sheet.append(cells)
    for row in zip(*table.values(), strict=True):
        sheet.append([value.item() if isinstance(value, np.generic) else value for value in row])
    book.save(packed)
    return packed.getvalue()


def parquet(table: Table) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    packed = io.BytesIO()
    pq.write_table(pa.table(table), packed)
    return packed.getvalue()


def gaps(values: list[Any], word: Any, every: int = 10) -> list[Any]:
    return [word if k % every == 3 else value for k, value in enumerate(values)]


def days(style: str) -> list[str]:
    dates = np.datetime64("1990-01-01") + 37 * np.arange(ROWS)
    return [d.astype(object).strftime(style) for d in dates]


def run(folder: Path, files: Files, **data: Any) -> Result:
    paths = {}
    for name, content in files.items():
        path = folder / name
        path.write_bytes(content)
        paths[name.split(".")[0]] = str(path)
    plain = {"files": paths, "id": "id", "label": "y", "active": ["bank"], **data}
    job = {"algorithm": "vfb2-svrg", "compare": False, "train": {"epochs": 6}, "data": plain}
    return federate(job_from(job)).result


def said(result: Result) -> str:
    every = [text for party in result.data.done.values() for text in party]
    return " | ".join([*every, *result.data.warnings])


def money(negative: Callable[[float], str]) -> Files:
    """A column that is needed to know the label, half of it negative numbers in an unusual form."""
    net = [v - 3000 for v in INCOME]
    return {"bank.csv": written(bank(income=[negative(v) if v < 0 else f"{v:,.2f}" for v in net]))}


CALM = "1 number column scaled"  # it was read as numbers
SHOP = {"shop.csv": written(shop())}
KINDS: dict[str, tuple[Callable[[], Files], str]] = {
    "semicolons": (lambda: {"bank.csv": written(bank(), ";")}, "separated by semicolons"),
    "tabs": (lambda: {"bank.csv": written(bank(), "\t")}, "separated by tabs"),
    "bars": (lambda: {"bank.csv": written(bank(), "|")}, "separated by bars"),
    "decimal commas and thousands": (
        lambda: {"bank.csv": written(bank(income=[german(v) for v in INCOME]), ";")},
        "decimal comma",
    ),
    "Latin-1": (lambda: {"bank.csv": written(bank(), encoding="latin-1")}, "encoding is cp1252"),
    "UTF-16": (lambda: {"bank.csv": written(bank(), encoding="utf-16")}, "encoding is utf-16"),
    "byte order mark": (lambda: {"bank.csv": written(bank(), encoding="utf-8-sig")}, "town (3)"),
    "Windows line ends": (lambda: {"bank.csv": written(bank(), end="\r\n")}, "town (3)"),
    "Excel": (lambda: {"bank.xlsx": excel(bank())}, "town (3)"),
    "gaps in many words": (
        lambda: {"bank.csv": written(bank(income=gaps(gaps(list(INCOME), "NA"), "?", 11)))},
        "filled with the mean and marked",
    ),
    "gaps in text": (lambda: {"bank.csv": written(bank(town=gaps(list(TOWN), "-")))}, "town (4)"),
    "blanks around": (lambda: {"bank.csv": written(bank(town=[f" {t} " for t in TOWN]))}, "town (3)"),
    "currency": (
        lambda: {"bank.csv": written(bank(income=[f"$ {v:,.2f}" for v in INCOME]))},
        "$ was taken off",
    ),
    "per cent": (
        lambda: {"bank.csv": written(bank(rate=[f"{v / 100:.1f}%" for v in INCOME]))},
        "% was taken",
    ),
    "ISO dates": (lambda: {"bank.csv": written(bank(born=days("%Y-%m-%d")))}, "'born': dates became days"),
    "German dates": (lambda: {"bank.csv": written(bank(born=days("%d.%m.%Y")))}, "'born': dates became days"),
    "American dates": (lambda: {"bank.csv": written(bank(born=days("%m/%d/%Y")))}, "'born': dates became"),
    "ambiguous dates": (
        lambda: {"bank.csv": written(bank(born=["01/02/2020", "03/04/2021"] * (ROWS // 2)))},
        "day and month cannot be told apart",
    ),
    "ambiguous dates that all differ": (
        lambda: {"bank.csv": written(bank(born=[f"{k % 12 + 1}/{k // 12 + 1}/2020" for k in range(ROWS)]))},
        "column 'born' is left out: as text it has 96 different values",
    ),
    "text labels": (
        lambda: {"bank.csv": written(bank(y=["yes" if v else "no" for v in LABEL]))},
        "yes is positive, no is not",
    ),
    "missing labels": (
        lambda: {"bank.csv": written(bank(y=gaps(list(LABEL), "")))},
        "12 rows left out: no label",
    ),
    "rows twice": (
        lambda: {"bank.csv": written({c: [*v, v[0], v[1]] for c, v in bank().items()})},
        "2 rows left out: the same row twice",
    ),
    "rows without an id": (
        lambda: {"bank.csv": written(bank(id=gaps([f"c{k}" for k in range(ROWS)], "")))},
        "12 rows left out: no id",
    ),
    "partial overlap": (
        lambda: {"bank.csv": written({c: v[:100] for c, v in bank().items()})},
        "20 rows left out: an id that not all parties have",
    ),
    "constant column": (
        lambda: {"bank.csv": written(bank(x=["a"] * ROWS, z=[7] * ROWS))},
        "2 constant columns left",
    ),
    "names": (
        lambda: {"bank.csv": written(bank(name=[f"Ada {k}" for k in range(ROWS)]))},
        "has 96 different texts in 96 rows, like an id or free text: it is left out; to keep it as "
        'categories say categorical = ["name"]',
    ),
    "row numbers": (lambda: {"bank.csv": written(bank(number=list(range(ROWS))))}, "like an id or an index"),
    "row numbers without a name": (
        lambda: {"bank.csv": written({"": list(range(ROWS))} | bank())},
        "1 column without a name, which numbers the rows, left out",
    ),
    "an index of pandas without a name": (
        lambda: {"bank.parquet": parquet({"__index_level_0__": list(range(ROWS))} | bank())},
        "1 column without a name, which numbers the rows, left out",
    ),
    "copy of the label": (
        lambda: {"bank.csv": written(bank(again=[10 * v for v in LABEL]))},
        "tells the label",
    ),
    "outliers": (
        lambda: {"bank.csv": written(bank(income=gaps(list(INCOME), 1e12, 50)))},
        "capped in income",
    ),
    "rare values": (
        lambda: {"bank.csv": written(bank(town=["Bonn", "Oslo", *TOWN[2:]]))},
        "town",
    ),
    "negative numbers in brackets": (lambda: money(lambda v: f"({-v:,.2f})"), CALM),
    "minus behind": (lambda: money(lambda v: f"{-v:.2f}-"), CALM),
    "typographic minus": (lambda: money(lambda v: f"\u2212{-v:.2f}"), CALM),
    "currency in brackets": (
        lambda: {"bank.csv": written(bank(net=[f"(${v:.2f})" if v % 2 else f"${v:.2f}" for v in INCOME]))},
        "'net': $ was taken off",
    ),
    "units": (lambda: {"bank.csv": written(bank(way=[f"{v:.0f} km" for v in INCOME]))}, "km was taken off"),
    "months": (lambda: {"bank.csv": written(bank(born=days("%d-%b-%Y")))}, "'born': dates became days"),
    "months first": (
        lambda: {"bank.csv": written(bank(born=days("%b %d, %Y")))},
        "'born': dates became days",
    ),
    "halves of a day": (
        lambda: {"bank.csv": written(bank(seen=days("%m/%d/%Y 1:30 PM")))},
        "'seen': dates became days",
    ),
    "durations": (
        lambda: {"bank.csv": written(bank(ran=[f"{k % 3}:{k % 60:02}:00" for k in range(ROWS)]))},
        "'ran': times became parts of a day",
    ),
    "lakhs": (lambda: money(lambda v: f"{-int(v) % 97 + 1},{int(-v) % 89 + 10},000"), CALM),
    "other currencies": (
        lambda: {"bank.csv": written(bank(net=[f"{v:.2f} zł" for v in INCOME]))},
        "'net': zł was taken off",
    ),
    "several currencies": (
        lambda: {"bank.csv": written(bank(net=[f"{'€$'[k % 2]}{v:.2f}" for k, v in enumerate(INCOME)]))},
        "'net' has numbers in several units ($, €); it is taken as text",
    ),
    "UTF-32": (lambda: {"bank.csv": written(bank(), encoding="utf-32")}, "encoding is utf-32"),
    "dates in many forms": (
        lambda: {"bank.csv": written(bank(born=[*days("%Y-%m-%d")[:60], *days("%d.%m.%Y")[60:]]))},
        "not all written in one way",
    ),
    "a word among numbers": (
        lambda: {"bank.csv": written(bank(income=gaps(list(INCOME), "unknown")))},
        "in 12 rows, 'unknown', which was taken as a gap",
    ),
    "points of other programs": (
        lambda: {"bank.csv": written(bank(income=gaps(list(INCOME), "."), visits2=gaps(list(VISITS), "--")))},
        "filled with the mean and marked",
    ),
    "units behind exponents": (
        lambda: {"bank.csv": written(bank(income=[f"{v:.2e} kg" for v in INCOME]))},
        "'income': kg was taken off",
    ),
    "words in several cases": (
        lambda: {
            "bank.csv": written(bank(town=[t.upper() if k % 9 == 1 else t for k, t in enumerate(TOWN)]))
        },
        "column 'town' has values that differ in case alone (KÖLN, Köln, ",
    ),
    "errors of spreadsheets": (
        lambda: {"bank.csv": written(bank(income=gaps(list(INCOME), "#DIV/0!")))},
        "filled with the mean and marked",
    ),
    "blanks around names": (
        lambda: {"bank.csv": written({f" {c} ": values for c, values in bank().items()})},
        "town (3)",
    ),
    "separators at the ends": (
        lambda: {"bank.csv": written(bank()).replace(b"\n", b",\n")},
        "1 empty column without a name left out",
    ),
    "separators at the ends but the header's, below blank lines": (
        lambda: {"bank.csv": b"\n\n" + written(bank()).replace(b"\n", b",\n").replace(b"y,\n", b"y\n", 1)},
        "1 empty column without a name left out",
    ),
    "titles above": (
        lambda: {"bank.csv": b"Customers, by id\n\n# made today\n" + written(bank())},
        "read as: 3 lines above the header left out",
    ),
    "titles padded to the width": (
        lambda: {"bank.csv": b"Customers;;;\n;;;\n" + written(bank(), ";")},
        "read as: fields are separated by semicolons, 2 lines above the header left out",
    ),
    "blanks between fields": (lambda: {"bank.csv": written(bank(), " ")}, "separated by blanks"),
    "a very long line": (
        lambda: {"bank.csv": written(bank(note=["x" * 2_000_000, *["short"] * (ROWS - 1)]))},
        "town (3)",
    ),
    "old Mac line ends": (lambda: {"bank.csv": written(bank(), end="\r")}, "town (3)"),
    "a total below": (
        lambda: {"bank.csv": written(bank()) + b"Total,300000,,\n"},
        "1 row left out: no label",
    ),
    "Excel with a smaller table before": (
        lambda: {"bank.xlsx": excel(bank(), before=[["id", "y"], ["c1", 1]])},
        "read the sheet 'rows' of 2",
    ),
    "Excel with titles": (
        lambda: {"bank.xlsx": excel(bank(), above=[["Customers of the year"], ["made", "today"]])},
        "read as: 2 lines above the header left out",
    ),
    "Excel with a cover": (
        lambda: {"bank.xlsx": excel(bank(), before=[["Customers of the year"]])},
        "read the sheet 'rows' of 2",
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_messy_file_trains_and_what_was_done_is_told(kind: str, tmp_path: Path) -> None:
    make, sentence = KINDS[kind]
    result = run(tmp_path, make() | SHOP)
    assert sentence in said(result)
    assert result.data.task == "binary"
    assert result.metrics["test_accuracy"] > 0.6
    assert result.data.rows["train"] + result.data.rows["test"] >= 90


def test_a_word_that_only_test_rows_have_makes_a_column_of_numbers_text_everywhere(tmp_path: Path) -> None:
    """What a column is shows in all rows of a file, not in those that chance chose for training."""
    for row in range(0, ROWS, 9):
        rooms: list[Any] = [k % 5 for k in range(ROWS)]
        rooms[row] = ">5"
        result = run(tmp_path, {"bank.csv": written(bank(rooms=rooms))} | SHOP)
        assert "column 'rooms' is taken as text" in said(result)


def test_odd_labels_are_pointed_out(tmp_path: Path) -> None:
    words: list[Any] = ["good" if v else "bad" for v in LABEL]
    words[3], words[4:12] = "goood", [word.upper() for word in words[4:12]]
    warned = run(tmp_path, {"bank.csv": written(bank(y=words))} | SHOP).data.warnings
    assert any("label goood is in one row of 120" in each for each in warned)
    assert any("labels GOOD, good differ in case alone" in each for each in warned)
    assert not run(tmp_path, {"bank.csv": written(bank())} | SHOP).data.warnings


def test_ids_are_brought_into_one_form(tmp_path: Path) -> None:
    born = days("%d.%m.%Y")
    two: Table = bank(first=[f"ADA{k % 7}" for k in range(ROWS)], born=born)
    one: Table = shop(first=[f" ada{k % 7}" for k in range(ROWS)], born=days("%Y-%m-%d"))
    del two["id"], one["id"]
    keys = [{"case": "lower"}, {"kind": "date", "formats": ["%d.%m.%Y", "%Y-%m-%d"]}]
    files = {"bank.csv": written(two), "shop.csv": written(one)}
    result = run(tmp_path, files, id=["first", "born"], keys=keys)
    assert result.data.rows == {"train": 96, "test": 24}
    with pytest.raises(DataError, match="no id is in all files"):
        run(tmp_path, files, id=["first", "born"])


ROWS_ALONE = written(bank()).split(b"\n", 1)[1]  # without a header


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (written(bank()) + b"c1,2\nc2,3,4,5,6\n", "line 122 has 2 fields.*1 more line differs"),
        (
            written(bank(id=["c0", "c0", "c1", "c1", *[f"c{k}" for k in range(4, ROWS)]])),
            "2 rows with the id of",
        ),
        (written(bank(id=[f"{k + 4e9:.4e}" for k in range(ROWS)])), "a spreadsheet cut off its last digits"),
        (written(bank(y=[""] * ROWS)), "no row has a label"),
        (written(bank()).replace(b"c77,", b"c\x0077,", 1), "line 79 has a zero byte"),
        (b"Customers,,,\n" + ROWS_ALONE, "no name for 3 columns of 4.*above the header"),
        (b"# made today\n" + ROWS_ALONE, "first line has one field and 120 lines have 4"),
        (b"income,town,y\n" + ROWS_ALONE, "line 2 has 4 fields, the header has 3"),
        (b"a title\n" + written(bank()) + b"c1,2\n", "line 123 has 2 fields, the header has 4"),
        (ROWS_ALONE, "first line looks like values, not like names"),
        (
            written(bank()).replace(b"c7,", b'"c7,', 1),
            "mark between line 9 and line 121 is not closed",
        ),
        (
            written(bank(income=gaps(list(INCOME), "inf"), more=gaps(list(INCOME), "-inf", 40))),
            "'income' is infinite in 12 rows, first in row 4; column 'more' is infinite in 3 rows",
        ),
        (bytes(RNG.integers(0, 256, 3000, dtype=np.uint8)), "bank.csv"),
        (written(bank(id=[""] * ROWS)), "no row has an id"),
    ],
)
def test_what_cannot_be_used_is_counted_and_named(content: bytes, words: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=words):
        run(tmp_path, {"bank.csv": content} | SHOP)


@pytest.mark.parametrize(
    ("ids", "remedy"),
    [("{:05}", 'kind = "integer"'), ("{}.0", 'kind = "integer"'), ("X{}", 'case = "lower"')],
)
def test_the_rule_that_would_join_the_files_is_named(ids: str, remedy: str, tmp_path: Path) -> None:
    one = bank(id=[ids.format(k) for k in range(ROWS)])
    other = shop(id=[("x{}" if "X" in ids else "{}").format(k) for k in range(ROWS)])
    files = {"bank.csv": written(one), "shop.csv": written(other)}
    with pytest.raises(DataError, match=f"keys = .{{ {remedy} }}. in .data., 120 would be in all"):
        run(tmp_path, files)


def test_days_are_the_same_ids_in_every_format(tmp_path: Path) -> None:
    born = [datetime.fromisoformat(day) for day in days("%Y-%m-%d")]
    people = bank(id=born)
    other = {"shop.csv": written(shop(id=days("%Y-%m-%d")))}
    for name, content in {"bank.xlsx": excel(people), "bank.parquet": parquet(people)}.items():
        assert run(tmp_path, {name: content} | other).data.rows == {"train": 96, "test": 24}


def test_how_a_file_is_written_can_be_said(tmp_path: Path) -> None:
    thousands = written(bank(income=[f"{int(v):,}" for v in INCOME]), ";")
    doubtful = run(tmp_path, {"bank.csv": thousands} | SHOP)
    assert "can be read in two ways" in said(doubtful)
    told = run(tmp_path, {"bank.csv": thousands} | SHOP, separator=None, thousands=",")
    assert "two ways" not in said(told)
    with pytest.raises(DataError, match="is not written in ascii"):
        run(tmp_path, {"bank.csv": written(bank())} | SHOP, encoding="ascii")
