"""Weight of evidence: a column's bins as numbers that a linear model can add up.

    WOE of a bin = ln( (its goods / all goods) / (its bads / all bads) )
    IV of a column = sum over bins of (its goods / all goods - its bads / all bads) WOE

A row is bad if its label is the positive one. The label holder joins bins from their counts (`join`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import log

import numpy as np

from colonnade.arrays import Floats, Rows
from colonnade.data.prepare.bins import UNSEEN, ColumnBins, category_bins, number_bins
from colonnade.data.prepare.scaling import numbers
from colonnade.data.read.dates import CLOCK
from colonnade.data.table import Column, RawTable
from colonnade.errors import DataError
from colonnade.job import Woe


@dataclass(frozen=True)
class Weighed:
    """One column's bins with what the label holder told of them: which were joined, their WOE, the IV.

    `group` names the joined bin of every bin; `woe` has one number for each joined bin.
    """

    bins: ColumnBins
    group: tuple[int, ...]
    woe: tuple[float, ...]
    iv: float

    def transform(self, table: RawTable) -> Floats:
        """Return the WOE of every row; 0, which says nothing, where the training rows had no such value."""
        codes = codes_of(table, self.bins)
        by_bin = np.append(np.array(self.woe)[np.array(self.group, dtype=np.int64)], 0.0)
        return np.asarray(by_bin[codes], dtype=np.float64)  # UNSEEN is the last entry

    def joined(self, table: RawTable) -> Rows:
        """Return the joined bin of every row; UNSEEN where the training rows had no such value."""
        codes = codes_of(table, self.bins)
        return np.append(np.array(self.group, dtype=np.int64), UNSEEN)[codes]

    def names(self) -> list[str]:
        """Return the joined bins in words."""
        return [
            self.bins.describe([k for k, g in enumerate(self.group) if g == joined])
            for joined in range(len(self.woe))
        ]


@dataclass(frozen=True)
class Counts:
    """Rows and bads in every bin of a column, of which the first `ordered` have an order."""

    ordered: int
    chained: bool  # bins without an order may be joined with those of a like bad rate: categories
    rows: tuple[int, ...]
    bads: tuple[int, ...]

    def joined(self, group: Sequence[int]) -> Counts:
        """Return the counts of joined bins."""
        rows, bads = [0] * (max(group) + 1), [0] * (max(group) + 1)
        for k, row, bad in zip(group, self.rows, self.bads, strict=True):
            rows[k] += row
            bads[k] += bad
        return replace(self, rows=tuple(rows), bads=tuple(bads))


def make_bins(table: RawTable, categorical: Sequence[str], woe: Woe) -> list[ColumnBins]:
    """Return the bins of every column of a party: text and `categorical` columns by value, others by size."""
    if table.sparse:
        raise DataError(f"{table.name}: sparse columns cannot be weighed; give dense ones, or drop woe")
    found = []
    for column in table.columns:
        values = table.column(column)
        if column in categorical or (values.dtype == object and not is_number(table, column)):
            found.append(category_bins(column, values, woe.least))
        else:
            plain = column_of(table, column, numeric=True).astype(np.float64)
            made = number_bins(column, plain, woe.bins, woe.least, woe.special.get(column, ()))
            found.append(replace(made, dates=table.reading.dates.get(column, CLOCK) != CLOCK))
    return found


def codes_of(table: RawTable, bins: ColumnBins) -> Rows:
    """Return the bin of every row of a table."""
    return bins.codes(column_of(table, bins.column, bins.numeric))


def weigh_columns(table: RawTable, weighed: Sequence[Weighed]) -> RawTable:
    """Return the table with the WOE of every value in its place."""
    values = np.empty((table.rows, len(weighed)))
    for j, each in enumerate(weighed):
        values[:, j] = each.transform(table)
    return replace(table, columns=tuple(each.bins.column for each in weighed), values=values)


# --- what the label holder does with counts ----------------------------------------------------------


def woe_of(counts: Counts) -> tuple[tuple[float, ...], float]:
    """Return the WOE of every bin and the IV of the column; an empty count is taken as half a row."""
    bads, goods = sum(counts.bads), sum(counts.rows) - sum(counts.bads)
    woe, iv = [], 0.0
    for rows, bad in zip(counts.rows, counts.bads, strict=True):
        of_goods = max(rows - bad, 0.5) / max(goods, 0.5)
        of_bads = max(bad, 0.5) / max(bads, 0.5)
        woe.append(log(of_goods / of_bads))
        iv += (of_goods - of_bads) * woe[-1]
    return (tuple(woe), iv) if len(woe) > 1 else ((0.0,) * len(woe), 0.0)


def column_of(table: RawTable, column: str, numeric: bool) -> Column:
    """Return a column's values, text as numbers where the bins are those of numbers."""
    values = table.column(column)
    if numeric and values.dtype == object:
        values = numbers(table.select([column]), [column], {})[:, 0]
    return values


def is_number(table: RawTable, column: str) -> bool:
    """Return whether a column of text can be read as numbers throughout."""
    try:
        column_of(table, column, numeric=True)
    except DataError:
        return False
    return True
