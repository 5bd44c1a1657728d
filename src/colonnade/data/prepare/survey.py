"""A look at files that nobody has described yet: what is in them, what may be the label, what the id."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from colonnade.data.prepare.categories import Counted, gaps_in
from colonnade.data.read.facts import facts_of
from colonnade.data.read.files import load
from colonnade.data.table import RawTable, count, some
from colonnade.job.source import Source

FEW = 20  # a label of classes has no more different values
CHANCE = 0.1  # of the rows may have a value in common with another file that means nothing


@dataclass(frozen=True, eq=False)
class Survey:
    """What a file holds."""

    path: Source
    raw: RawTable
    # by column, what was read before
    _ids: dict[str, NDArray[np.str_]] = field(default_factory=dict, init=False, repr=False)

    @staticmethod
    def of(path: Source) -> Survey:
        """Read the file as it is, with every column."""
        return Survey(path, load(path, bare=True))

    def has(self, column: str) -> bool:
        """Return whether the file has a column of this name."""
        return self.raw.has(column)

    def found(self, joined_by: str | None = None) -> list[str]:
        """Return what is in the file, a line each; nothing about how ids, in `joined_by`, look: they are
        text."""
        raw = self.raw
        text = [c for c in raw.columns if not raw.sparse and raw.column(c).dtype == object]
        gaps = {c: n for c in raw.columns if not raw.sparse and (n := int(gaps_in(raw.column(c)).sum()))}
        lines = [f"{count(raw.rows, 'row')}, {count(len(raw.columns), 'column')}: {some(raw.columns, 8)}"]
        lines += [*facts_of(self.path), *([f"text: {some(text, 8)}"] if text else [])]
        counted = [f"{c} ({count(n, 'row')})" for c, n in gaps.items()]
        lines += [f"gaps: {some(counted, 8)}"] if gaps else []
        reading = [*raw.reading.said, *raw.reading.warned]
        return [*lines, *(text for text in reading if not text.startswith(f"column '{joined_by}'"))]

    def different(self, column: str) -> int:
        """Return how many different values a column has."""
        return len(set(self.raw.column(column).tolist()))

    def tells_apart(self, column: str) -> bool:
        """Return whether a column has a value of its own in nearly every row."""
        return self.different(column) > 0.9 * self.raw.rows

    def telling(self) -> dict[str, set[str]]:
        """Return the values of all columns that tell rows apart."""
        columns = [] if self.raw.sparse else [c for c in self.raw.columns if self.tells_apart(c)]
        return {column: set(map(_alike, self.raw.column(column).tolist())) for column in columns}

    def ids(self, column: str) -> NDArray[np.str_]:
        """Return the ids in a column, letter by letter as they are written, without gaps."""
        if column not in self._ids:
            written = load(self.path, bare=True, categorical=[column]).column(column)
            self._ids[column] = np.array(
                [one for one in map(str, written.tolist()) if one.strip()], dtype=np.str_
            )
        return self._ids[column]


def _alike(value: object) -> str:
    """Return an id in a form in which most ways to write it are the same: C-007 and c-007, 42.0 and 00042."""
    return str(value).strip().casefold().removesuffix(".0").lstrip("0")


def label_candidates(surveys: Sequence[Survey]) -> list[str]:
    """Return columns that may be labels: those of one file only with few different values, two first."""
    found: list[tuple[bool, int, str]] = []
    for survey in surveys:
        for column in survey.raw.columns:
            different = survey.different(column)
            alone = sum(other.has(column) for other in surveys) == 1
            if alone and 2 <= different <= FEW:
                found.append((different != 2, len(found), column))
    return [column for _, _, column in sorted(found)]


def id_candidates(surveys: Sequence[Survey]) -> list[str]:
    """Return columns that may be ids: in every file, with a value of its own in nearly every row."""
    return [
        column
        for column in surveys[0].raw.columns
        if all(each.has(column) and each.tells_apart(column) for each in surveys)
    ]


def joining_columns(surveys: Sequence[Survey]) -> tuple[str, ...]:
    """Return a column of each file, of any name, by whose values most rows are in all files; () if next to
    none are.

    A few values are common to any two columns of numbers.
    """
    first, *others = [each.telling() for each in surveys]
    best: tuple[str, ...] = ()
    most = CHANCE * min(each.raw.rows for each in surveys)
    for column, values in first.items():
        chosen, shared = [column], values
        for other in others:
            common = {name: shared & theirs for name, theirs in other.items()}
            name = max(common, key=lambda each: len(common[each]), default="")
            chosen, shared = [*chosen, name], common.get(name, set())
        if len(shared) > most:
            best, most = tuple(chosen), len(shared)
    return best


def with_labels(surveys: Sequence[Survey]) -> bool:
    """Return whether a file's format has a place for labels, like LIBSVM."""
    return any(survey.raw.y is not None for survey in surveys)


def base_rate(survey: Survey, label: str) -> str:
    """Return how often each label is there, in words."""
    counted = Counted.of(survey.raw.column(label))
    gaps = [f"no label: {counted.gaps:,}"] if counted.gaps else []
    if len(counted.names) > FEW:
        return ", ".join([f"{len(counted.names):,} different values", *gaps])
    each = zip(counted.names, counted.rows, strict=True)
    return ", ".join([*(f"{value}: {n:,}" for value, n in each), *gaps])
