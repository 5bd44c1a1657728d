"""How a CSV file is written: its encoding, what separates its fields, and how its numbers are spelt.

What a job does not say is found out: the encoding from the whole file, the rest from its beginning. Only what
is seen without doubt counts: 1,234 alone may be either a thousand or a fraction, 12,5 and 1.234,5 may not.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Protocol

from colonnade.data.read.titles import MOST, SOME, begins
from colonnade.errors import DataError
from colonnade.job.data_section import NaValue, NaValues

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", " ": "blanks"}
GAPS = (
    "",
    "NA",
    "N/A",
    "n/a",
    "na",
    "#N/A",
    "#NA",
    "null",
    "NULL",
    "Null",
    "None",
    "nan",
    "NaN",
    "NAN",
    "-NaN",
    "-nan",
    "<NA>",
    "<null>",
    "(null)",
    "NaT",
    "N.A.",
    "n.a.",
    "#N/A N/A",
    "1.#IND",
    "1.#QNAN",
    "-1.#IND",
    "-1.#QNAN",
    "\\N",
    "?",
    "-",
    "--",
    "---",
    ".",
    "..",
    "...",
    "#DIV/0!",
    "#VALUE!",
    "#REF!",
    "#NAME?",
    "#NUM!",
    "#NULL!",
)
MOST_TEXT = 1 << 30  # bytes of one field
BEGINNING = 1 << 17  # bytes that are looked at
_MARKS = (  # that of 32 bits begins like that of 16
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# a fraction of three digits behind one mark may as well be thousands; after a zero it may not
_FRACTION = r"[+-]?(0{0}\d+|\d*{0}(\d{{1,2}}|\d{{4,}})([eE][+-]?\d+)?|\d{{1,3}}({1}\d{{3}})+{0}\d+)"
_POINT = re.compile(_FRACTION.format(r"\.", ","))
_COMMA = re.compile(_FRACTION.format(",", r"\."))


@dataclass(frozen=True)
class Dialect:
    """How a file is written; None is found out.

    `sure` says that its decimal mark was seen or given, and `usual` is the mark where it can be neither.
    `above` is how many lines stand above its header. `dates` are the columns of dates, by pattern, of the
    rows that a model was trained on. `gaps` are values that its owner declares missing: those of every
    column under "", others under the column's name.
    """

    separator: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    encoding: str | None = None
    sure: bool = False
    usual: str | None = None
    above: int = 0
    dates: dict[str, str] | None = None
    gaps: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.separator is not None and len(self.separator) != 1:
            raise DataError(f"separator = {self.separator!r}: give one character, such as ';' or a tab")
        if self.decimal not in (None, ".", ","):
            raise DataError(f"decimal = {self.decimal!r}: numbers have '.' or ',' there")
        if self.decimal is not None and self.decimal == self.thousands:
            raise DataError(f"decimal and thousands are both {self.decimal!r}; they must differ")

    def date_of(self, column: str) -> str | None:
        """Return how a column of dates was written in training, if it was one."""
        return (self.dates or {}).get(column)

    def gaps_of(self, column: str) -> tuple[str, ...]:
        """Return the values that are gaps in a column, as texts."""
        return (*self.gaps.get("", ()), *self.gaps.get(column, ()))

    def said(self) -> list[str]:
        """Return what is unusual about the file, in words."""
        words = []
        if self.separator != ",":
            words.append(
                f"fields are separated by {SEPARATORS.get(str(self.separator), repr(self.separator))}"
            )
        if self.decimal == ",":
            words.append("numbers have a decimal comma")
        if self.encoding not in (None, "utf-8"):
            words.append(f"its encoding is {self.encoding}")
        if self.above:
            words.append(f"{self.above} {'line' if self.above == 1 else 'lines'} above the header left out")
        return [f"read as: {', '.join(words)}"] if words else []


class Describes(Protocol):
    """What a job's [data] and an entry of a catalogue say of how a file is written."""

    @property
    def separator(self) -> str | None: ...
    @property
    def decimal(self) -> str | None: ...
    @property
    def thousands(self) -> str | None: ...
    @property
    def encoding(self) -> str | None: ...
    @property
    def na_values(self) -> NaValues | None: ...


def described(section: Describes) -> Dialect:
    """Return how a file is written, as a job or a catalogue says."""
    return Dialect(
        section.separator, section.decimal, section.thousands, section.encoding, gaps=_gaps(section.na_values)
    )


def _gaps(declared: NaValues | None) -> dict[str, tuple[str, ...]]:
    """Return the declared gaps by column, "" for those of every column.

    >>> _gaps([-999, "9999-12-31"]), _gaps({"income": 99999999})
    ({'': ('-999', '9999-12-31')}, {'income': ('99999999',)})
    """
    by_column = declared if isinstance(declared, Mapping) else {"": declared or ()}
    each = {c: (v,) if isinstance(v, str | int | float) else v for c, v in by_column.items()}
    return {c: tuple(map(_spelt, values)) for c, values in each.items() if values}


def _spelt(value: NaValue) -> str:
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def sniffed(content: bytes, given: Dialect, name: str) -> tuple[bytes, Dialect]:
    """Return the file's content as UTF-8 without a byte order mark, and its dialect with nothing left
    open."""
    encoding, text = _decoded(content, given.encoding, name)
    plain = text.encode() if encoding != "utf-8" else content.removeprefix(codecs.BOM_UTF8)
    separator = given.separator
    if said := re.match(rb'"?sep=(.)"?\r?\n', plain):  # a line that spreadsheets write
        plain, separator = b"\n" + plain[said.end() :], separator or said[1].decode()
    lines = io.StringIO(_beginning(plain), newline="").readlines()
    usual = "\t" if name.lower().endswith(".tsv") else ","
    above = max(_above(lines, separator, usual), int(said is not None))
    plain = b"\n" * above + plain[len("".join(lines[:above]).encode()) :]  # whose lines are counted as before
    beginning = "".join(lines[above:])
    separator = separator or _separator(beginning, usual)
    dialect = replace(
        given, separator=separator, encoding=encoding, sure=given.decimal is not None, above=above
    )
    if given.decimal is None:
        points, commas = _decimal_marks(beginning, separator)
        decimal = "," if (commas and not points) or given.thousands == "." else "."
        seen = points != commas or given.thousands is not None
        if not (points or commas or seen) and given.usual is not None:
            decimal, seen = given.usual, True
        dialect = replace(dialect, decimal=decimal, sure=seen)
    return plain, dialect


def _decoded(content: bytes, encoding: str | None, name: str) -> tuple[str, str]:
    """Return the file's encoding and its text. Text in UTF-8 is seldom anything else; the rest is
    Windows's."""
    if encoding is not None:
        try:
            return codecs.lookup(encoding).name, content.decode(encoding).removeprefix("\ufeff")
        except LookupError:
            raise DataError(f"encoding = {encoding!r} is not known; utf-8, cp1252 and utf-16 are") from None
        except UnicodeError as problem:
            raise DataError(f"{name}: is not written in {encoding} ({problem})") from None
    marked = next((known for mark, known in _MARKS if content.startswith(mark)), None)
    wide = marked is None and b"\0" in content[:200]  # no text of one byte a letter has zeros
    guesses = [marked] if marked else ["utf-16-le", "utf-16-be"] if wide else ["utf-8", "cp1252", "latin-1"]
    for guess in guesses:
        try:
            text = content.decode(guess).removeprefix("\ufeff")
        except UnicodeError:
            continue
        if "\0" in text:  # of a damaged file: it would be part of a value that nobody sees
            line = text.count("\n", 0, text.index("\0")) + 1
            raise DataError(f"{name}: line {line} has a zero byte, so the file is damaged; export it again")
        return guess, text
    raise DataError(f"{name}: is not text in any known encoding; save it as CSV in UTF-8")


def _beginning(plain: bytes) -> str:
    """Return whole lines from the beginning of the file."""
    if len(plain) <= BEGINNING:
        return plain.decode()
    head = plain[:BEGINNING]
    return head[: head.rfind(b"\n") + 1].decode(errors="ignore")


def _records(beginning: str, separator: str) -> list[list[str]]:
    """Return the records of a piece of CSV that are not blank."""
    csv.field_size_limit(MOST_TEXT)
    records: list[list[str]] = []
    with suppress(csv.Error):  # a field without end: what was read until there must do
        records.extend(filter(None, csv.reader(io.StringIO(beginning, newline=""), delimiter=separator)))
    return records


def _above(lines: list[str], separator: str | None, usual: str) -> int:
    """Return how many lines stand above the header."""
    for above in range(min(MOST + 1, len(lines))):
        rest = "".join(lines[above : above + SOME])
        how = separator or _separator(rest, usual)
        if begins(_records(rest, how), _records("".join(lines[:above]), how)):
            return above
    return 0


def _separator(beginning: str, usual: str) -> str:
    """Return the separator by which most records have as many fields as the header, and the more the
    better."""

    def fit(separator: str) -> tuple[float, int, bool]:
        header, *rows = [len(row) for row in _records(beginning, separator)] or [0]
        agree = rows.count(header) / max(len(rows), 1)
        return (round(agree, 1) if header > 1 else -1.0, header, separator == usual)

    best = max((separator for separator in SEPARATORS if separator != " "), key=fit)
    return " " if fit(best)[1] == 1 and fit(" ")[0] == 1 else best  # text has blanks, too


def _decimal_marks(beginning: str, separator: str) -> tuple[bool, bool]:
    """Return whether any cell has a decimal point for sure, and whether any has a decimal comma."""
    cells = [cell.strip() for record in _records(beginning, separator)[1:] for cell in record]
    return any(map(_POINT.fullmatch, cells)), any(map(_COMMA.fullmatch, cells))
