"""What a key of a job may name: a table whose rows answer for themselves, and that refuses any other name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

from colonnade.errors import JobError


class Named(Protocol):
    """A row of a table: it knows its own name."""

    @property
    def name(self) -> str: ...


Row = TypeVar("Row", bound=Named)


class Choices(dict[str, Row]):
    """Rows by name, for one key of a job. A name that is not there is refused with those that are."""

    def __init__(self, key: str, rows: Iterable[Row]) -> None:
        super().__init__({row.name: row for row in rows})
        self.key = key

    def __missing__(self, name: str) -> Row:
        raise JobError(f"{self.key}: {name!r} is not one of {', '.join(map(repr, self))}")

    def named(self, which: Callable[[Row], bool]) -> str:
        """Return the names of some rows, as a text that proposes them has it."""
        *most, last = [repr(name) for name, row in self.items() if which(row)]
        return f"{', '.join(most)} or {last}" if most else last
