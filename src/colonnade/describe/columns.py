"""What is in one party's own columns, as pandas' `describe` says it. Nobody else is told."""

from __future__ import annotations

import msgspec
import numpy as np

from colonnade.arrays import Floats
from colonnade.data.prepare.woe import column_of, is_number
from colonnade.data.read.dates import CLOCK
from colonnade.data.table import Column, RawTable


class ColumnSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One column: of numbers mean, deviation and quantiles; of text the value that is most frequent."""

    column: str
    rows: int
    gaps: int
    distinct: int
    mean: float | None = None
    deviation: float | None = None  # of a sample: n - 1
    least: float | None = None
    lower: float | None = None  # a quarter lies below
    median: float | None = None
    upper: float | None = None
    most: float | None = None
    top: str | None = None
    top_rows: int | None = None
    dates: bool = False  # figures are days since 1970


def summaries(table: RawTable) -> list[ColumnSummary]:
    """Return what is in every column of a dense table; of a sparse one, whose gaps are zeros, of numbers."""
    found = []
    for column in table.columns:
        if is_number(table, column):
            values = np.asarray(column_of(table, column, numeric=True), dtype=float)
            dates = table.reading.dates.get(column, CLOCK) != CLOCK
            found.append(msgspec.structs.replace(_of_numbers(column, values), dates=dates))
        else:
            found.append(_of_text(column, table.column(column)))
    return found


def _of_numbers(column: str, values: Floats) -> ColumnSummary:
    known = values[~np.isnan(values)]
    rows, gaps = len(values), len(values) - len(known)
    if not len(known):
        return ColumnSummary(column=column, rows=rows, gaps=gaps, distinct=0)
    least, lower, median, upper, most = np.quantile(known, [0, 0.25, 0.5, 0.75, 1]).tolist()
    return ColumnSummary(
        column=column,
        rows=rows,
        gaps=gaps,
        distinct=len(np.unique(known)),
        mean=float(known.mean()),
        deviation=float(known.std(ddof=1)) if len(known) > 1 else None,
        least=least,
        lower=lower,
        median=median,
        upper=upper,
        most=most,
    )


def _of_text(column: str, values: Column) -> ColumnSummary:
    known = np.array([str(value) for value in values if value not in ("", None)], dtype=object)
    names, counts = np.unique(known.astype(str), return_counts=True)
    top = int(counts.argmax()) if len(counts) else None
    return ColumnSummary(
        column=column,
        rows=len(values),
        gaps=len(values) - len(known),
        distinct=len(names),
        top=None if top is None else str(names[top]),
        top_rows=None if top is None else int(counts[top]),
    )
