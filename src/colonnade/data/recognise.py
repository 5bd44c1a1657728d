"""Text that means a number, a date or a time: 1.234,50, 12 %, $ 3.20, (7.50), 31.12.1999, Dec 31, 1999, 9:05.

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
from colonnade.data.table import Column, count, different

MOSTLY = 0.8  # a column with so many numbers among its texts was meant to be one
ODD, NUMBERS = 3, 20  # so few words among at least so many different numbers are gaps
_SIGNS = "$€£¥₹₽₺₩₪₫₴₦₱฿"
_CODES = "AUD|BRL|CAD|CHF|CNY|CZK|DKK|EUR|GBP|HUF|INR|JPY|NOK|PLN|SEK|USD|ZAR|kr|Rs"
_MONEY = re.compile(
    rf"([{_SIGNS}]|(?:US|A|C|R)\$|{_CODES})?\s*([^{_SIGNS}%°a-zA-Zµ]+?)\s*"
    rf"([{_SIGNS}%]|°[A-Z]?|[^\W\d_](?:[^\W\d_]|/){{0,11}})?"
)
_BRACKETS = re.compile(r"\((.+)\)|(.*[^-\s])\s*-")  # what bookkeepers write for a negative number
_TIME = r"(?:[ T]+(\d{1,2}):(\d{2})(?::(\d{2})(?:\.\d+)?)?(?:\s*([AaPp])\.?[Mm]\.?|Z)?)?"
_YEAR_FIRST = re.compile(r"(\d{4})([-/.])(\d{1,2})\2(\d{1,2})" + _TIME)
_YEAR_LAST = re.compile(r"(\d{1,2})([-/.])(\d{1,2})\2(\d{4})" + _TIME)
_MONTH = re.compile(r"(\d{1,2})([-/. ])\s*([A-Za-zä]{3,9})[-/. ,]\s*(\d{4})" + _TIME)
_MONTH_FIRST = re.compile(r"([A-Za-zä]{3,9})(\.?)\s+(\d{1,2})(?:st|nd|rd|th)?,?\s+(\d{4})" + _TIME)
_MONTHS = {name: k + 1 for k, name in enumerate(re.findall("...", "janfebmaraprmayjunjulaugsepoctnovdec"))}
_MONTHS |= {"mär": 3, "mrz": 3, "mai": 5, "okt": 10, "dez": 12}
_CLOCK = re.compile(r"(\d{1,3}):(\d{2})(?::(\d{2}(?:\.\d+)?))?")
# how a date may be written: what it looks like, and where its year, its month and its day stand
_WRITTEN = {
    "ymd": (_YEAR_FIRST, (1, 3, 4)),
    "dmy": (_YEAR_LAST, (4, 3, 1)),
    "mdy": (_YEAR_LAST, (4, 1, 3)),
    "dby": (_MONTH, (4, 3, 1)),
    "bdy": (_MONTH_FIRST, (4, 1, 3)),
}
_LAKHS = re.compile(r"[+-]?\d{1,2}(?:,\d{2})+,\d{3}(?:\.\d*)?")  # 12,34,567 as India writes it
_LIKE_DATE = re.compile(r"\d{1,4}[-/. ]\s*\w{1,9}[-/. ,]\s*\d{1,4}(?:[ T].*)?")
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
            return Recognised(days[place], said_of(name, pattern), date=pattern)
    without = _without_words(name, different, place, dialect)
    if without is not None:
        return without
    words: NDArray[np.object_] = np.array(different, dtype=object)[place]
    return Recognised(words, warned=_doubt(name, there, pattern, dialect))


def _without_words(
    name: str, different: Sequence[str], place: NDArray[np.int64], dialect: Dialect
) -> Recognised | None:
    """A column of many numbers and a few words, which become gaps; None if it is no such column."""
    odd = [text for text in different if text and not any(c.isdigit() for c in text)]
    numbers = [text for text in different if text and text not in odd]
    if not 0 < len(odd) <= ODD or len(numbers) < NUMBERS:
        return None
    parse, unit = _number_parser(numbers, dialect)
    if parse is None:
        return None
    values = np.array([np.nan if not text or text in odd else parse(text) for text in different])
    rows = int(np.isin(place, [k for k, text in enumerate(different) if text in odd]).sum())
    words = ", ".join(repr(text[:20]) for text in odd)
    return Recognised(
        values[place],
        f"column '{name}': {unit} was taken off its numbers" if unit else None,
        warned=f"column '{name}' has numbers and, in {count(rows, 'row')}, {words}, which was taken as a gap",
    )


def number_of(text: str) -> float | None:
    """The number that a text is for sure, whatever file it is from; None if it is none."""
    return _plain(text.strip(), ".", "'")


def said_of(name: str, pattern: str) -> str:
    """What was done to a column of dates or times."""
    what = "times became parts of a day" if pattern == "hms" else "dates became days since 1970"
    return f"column '{name}': {what}"


def date_pattern(texts: Sequence[str]) -> str | None:
    """How all these texts write dates: "ymd", "dmy", "mdy", or "dby" and "bdy" with a month's name.

    "hms" if they are times of a day or durations; "?" if nobody can tell; None if not all are dates that are
    written in the same way.
    """
    if all(_YEAR_FIRST.fullmatch(text) for text in texts):
        return "ymd"
    clocks = [_CLOCK.fullmatch(text) for text in texts]
    if all(clocks) and len({match[3] is None for match in clocks if match}) == 1:
        return "hms"
    for pattern, (look, (_, month, _)) in _WRITTEN.items():
        if pattern in ("dby", "bdy"):
            named = [look.fullmatch(text) for text in texts]
            if all(match and match[month][:3].lower() in _MONTHS for match in named):
                return pattern
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
    """The days from 1970 to a date, or a time in days, that is written like `pattern`; NaN if it is none.

    >>> days_of("Jan 2, 1970 6:00 PM", "bdy"), days_of("36:00", "hms")
    (1.75, 1.5)
    """
    if pattern == "hms":
        clock = _CLOCK.fullmatch(text.strip())
        if clock is None:
            return float("nan")
        return (int(clock[1]) * 3600 + int(clock[2]) * 60 + float(clock[3] or 0)) / 86400
    look, order = _WRITTEN[pattern]
    match = look.fullmatch(text.strip())
    if match is None:
        return float("nan")
    year, month, day = (
        _MONTHS.get(match[k][:3].lower(), 0) if match[k].isalpha() else int(match[k]) for k in order
    )
    half = (match[8] or "").lower()
    try:
        hour, minute, second = (int(part or 0) for part in match.groups()[4:7])
        hour = hour % 12 + 12 * (half == "p") if half else hour
        return (datetime(year, month, day, hour, minute, second) - _EPOCH).total_seconds() / 86400
    except ValueError:
        return float("nan")


def _different(texts: Any) -> tuple[list[str], NDArray[np.int64]]:
    """The different texts without blanks around them, gaps as "", and which of them every row has."""
    import pyarrow as pa

    column = texts if isinstance(texts, pa.Array | pa.ChunkedArray) else pa.array(texts, type=pa.string())
    words, which = different(column)
    return ["" if (word := text.strip()) in GAPS else word for text in words], which


def _number_parser(texts: Sequence[str], dialect: Dialect) -> tuple[Parser | None, str]:
    """What makes numbers of all these texts, and the unit that they share; None if not all are for sure."""
    decimal = dialect.decimal or "."
    thousands = dialect.thousands or ("," if decimal == "." else ".")
    sure = dialect.sure or dialect.thousands is not None
    units: set[str] = set()
    bare = []
    for text in texts:
        match = _MONEY.fullmatch(_signed(text)[1])
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
                sign, rest = _signed(text)
                match = _MONEY.fullmatch(rest)
                number = None if match is None else _plain(match[2], point, group)
                return None if number is None else sign * number

            return parse, unit
    return None, ""


def _signed(text: str) -> tuple[float, str]:
    """The sign of a number and the rest of its text: (12.50), 12.50-, -12.50 and a typographic minus."""
    text = text.replace("\u2212", "-")
    negative = _BRACKETS.fullmatch(text)
    if negative is not None:
        return -1.0, (negative[1] or negative[2]).strip()
    return (-1.0, text[1:].strip()) if text.startswith("-") else (1.0, text)


def _plain(text: str, point: str, group: str) -> float | None:
    """A number with this decimal mark, and these or blank marks between thousands; None if it is none."""
    mark = rf"[{re.escape(group)}' \u00a0\u202f’]"
    grouped = re.fullmatch(rf"[+-]?\d{{1,3}}({mark})\d{{3}}(?:\1\d{{3}})*(?:{re.escape(point)}\d*)?", text)
    if grouped:
        text = text.replace(grouped[1], "")
    elif group == "," and _LAKHS.fullmatch(text):
        text = text.replace(",", "")
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
    if all(_LIKE_DATE.fullmatch(text) for text in texts):
        return (
            f"column '{name}' has dates such as {texts[0]} that are not all written in one way that is sure; "
            "it is taken as text: write them as YYYY-MM-DD"
        )
    if all(_plain(text, ".", ",") is not None or _plain(text, ",", ".") is not None for text in texts):
        return (
            f"column '{name}' has numbers such as {next(t for t in texts if '.' in t or ',' in t)} that can "
            "be read in two ways; it is taken as text: say decimal or thousands"
        )
    units = {match[1] or match[3] for text in texts if (match := _MONEY.fullmatch(_signed(text)[1]))} - {None}
    if (
        len(units) > 1
        and units <= {*_SIGNS, *_CODES.split("|"), "%"}
        and all(any(map(str.isdigit, t)) for t in texts)
    ):
        return (
            f"column '{name}' has numbers in several units ({', '.join(sorted(units)[:4])}); it is taken as "
            "text: bring them into one"
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
