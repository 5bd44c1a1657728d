"""The first line of a CSV file: names without blanks around them, and what is wrong if it is no header."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from colonnade.data.read.dialect import BEGINNING, MOST_TEXT
from colonnade.data.read.recognise import number_of
from colonnade.data.table import count, some
from colonnade.errors import DataError

MOST_COLUMNS = 100_000
NUMBERS = 0.5  # from this part of numbers among its names on, a line is no header
INDEX = "__index_level_0__"  # what pandas calls an index without a name in Parquet files


def named(path: object, table: Any) -> tuple[Any, tuple[str, ...], tuple[str, ...]]:
    """Return a pyarrow table whose names are as they should be, what was done to it, and what to look at.

    Columns without a name and without any value are what separators at the ends of lines make.
    """
    names = ["" if name == INDEX else name.strip() for name in table.column_names]
    empty = [j for j, name in enumerate(names) if not name and table[j].null_count == table.num_rows]
    kept = [j for j in range(len(names)) if j not in empty]
    names = [names[j] for j in kept]
    if names.count("") > 1:
        raise DataError(
            f"{path}: the first line has no name for {count(names.count(''), 'column')} of {len(names)}; "
            "write one for each, or delete what stands above the header"
        )
    twice = sorted(name for name, times in Counter(names).items() if times > 1)
    if twice:
        quoted = some([f"'{name}'" for name in twice])
        raise DataError(f"{path}: two columns are named {quoted}; rename one")
    said = (f"{count(len(empty), 'empty column')} without a name left out",) if empty else ()
    return table.select(kept).rename_columns(names), said, _no_header(names)


def _no_header(names: Sequence[str]) -> tuple[str, ...]:
    """Return what to say where names look like values."""
    numbers = [name for name in names if number_of(name) is not None]
    if len(names) < 2 or len(numbers) < NUMBERS * len(names):
        return ()
    return (f"its first line looks like values, not like names ({some(names, 4)}); write a header above it",)


def names_of(plain: bytes, separator: str) -> list[str]:
    """Return the names in the first line that is not blank, as they are written."""
    return next((row for row in _records(plain[:BEGINNING], separator) if row), [])


def refuse_too_wide(path: object, plain: bytes, separator: str) -> None:
    """Refuse a first line of more columns than the parser can hold, before it is tried: it would abort."""
    plain = plain.lstrip(b"\r\n")
    end = plain.find(b"\n")
    columns = plain.count(separator.encode(), 0, len(plain) if end < 0 else end) + 1
    if columns > MOST_COLUMNS:
        raise DataError(
            f"{path}: its first line has {columns:,} fields, and at most {MOST_COLUMNS:,} are read; give "
            "wide tables as Parquet or LIBSVM, or set separator"
        )


def mended(plain: bytes, separator: str) -> bytes | None:
    """Return the file with a separator at the end of its header, where every other line has one there; else
    None."""
    records = _records(plain, separator)
    width = len(next(records, []))
    if not width or any(len(row) != width + 1 or row[-1] for row in records):
        return None
    plain = plain.lstrip(b"\r\n")
    first, end, rest = plain.partition(b"\r\n" if b"\r\n" in plain else b"\n")
    return first + separator.encode() + end + rest


def fault(plain: bytes, separator: str) -> str | None:
    """Return what is wrong with the file, on how many lines and which is the first; None if nothing is
    found."""
    reader = csv.reader(_text(plain), delimiter=separator)
    header = next((row for row in reader if row), None)
    if header is None:
        return "the file is empty"
    widths = [(reader.line_num, len(row)) for row in reader if row]
    faults = [(line, width) for line, width in widths if width != len(header)]
    if not faults:
        return None
    usual, lines = Counter(width for _, width in widths).most_common(1)[0]
    if len(header) == 1 < usual and 2 * lines > len(widths):
        return (
            f"its first line has one field and {count(lines, 'line')} have {usual}; delete what stands above "
            "the header"
        )
    (line, width), more = faults[0], len(faults) - 1
    before = max((known for known, _ in widths if known < line), default=1)
    if line - before > 1 and b'"' in plain:
        return f"a quotation mark between line {before + 1} and line {line} is not closed; close or delete it"
    others = f" ({more:,} more {'line differs' if more == 1 else 'lines differ'}, too)" if more else ""
    return (
        f"line {line} has {count(width, 'field')}, the header has {len(header)}{others}; "
        f"fields are separated by {separator!r}: quote those that contain it, or set separator"
    )


def _records(plain: bytes, separator: str) -> Iterator[list[str]]:
    """Return all records that are not blank."""
    return (row for row in csv.reader(_text(plain), delimiter=separator) if row)


def _text(plain: bytes) -> io.TextIOWrapper:
    """Return the text of a file, a piece at a time, for a reader that takes long fields."""
    csv.field_size_limit(MOST_TEXT)
    return io.TextIOWrapper(io.BytesIO(plain), encoding="utf-8", errors="replace", newline="")
