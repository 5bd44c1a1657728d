"""Text that means a number or a date: 1.234,50, 12 %, $ 3.20, 31.12.1999.

A whole column is recognised or none of it, and only without doubt; otherwise it stays text, and a sentence
says why. Work is done once for every different text, so that a million rows cost little.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from colonnade.arrays import Floats
from colonnade.data.dialect import GAPS, Dialect
from colonnade.data.table import Column

MOSTLY = 0.8  # a column with so many numbers among its texts was meant to be one
_MONEY = re.compile(r"([$€£¥]|EUR|USD|GBP|CHF|JPY)?\s*([^$€£¥A-Za-z%]+?)\s*([$€£¥%]|EUR|USD|GBP|CHF|JPY)?")
_TIME = r"(?:[ T]+(\d{1,2}):(\d{2})(?::(\d{2})(?:\.\d+)?)?Z?)?"
_YEAR_FIRST = re.compile(r"(\d{4})([-/.])(\d{1,2})\2(\d{1,2})" + _TIME)
_YEAR_LAST = re.compile(r"(\d{1,2})([-/.])(\d{1,2})\2(\d{4})" + _TIME)
_EPOCH = datetime(1970, 1, 1)

Parser = Callable[[str], float | None]


@dataclass(frozen=True, eq=False)
class Recognised:
    """A column as numbers or as text, a sentence about it, and the pattern of its dates if it has some."""

    values: Column
    said: str | None = None
    warned: str | None = None
    date: str | None = None


def recognise(name: str, texts: Any, dialect: Dialect, *, dates: bool = True) -> Recognised:
    """A text column (what pyarrow makes an array of): numbers, days, or text without blanks around it."""
    different, place = _different(texts)
    there = [text for text in different if text]
    if not there:
        return Recognised(np.full(len(place), np.nan))
    number, unit = _number_parser(there, dialect)
    if number is not None:
        numbers = np.array([np.nan if not text else number(text) for text in different])
        said = f"column '{name}': {unit} was taken off its numbers" if unit else None
        return Recognised(numbers[place], said)
    pattern = date_pattern(there) if dates else None
    if pattern is not None and pattern != "?":
        days = np.array([np.nan if not text else days_of(text, pattern) for text in different])
        if not np.isnan(days[[k for k, text in enumerate(different) if text]]).any():
            return Recognised(days[place], f"column '{name}': dates became days since 1970", date=pattern)
    words: NDArray[np.object_] = np.array(different, dtype=object)[place]
    return Recognised(words, warned=_doubt(name, there, pattern, dialect))


def number_of(text: str) -> float | None:
    """The number that a text is for sure, whatever file it is from; None if it is none."""
    return _plain(text.strip(), ".", "'")


def date_pattern(texts: Sequence[str]) -> str | None:
    """How all these texts write dates: "ymd", "dmy" or "mdy"; "?" if nobody can tell; None if not all do."""
    if all(_YEAR_FIRST.fullmatch(text) for text in texts):
        return "ymd"
    found = [_YEAR_LAST.fullmatch(text) for text in texts]
    if not all(found):
        return None
    first = max(int(match[1]) for match in found if match)
    second = max(int(match[3]) for match in found if match)
    if first > 12 and second > 12:
        return None
    if first > 12 or any(match[2] == "." for match in found if match):  # points are for days first
        return "dmy"
    return "mdy" if second > 12 else "?"


def days_of(text: str, pattern: str) -> float:
    """The days from 1970 to a date that is written like `pattern`; NaN if it is no such date."""
    match = (_YEAR_FIRST if pattern == "ymd" else _YEAR_LAST).fullmatch(text.strip())
    if match is None:
        return float("nan")
    order = {"ymd": (1, 3, 4), "dmy": (4, 3, 1), "mdy": (4, 1, 3)}[pattern]
    year, month, day = (int(match[k]) for k in order)
    try:
        hour, minute, second = (int(part or 0) for part in match.groups()[4:7])
        return (datetime(year, month, day, hour, minute, second) - _EPOCH).total_seconds() / 86400
    except ValueError:
        return float("nan")


def _different(texts: Any) -> tuple[list[str], NDArray[np.int64]]:
    """The different texts without blanks around them, gaps as "", and which of them every row has."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = texts if isinstance(texts, pa.Array | pa.ChunkedArray) else pa.array(texts, type=pa.string())
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    column = pc.fill_null(column.cast(pa.string()), "").dictionary_encode()
    words = [word.strip() for word in column.dictionary.to_pylist()]
    return ["" if word in GAPS else word for word in words], column.indices.to_numpy().astype(np.int64)


def _number_parser(texts: Sequence[str], dialect: Dialect) -> tuple[Parser | None, str]:
    """What makes numbers of all these texts, and the unit that they share; None if not all are for sure."""
    decimal = dialect.decimal or "."
    thousands = dialect.thousands or ("," if decimal == "." else ".")
    sure = dialect.sure or dialect.thousands is not None
    units: set[str] = set()
    bare = []
    for text in texts:
        match = _MONEY.fullmatch(text)
        if match is None or (match[1] and match[3]):
            return None, ""
        units.add(match[1] or match[3] or "")
        bare.append(match[2])
        if len(units) > 1:
            return None, ""
    unit = units.pop()
    for point, group, known in ((decimal, thousands, sure), (thousands, decimal, False)):
        if point not in ".,":
            continue
        if all(_plain(text, point, group) is not None for text in bare) and (
            known or not _either_way(bare, point, group)
        ):

            def parse(text: str, point: str = point, group: str = group) -> float | None:
                match = _MONEY.fullmatch(text)
                return None if match is None else _plain(match[2], point, group)

            return parse, unit
    return None, ""


def _plain(text: str, point: str, group: str) -> float | None:
    """A number with this decimal mark, and these or blank marks between thousands; None if it is none."""
    mark = rf"[{re.escape(group)}' \u00a0\u202f’]"
    grouped = re.fullmatch(rf"[+-]?\d{{1,3}}({mark})\d{{3}}(?:\1\d{{3}})*(?:{re.escape(point)}\d*)?", text)
    if grouped:
        text = text.replace(grouped[1], "")
    if not re.fullmatch(
        rf"[+-]?(\d+(?:{re.escape(point)}\d*)?|{re.escape(point)}\d+)(?:[eE][+-]?\d+)?", text
    ):
        return None
    return float(text.replace(point, "."))


def _either_way(texts: Sequence[str], point: str, group: str) -> bool:
    """Whether the marks in these numbers could as well mean the other thing, and nothing shows which."""
    swapped = all(_plain(text, group, point) is not None for text in texts) if group in ".," else False
    marked = any(point in text or group in text for text in texts)
    return marked and swapped


def _doubt(name: str, texts: Sequence[str], pattern: str | None, dialect: Dialect) -> str | None:
    """Why a column that looks like numbers or dates stays text, and what to do; None if it just is text."""
    if pattern == "?":
        return (
            f"column '{name}' has dates such as {texts[0]} in which day and month cannot be told apart; "
            "it is taken as text: write them as YYYY-MM-DD"
        )
    if all(_plain(text, ".", ",") is not None or _plain(text, ",", ".") is not None for text in texts):
        return (
            f"column '{name}' has numbers such as {next(t for t in texts if '.' in t or ',' in t)} that can "
            "be read in two ways; it is taken as text: say decimal or thousands"
        )
    odd = [text for text in texts if _plain(text, dialect.decimal or ".", "'") is None]
    if len(odd) <= (1 - MOSTLY) * len(texts) and len(texts) > 4:
        return (
            f"column '{name}' is taken as text: most of its values are numbers, but not "
            f"{', '.join(repr(text[:20]) for text in odd[:3])}; correct them, or leave the column out"
        )
    return None


def numbers_of(texts: Sequence[object] | NDArray[Any]) -> Floats | None:
    """All these texts as numbers, gaps as NaN; None if one is neither."""
    parsed = np.empty(len(texts))
    for row, value in enumerate(texts):
        text = str(value).strip()
        number = np.nan if text in GAPS else number_of(text)
        if number is None:
            return None
        parsed[row] = number
    return parsed
