"""What people agree on beside the numbers: for what a job is, under which contract, until when, how often.

Names that others read are in one script: two that look alike, as Latin and Cyrillic letters do, cannot be
told apart on a page.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from datetime import UTC, date, datetime

from colonnade.errors import JobError

LONGEST = 200  # of a purpose, a contract, a contact
WRITTEN_TOGETHER = {"HIRAGANA", "KATAKANA", "CJK", "HANGUL", "BOPOMOFO"}  # by people who write one of them
NEUTRAL = {"DIGIT", "COMBINING", "MODIFIER", "VARIATION"}


def day(text: str) -> date:
    """Return a day; ValueError if it is not written as 2027-03-31."""
    if len(text) != len("2027-03-31"):
        raise ValueError(text)
    return date.fromisoformat(text)


def today() -> date:
    """Return the day in UTC."""
    return datetime.now(UTC).date()


def checked_day(text: str, where: str) -> None:
    """Raise JobError, naming where it stands, unless a last day is written as one, or empty."""
    try:
        day(text or "2027-03-31")
    except ValueError:
        raise JobError(f"{where}: {text!r} is not a date; write it as 2027-03-31") from None


def checked_line(text: str, where: str) -> None:
    """Raise JobError, naming where they stand, unless words for people are one short line."""
    if len(text) > LONGEST or not text.isprintable() or text != text.strip():
        raise JobError(f"{where}: give one line of at most {LONGEST} printable characters")


def is_over(expires: str) -> bool:
    """Return whether a last day has passed; an empty one never does."""
    return bool(expires) and day(expires) < today()


def mixed(names: Iterable[str]) -> str:
    """Return what is wrong with names that are read beside each other; empty if they share one script.

    >>> mixed(["bank", "shop"]), mixed(["банк", "магазин-2"]), mixed(["株式会社", "カード"])
    ('', '', '')
    >>> mixed(["b\\u0430nk"])
    "'b\\\\u0430nk' mixes the scripts CYRILLIC and LATIN; write names in one"
    >>> mixed(["bank", "\\u0455\\u04bb\\u043e\\u0440"])
    "'bank', '\\\\u0455\\\\u04bb\\\\u043e\\\\u0440' mix the scripts CYRILLIC and LATIN; write names in one"
    """
    names = tuple(names)
    for name in names:
        if (plain := unicodedata.normalize("NFKC", name)) != name:
            return f"{name!a} has characters that look like others; write {plain!a}"
        if len(found := _scripts(name)) > 1:
            return f"{name!a} mixes the scripts {' and '.join(sorted(found))}; write names in one"
    if len(found := set[str]().union(*map(_scripts, names))) > 1:
        return (
            f"{', '.join(map(ascii, names))} mix the scripts {' and '.join(sorted(found))}; "
            "write names in one"
        )
    return ""


def one_script(where: str, names: Iterable[str]) -> None:
    """Raise JobError, naming where they stand, unless names share one script."""
    if problem := mixed(names):
        raise JobError(f"{where}: {problem}")


def _scripts(name: str) -> set[str]:
    """Return the scripts of the letters in a name, as Unicode names them."""
    words = {
        unicodedata.name(each, "UNKNOWN").split()[0].split("-")[0] for each in name if each.isalpha()
    } - NEUTRAL
    return {"CJK" if word in WRITTEN_TOGETHER else word for word in words}
