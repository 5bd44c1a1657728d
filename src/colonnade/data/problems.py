"""Problems of a job and its files, collected so that a user reads all of them at once."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec


class Problem(msgspec.Struct, frozen=True):
    """One thing that is wrong: where, what, how often, and the line to paste that puts it right.

    `stops` says that nothing can be done until it is put right; other problems are worth a look.
    """

    where: str
    what: str
    count: int = 0  # rows or cells that it is about; 0: it is not about single ones
    remedy: str = ""
    stops: bool = True

    @property
    def line(self) -> str:
        """The problem as one line."""
        return f"{self.where}: {self.what}" if self.where else self.what


def listed(problems: Iterable[Problem], most: int = 12) -> str:
    """Return all problems in one text, for an error."""
    lines = [problem.line for problem in problems]
    more = f"; and {len(lines) - most} more" if len(lines) > most else ""
    return "; ".join(lines[:most]) + more
