"""Text that means a number, a date or a time: 1.234,50, 12 %, $ 3.20, (7.50); `dates` knows the dates.

A whole column is recognised or none of it, and only without doubt; otherwise it stays text, and a sentence
says why. Work is done once for every different text, so that a million rows cost little.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from colonnade.arrays import Floats
from colonnade.data.read.dates import (
    CLOCK,
    COMPACT,
    UNSURE,
    compact_dates,
    date_pattern,
    days_of,
    like_dates,
    said_of,
)
from colonnade.data.read.dialect import GAPS, Dialect
from colonnade.data.table import Column, as_numbers, count, different

MOSTLY = 0.8  # a column with this part of numbers among its texts was meant to be one
ODD, NUMBERS = 3, 20  # at most ODD words among at least NUMBERS different numbers are gaps
_SIGNS = "$€£¥₹₽₺₩₪₫₴₦₱฿"
_CODES = "AUD|BRL|CAD|CHF|CNY|CZK|DKK|EUR|GBP|HUF|INR|JPY|NOK|PLN|SEK|USD|ZAR|kr|Rs"
_UNITS = {*_SIGNS, *_CODES.split("|"), "%"}
_MONEY = re.compile(
    rf"([{_SIGNS}]|(?:US|A|C|R)\$|{_CODES})?\s*([^{_SIGNS}%°a-zA-Zµ]+?(?:[eE][+-]?\d+)?)\s*"
    rf"([{_SIGNS}%]|°[A-Z]?|[^\W\d_](?:[^\W\d_]|/){{0,11}})?"
)
_BRACKETS = re.compile(r"\((.+)\)|(.*[^-\s])\s*-")  # what bookkeepers write for a negative number
_LAKHS = re.compile(r"[+-]?\d{1,2}(?:,\d{2})+,\d{3}(?:\.\d*)?")  # 12,34,567 as India writes it

Parser = Callable[[str], float | None]


@dataclass(frozen=True, eq=False)
class Recognised:
    """A column as numbers or as text, a sentence about it, and the pattern of its dates if it has some."""

    values: Column
    said: str | None = None
    warned: str | None = None
    date: str | None = None

    def without(self, gaps: Sequence[str]) -> Recognised:
        """Return the same with these numbers as gaps, or these dates (9999-12-31), however the column writes
        them; text stays as it is."""
        if self.values.dtype == object:
            return self
        gone = numbers_among(gaps) if self.date is None else [days_of(each, "ymd") for each in gaps]
        return replace(self, values=np.where(np.isin(self.values, gone), np.nan, self.values))


def numbers_among(texts: Sequence[str]) -> list[float]:
    """Return those of some texts that are numbers."""
    numbers = []
    for text in texts:
        with suppress(ValueError):
            numbers.append(float(text))
    return numbers


def recognise(name: str, texts: Any, dialect: Dialect, *, dates: bool = True) -> Recognised:
    """Return a text column (what pyarrow makes an array of): numbers, days, or text without blanks around
    it."""
    different, place = _different(texts)
    there = [text for text in different if text]
    if not there:
        return Recognised(np.full(len(place), np.nan))
    before = dialect.date_of(name) if dates else None
    if before is not None and (found := _dates(name, different, place, before)) is not None:
        return found
    pattern = None
    if (found := _numbers(name, different, place, dialect)) is not None:
        return (
            from_numbers(name, as_numbers(found.values), dialect) if dates and not found.said else None
        ) or found
    if dates and (pattern := date_pattern(there)) is not None:
        found = _dates(name, different, place, pattern)
    found = found or _without_words(name, different, place, dialect, dates=dates)
    words: NDArray[np.object_] = np.array(different, dtype=object)[place]
    return found or Recognised(words, warned=_doubt(name, there, pattern, dialect))


def from_numbers(name: str, numbers: Floats, dialect: Dialect) -> Recognised | None:
    """Return a column of numbers such as 19991231 as days; None if these are no dates."""
    before = dialect.date_of(name)
    if dialect.dates is not None and before in (None, CLOCK):
        return None  # in training it was no column of dates, no matter what these look like
    found = compact_dates(numbers, known=before is not None)
    if found is None:
        return None
    odd = np.unique(numbers[found.odd])
    warned = _as_gaps(name, "dates", int(found.odd.sum()), [f"{one:.10g}" for one in odd[:ODD]])
    return Recognised(found.days, said_of(name, COMPACT), warned, COMPACT)


def _numbers(
    name: str, different: Sequence[str], place: NDArray[np.int64], dialect: Dialect
) -> Recognised | None:
    """Return a column of numbers, with a sentence about their unit if they have one; None if not all are
    numbers."""
    parse, unit = _number_parser([text for text in different if text], dialect)
    if parse is None:
        return None
    numbers = np.array([np.nan if not text else parse(text) for text in different])
    return Recognised(numbers[place], f"column '{name}': {unit} was taken off its numbers" if unit else None)


def _dates(name: str, different: Sequence[str], place: NDArray[np.int64], pattern: str) -> Recognised | None:
    """Return a column of dates that are written like `pattern`; None if some are not, but for a few among
    many."""
    if pattern == UNSURE:
        return None
    days = np.array([np.nan if not text else days_of(text, pattern) for text in different])
    odd = [k for k, text in enumerate(different) if text and np.isnan(days[k])]
    if odd and (len(odd) > ODD or len(different) - len(odd) < NUMBERS):
        return None
    warned = _as_gaps(name, "dates", int(np.isin(place, odd).sum()), [different[k] for k in odd])
    return Recognised(days[place], said_of(name, pattern), warned, pattern)


def _without_words(
    name: str, different: Sequence[str], place: NDArray[np.int64], dialect: Dialect, *, dates: bool
) -> Recognised | None:
    """Return a column of many numbers or dates and a few words, which become gaps; None if it is no such
    column."""
    words = (text for text in different if text and not any(map(str.isdigit, text)))
    odd = list(islice(words, ODD + 1))  # of a column of names no more is read
    there = [text for text in different if text and text not in odd] if 0 < len(odd) <= ODD else []
    if len(there) < NUMBERS:
        return None
    others = ["" if text in odd else text for text in different]
    found, what = _numbers(name, others, place, dialect), "numbers"
    if dates and found is not None and not found.said:
        found = from_numbers(name, as_numbers(found.values), dialect) or found
    elif dates and found is None and (pattern := date_pattern(there)) is not None:
        found, what = _dates(name, others, place, pattern), "dates"
    if found is None:
        return None
    rows = int(np.isin(place, [k for k, text in enumerate(different) if text in odd]).sum())
    return replace(found, warned=_as_gaps(name, what, rows, odd))


def _as_gaps(name: str, what: str, rows: int, odd: Sequence[str]) -> str | None:
    """Return a sentence about values that became gaps, if there are some."""
    if not rows:
        return None
    named = ", ".join(repr(text[:20]) for text in odd)
    return f"column '{name}' has {what} and, in {count(rows, 'row')}, {named}, which was taken as a gap"


def number_of(text: str) -> float | None:
    """Return the number that a text is for sure, in any file; None if it is none."""
    return _plain(text.strip(), ".", "'")


def _different(texts: Any) -> tuple[list[str], NDArray[np.int64]]:
    """Return the different texts without blanks around them, gaps as "", and which of them every row has."""
    import pyarrow as pa

    column = texts if isinstance(texts, pa.Array | pa.ChunkedArray) else pa.array(texts, type=pa.string())
    words, which = different(column)
    return ["" if (word := text.strip()) in GAPS else word for text in words], which


def _number_parser(texts: Sequence[str], dialect: Dialect) -> tuple[Parser | None, str]:
    """Return what makes numbers of all these texts, and the unit that they share; None if not all are for
    sure."""
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
    """Return the sign of a number and the rest of its text: (12.50), 12.50-, -12.50 and a typographic
    minus."""
    text = text.replace("\u2212", "-")
    negative = _BRACKETS.fullmatch(text)
    if negative is not None:
        return -1.0, (negative[1] or negative[2]).strip()
    return (-1.0, text[1:].strip()) if text.startswith("-") else (1.0, text)


@cache
def _writing(point: str, group: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return numbers with marks between thousands, and numbers without."""
    mark, dot = rf"[{re.escape(group)}' \u00a0\u202f’]", re.escape(point)
    return (
        re.compile(rf"[+-]?\d{{1,3}}({mark})\d{{3}}(?:\1\d{{3}})*(?:{dot}\d*)?"),
        re.compile(rf"[+-]?(\d+(?:{dot}\d*)?|{dot}\d+)(?:[eE][+-]?\d+)?"),
    )


def _plain(text: str, point: str, group: str) -> float | None:
    """Return a number with this decimal mark, and these or blank marks between thousands; None if it is
    none."""
    in_groups, without = _writing(point, group)
    if grouped := in_groups.fullmatch(text):
        text = text.replace(grouped[1], "")
    elif group == "," and _LAKHS.fullmatch(text):
        text = text.replace(",", "")
    return float(text.replace(point, ".")) if without.fullmatch(text) else None


def _either_way(texts: Sequence[str], point: str, group: str) -> bool:
    """Return whether the marks in these numbers could as well mean the other thing, and nothing shows
    which."""
    swapped = all(_plain(text, group, point) is not None for text in texts) if group in ".," else False
    marked = any(point in text or group in text for text in texts)
    return marked and swapped


def _units(texts: Sequence[str]) -> set[str]:
    """Return the units of these numbers; none at all if a text is no number or has a unit that nobody
    knows."""
    units = set()
    for text in texts:
        match = _MONEY.fullmatch(_signed(text)[1])
        if match is None or not any(map(str.isdigit, text)):
            return set()
        if unit := match[1] or match[3]:
            if unit not in _UNITS:
                return set()
            units.add(unit)
    return units


def _doubt(name: str, texts: Sequence[str], pattern: str | None, dialect: Dialect) -> str | None:
    """Return why a column that looks like numbers or dates stays text, and what to do; None if it just is
    text."""
    if pattern == UNSURE:
        return (
            f"column '{name}' has dates such as {texts[0]} in which day and month cannot be told apart; "
            "it is taken as text: write them as YYYY-MM-DD"
        )
    if like_dates(texts):
        return (
            f"column '{name}' has dates such as {texts[0]} that are not all written in one way that is sure; "
            "it is taken as text: write them as YYYY-MM-DD"
        )
    if all(_plain(text, ".", ",") is not None or _plain(text, ",", ".") is not None for text in texts):
        return (
            f"column '{name}' has numbers such as {next(t for t in texts if '.' in t or ',' in t)} that can "
            "be read in two ways; it is taken as text: say decimal or thousands"
        )
    units = _units(texts)
    if len(units) > 1:
        return (
            f"column '{name}' has numbers in several units ({', '.join(sorted(units)[:4])}); it is taken as "
            "text: bring them into one"
        )
    most = int((1 - MOSTLY) * len(texts))
    others = (text for text in texts if _plain(text, dialect.decimal or ".", "'") is None)
    odd = list(islice(others, most + 1))  # of a column of names no more is read
    if len(odd) <= most and len(texts) > 4:
        return (
            f"column '{name}' is taken as text: most of its values are numbers, but not "
            f"{', '.join(repr(text[:20]) for text in odd[:3])}; correct them, or leave the column out"
        )
    return None


def numbers_of(texts: Sequence[object] | NDArray[Any]) -> Floats | None:
    """Return all these texts as numbers, gaps as NaN; None if one is neither."""
    parsed = np.empty(len(texts))
    for row, value in enumerate(texts):
        text = str(value).strip()
        number = np.nan if text in GAPS else number_of(text)
        if number is None:
            return None
        parsed[row] = number
    return parsed
