"""A look at files that nobody has described yet: what is in them, what may be the label, what the id."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from colonnade.data.categories import gaps_in
from colonnade.data.files import load
from colonnade.data.table import RawTable, count, some

FEW = 20  # a label of classes has no more different values


@dataclass(frozen=True, eq=False)
class Survey:
    """What a file holds."""

    path: Path
    raw: RawTable

    @staticmethod
    def of(path: Path) -> Survey:
        """Read the file as it is, with every column."""
        return Survey(path, load(path, bare=True))

    def has(self, column: str) -> bool:
        """Whether the file has a column of this name."""
        return column in self.raw.columns

    def found(self) -> list[str]:
        """What is in the file, a line each."""
        raw = self.raw
        text = [c for c in raw.columns if not raw.sparse and raw.column(c).dtype == object]
        gaps = {c: n for c in raw.columns if not raw.sparse and (n := int(gaps_in(raw.column(c)).sum()))}
        lines = [f"{count(raw.rows, 'row')}, {count(len(raw.columns), 'column')}: {some(raw.columns, 8)}"]
        lines += [f"text: {some(text, 8)}"] if text else []
        lines += [f"gaps: {some([f'{c} ({n:,} rows)' for c, n in gaps.items()], 8)}"] if gaps else []
        return [*lines, *raw.reading.said, *raw.reading.warned]

    def different(self, column: str) -> int:
        """How many different values a column has."""
        return len(set(self.raw.column(column).tolist()))


def label_candidates(surveys: Sequence[Survey]) -> list[str]:
    """Columns that may be labels: those of one file only with few different values, two first."""
    found: list[tuple[bool, int, str]] = []
    for survey in surveys:
        for column in survey.raw.columns:
            different = survey.different(column)
            alone = sum(other.has(column) for other in surveys) == 1
            if alone and 2 <= different <= FEW:
                found.append((different != 2, len(found), column))
    return [column for _, _, column in sorted(found)]


def id_candidates(surveys: Sequence[Survey]) -> list[str]:
    """Columns that may be ids: in every file, with a value of its own in nearly every row."""
    return [
        column
        for column in surveys[0].raw.columns
        if all(each.has(column) and each.different(column) > 0.9 * each.raw.rows for each in surveys)
    ]


def sparse(surveys: Sequence[Survey]) -> bool:
    """Whether a file has no names for its columns, like LIBSVM."""
    return any(survey.raw.sparse for survey in surveys)


def base_rate(survey: Survey, label: str) -> str:
    """How often each label is there, in words."""
    values, rows = np.unique(survey.raw.column(label).astype(str), return_counts=True)
    if len(values) > FEW:
        return f"{len(values):,} different values"
    return ", ".join(f"{value}: {n:,}" for value, n in zip(values.tolist(), rows.tolist(), strict=True))
