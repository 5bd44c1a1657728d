"""Text that means a date or a time: 31.12.1999, 12/31/99, Dec 31, 1999, 1999-12, 1999-Q4, 19991231, 9:05.

All texts of a column are written in one way or it is no column of dates. Which way that is is a pattern: its
name says in which order day (d), month (m, by name b), quarter (q) and year (y) stand. A year of two digits
may be of either century, so its pattern says where the hundred years begin that it is one of: "dmy:1945".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from colonnade.arrays import Floats

UNSURE = "?"  # dates of which nobody can tell what is the day and what the month
CLOCK, COMPACT = "hms", "compact"
ODD, MANY = 3, 20  # at most ODD different values among at least MANY dates are gaps
FEWEST = 3  # of all numbers of eight digits one in thirty is a date by chance; of three different ones none
FIRST, LAST = 19000101, 21001231  # that such a number means
_YEARS = range(1800, 2200)  # of months without a day: 1200-05 is an article number, 2010-05 is not
_LONGEST = 31  # days of a month; greater numbers can only be years
_CLEARLY = 2  # different days for every different year

_TIME = (
    r"(?:[ T,]+(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,]\d+)?)?"
    r"(?:\s*(?P<half>[AaPp])\.?[Mm]\.?)?\s*(?:(?P<zone>[+-]\d{2}:?(?:\d{2})?)|Z|[A-Z]{3,4})?)?"
)
_D, _M, _Y = r"(?P<d>\d{1,2})", r"(?P<m>\d{1,2})", r"(?P<y>\d{4})"
_B, _MARK, _SAME = r"(?P<b>[^\W\d_]{3,9})", r"(?P<mark>[-/.])", "(?P=mark)"
# how a date may be written, the surest first
_FORMS = {
    "ymd": _Y + _MARK + _M + _SAME + _D + _TIME,
    "dby": _D + r"[-/. ]\s*" + _B + r"[-/. ,]\s*" + _Y + _TIME,
    "bdy": _B + r"\.?\s+" + _D + r"(?:st|nd|rd|th)?,?\s+" + _Y + _TIME,
    "ybd": _Y + r"[-/ ]" + _B + r"[-/ ]" + _D + _TIME,
    "dmy": _D + _MARK + _M + _SAME + _Y + _TIME,
    "mdy": _M + _MARK + _D + _SAME + _Y + _TIME,
    "ym": _Y + r"[-/]" + _M,
    "my": _M + r"[-/]" + _Y,
    "by": _B + r"[-/., ]\s*" + _Y,
    "yb": _Y + r"[-/ ]\s*" + _B,
    "yq": _Y + r"[-/ ]?[Qq](?P<q>[1-4])",
    "qy": r"[Qq](?P<q>[1-4])[-/ ]?" + _Y,
    COMPACT: r"(?P<y>\d{4})(?P<m>\d\d)(?P<d>\d\d)(?:T.*)?",
}
_NAMED = ("dby", "bdy", "ybd")
_MONTHLY = ("by", "yb", "ym", "my", "yq", "qy")
_MONTHS = {name: k + 1 for k, name in enumerate(re.findall("...", "janfebmaraprmayjunjulaugsepoctnovdec"))}
_MONTHS |= {"mär": 3, "mrz": 3, "mai": 5, "okt": 10, "dez": 12}
_CLOCK = re.compile(r"(\d{1,3}):(\d{2})(?::(\d{2}(?:\.\d+)?))?")
_LIKE_DATE = re.compile(r"\d{1,4}[-/. ]\s*\w{1,9}[-/. ,]\s*\d{1,4}(?:[ T].*)?")
_EPOCH = datetime(1970, 1, 1)


class Parts(NamedTuple):
    """What the numbers of a date are before it is known which of them is what."""

    first: int
    second: int
    third: int
    mark: str


def date_pattern(texts: Sequence[str]) -> str | None:
    """Return how all these texts write dates, or times of a day and durations: "hms".

    "?" if nobody can tell day from month; None if not all are dates that are written in the same way.

    >>> date_pattern(["31.12.1999"]), date_pattern(["5/31/1945", "5/4/1962"]), date_pattern(["5/4/1962"])
    ('dmy', 'mdy', '?')
    >>> date_pattern(["13/04/19", "01/10/20"]), date_pattern(["1999-12", "2000-03"])
    ('dmy:1970', 'ym')
    """
    if _all(texts, "ymd"):
        return "ymd"
    if all(map(_CLOCK.fullmatch, texts)):
        seconds = {text.count(":") for text in texts}
        return CLOCK if len(seconds) == 1 else None
    for pattern in _NAMED:
        if _all(texts, pattern):
            return pattern
        if _all(texts, pattern, short=True):
            return _with_century(pattern, texts)
    for pattern in _MONTHLY:
        if _all(texts, pattern) and not _seasons(texts, pattern):
            return pattern
    if _all(texts, "dmy"):
        return _day_first([_parts(_found(text, "dmy")) for text in texts])
    return _short_years(texts)


def date_words(days: float) -> str:
    """Return a number of days from 1970 as a date, with the time where it is not midnight.

    >>> date_words(18_365.0), date_words(0.75)
    ('2020-04-13', '1970-01-01 18:00')
    """
    if days == int(days):
        return str(np.datetime64(int(days), "D"))
    return str(np.datetime64(round(days * 1440), "m")).replace("T", " ")


def days_of(text: str, pattern: str) -> float:
    """Return the days from 1970 to a date, or a time in days, that is written like `pattern`; NaN if it is
    none.

    >>> days_of("Jan 2, 1970 6:00 PM", "bdy"), days_of("36:00", "hms"), days_of("2/1/69", "dmy:1930")
    (1.75, 1.5, -364.0)
    """
    text = text.strip()
    if pattern == CLOCK:
        clock = _CLOCK.fullmatch(text)
        if clock is None:
            return float("nan")
        return (int(clock[1]) * 3600 + int(clock[2]) * 60 + float(clock[3] or 0)) / 86400
    form, _, century = pattern.partition(":")
    match = _look(form, bool(century)).fullmatch(text)
    if match is None:
        return float("nan")
    part = {name: value for name, value in match.groupdict().items() if value is not None}
    year = int(part["y"])
    if century:
        year = int(century) + (year - int(century)) % 100
    month = _MONTHS.get(part["b"][:3].lower(), 0) if "b" in part else int(part.get("m", 1))
    month = 3 * int(part["q"]) - 2 if "q" in part else month
    try:
        day = datetime(year, month, int(part.get("d", 1)))
        return (day + _time_of(part) - _EPOCH).total_seconds() / 86400
    except (ValueError, OverflowError):
        return float("nan")


class CompactDates(NamedTuple):
    """Numbers such as 19991231 as days from 1970, and which of them were no dates and became gaps."""

    days: Floats
    odd: NDArray[np.bool_]


def compact_dates(numbers: Floats, *, known: bool = False) -> CompactDates | None:
    """Return numbers of eight digits that nearly all are dates; None if they are not, or too few to be sure.

    Up to three different ones among many may be none, such as 99999999. With `known` it is known that they
    are dates, however few.

    >>> compact_dates(np.array([19700102, 20000229, np.nan, 19691231])).days.tolist()
    [1.0, 11016.0, nan, -1.0]
    >>> compact_dates(np.array([19700102, 20000230, 19691231])) is None
    True
    """
    days = _calendar(numbers)
    odd = ~np.isnan(numbers) & np.isnan(days)
    if known:
        return None if np.isnan(days).all() else CompactDates(days, odd)
    if 2 * odd.sum() > len(odd):
        return None
    least = MANY if odd.any() else FEWEST
    if len(np.unique(days[~np.isnan(days)])) < least or len(np.unique(numbers[odd])) > ODD:
        return None
    return CompactDates(days, odd)


def _calendar(numbers: Floats) -> Floats:
    """Return the days from 1970 of numbers such as 19991231; NaN where they are no dates."""
    days = np.full(len(numbers), np.nan)
    (likely,) = np.nonzero((numbers >= FIRST) & (numbers <= LAST))
    likely = likely[numbers[likely] % 1 == 0]
    year, rest = np.divmod(numbers[likely].astype(np.int64), 10_000)
    month, day = np.divmod(rest, 100)
    real = (month >= 1) & (month <= 12) & (day >= 1)
    months = np.where(real, (year - 1970) * 12 + month - 1, 0).astype("datetime64[M]")
    dates = months.astype("datetime64[D]") + (day - 1).astype("timedelta64[D]")
    real &= dates.astype("datetime64[M]") == months  # there is no 31st of June
    days[likely[real]] = dates[real].astype(np.int64)
    return days


def said_of(name: str, pattern: str) -> str:
    """Return what was done to a column of dates or times."""
    what = "times became parts of a day" if pattern == CLOCK else "dates became days since 1970"
    _, _, century = pattern.partition(":")
    years = f" (years of two digits are those from {century} to {int(century) + 99})" if century else ""
    return f"column '{name}': {what}{years}"


def like_dates(texts: Iterable[str]) -> bool:
    """Return whether all these texts look like dates, whether or not they can be read."""
    return all(map(_LIKE_DATE.fullmatch, texts))


@cache
def _look(form: str, short: bool) -> re.Pattern[str]:
    """Return what a date of this form looks like; `short`: with a year of two digits."""
    return re.compile(_FORMS[form].replace(_Y, r"(?P<y>\d{2})") if short else _FORMS[form])


def _found(text: str, form: str, short: bool = False) -> re.Match[str]:
    """Return a text that is of this form, taken apart."""
    match = _look(form, short).fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not written like {form}")
    return match


def _all(texts: Sequence[str], form: str, *, short: bool = False) -> bool:
    """Return whether all texts are of this form, with months that exist and years of our times."""
    look = _look(form, short)
    return all(_is_date(look.fullmatch(text), form) for text in texts)


def _is_date(match: re.Match[str] | None, form: str) -> bool:
    """Return whether the month of a text exists, and its year is of our times where there is no day."""
    if match is None or ("b" in form and match["b"][:3].lower() not in _MONTHS):
        return False
    if form in ("ym", "my") and not 1 <= int(match["m"]) <= 12:
        return False
    return form not in _MONTHLY or int(match["y"]) in _YEARS


def _seasons(texts: Sequence[str], form: str) -> bool:
    """Return whether these are no months but years of two summers: 2008-09, 2009-10."""
    if form != "ym":
        return False
    matches = [_found(text, form) for text in texts]
    return all(int(match["m"]) == (int(match["y"]) + 1) % 100 for match in matches)


def _parts(match: re.Match[str]) -> Parts:
    return Parts(int(match["d"]), int(match["m"]), int(match["y"]), match["mark"])


def _day_first(dates: Sequence[Parts]) -> str | None:
    """Return whether the day comes before the month or behind it; "?" if nothing shows it."""
    first, second = max(each.first for each in dates), max(each.second for each in dates)
    if min(first, second) > 12:
        return None
    if first > 12 or any(each.mark == "." for each in dates):  # points are for days first
        return "dmy"
    return "mdy" if second > 12 else UNSURE


def _short_years(texts: Sequence[str]) -> str | None:
    """Return the pattern of dates with a year of two digits at their end or their beginning: 13/04/20,
    99-12-31."""
    if not _all(texts, "dmy", short=True):
        return None
    dates = [_parts(_found(text, "dmy", short=True)) for text in texts]
    at_end = _day_first(dates) if max(max(each[:2]) for each in dates) <= _LONGEST else None
    if not _may_begin_with_year(dates) or not _all(texts, "ymd", short=True):
        return at_end if at_end in (None, UNSURE) else _with_century(at_end, texts)
    firsts, thirds = (len({each[k] for each in dates}) for k in (0, 2))
    hyphens = dates[0].mark == "-"  # with points and strokes the year is at the end
    if at_end is None or (hyphens and thirds >= _CLEARLY * firsts > _CLEARLY):
        return _with_century("ymd", texts)
    unsure = at_end == UNSURE or (hyphens and firsts < _CLEARLY * thirds)
    return UNSURE if unsure else _with_century(at_end, texts)


def _may_begin_with_year(dates: Sequence[Parts]) -> bool:
    """Return whether month and day may be the second and the third part."""
    return all(1 <= each.second <= 12 and 1 <= each.third <= _LONGEST for each in dates)


def _with_century(form: str, texts: Sequence[str]) -> str:
    """Return the form with the first of the hundred years that its years of two digits are in.

    They begin in the middle of the longest time without a date, and in the century that brings the dates
    nearest to the year 2000: births of 45 to 99 and 02 are from 1945 to 2002.
    """
    years = np.unique([int(_found(text, form, short=True)["y"]) for text in texts])
    pauses = np.diff(np.append(years, years[0] + 100))
    longest = int(pauses.argmax())
    earliest = int(years[(longest + 1) % len(years)])
    span = 100 - int(pauses[longest])
    century = min((1900, 2000), key=lambda hundred: abs(hundred + earliest + span / 2 - 2000))
    return f"{form}:{century + earliest - int(pauses[longest]) // 2}"


def _time_of(part: dict[str, str]) -> timedelta:
    """Return the time of the day, as it is in Greenwich where a zone is given as a difference."""
    hour, minute, second = (int(part.get(name, 0)) for name in ("hour", "minute", "second"))
    if half := part.get("half", "").lower():
        hour = hour % 12 + 12 * (half == "p")
    if hour > 24 or minute > 59 or second > 60:
        raise ValueError("no time of a day")
    time = timedelta(hours=hour, minutes=minute, seconds=second)
    if zone := part.get("zone"):
        ahead = timedelta(hours=int(zone[1:3]), minutes=int(zone[3:].strip(":") or 0))
        time += ahead if zone[0] == "-" else -ahead
    return time
