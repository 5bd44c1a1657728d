"""What stands above the header of a table: a title, who exported it and when, remarks.

It is left out only where nothing else can be meant. The header is the first line with a name for each of the
columns that the lines below have. A header with too few names, as some programs write for a column of row
names, must not be taken for a title and the first row for the header: so the header has no numbers, and where
only one name is missing above it there must be numbers below it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

MOST = 20  # lines that may stand above
SOME = 200  # lines that are looked at
AGREE = 0.9  # of the lines below have as many fields as the header

Record = Sequence[Any]


def titles(records: Sequence[Record]) -> int:
    """Return how many of these records stand above the header.

    >>> titles([("Customers",), ("made", "today"), ("id", "age", "town"), ("a7", "31", "Ulm")])
    2
    >>> titles([("age", "town"), ("a7", "31", "Ulm"), ("b2", "45", "Bonn")])  # ids without a name
    0
    """
    above = range(min(MOST + 1, len(records)))
    return next((k for k in above if begins(records[k : k + SOME], records[:k])), 0)


def begins(records: Sequence[Record], above: Sequence[Record]) -> bool:
    """Return whether the first of these records is the header of the others, with nothing but titles
    above."""
    header, rows = ([_words(record) for record in records] or [[]])[0], [_words(r) for r in records[1:]]
    width, alike = len(header), [row for row in rows if len(row) == len(header)]
    if width < 2 or len(alike) < AGREE * len(rows) or _filled(header) < width - 1:
        return False
    if not above:
        return True
    if not alike or len(set(header)) < width or any(map(_number, header)):
        return False
    longest = max(_filled(_words(record)) for record in above)
    numbers = any(2 * sum(map(_number, column)) > len(column) for column in zip(*alike, strict=True))
    return longest < width - 1 or (longest < width and numbers)


def _words(record: Record) -> list[str]:
    return [str(cell).strip() for cell in record]


def _filled(words: list[str]) -> int:
    return sum(word != "" for word in words)


def _number(word: str) -> bool:
    """Return whether this is a number, a date or the like, and no name."""
    return word.lstrip("+-.,$€£(")[:1].isdigit()
