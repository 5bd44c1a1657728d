"""Weight of evidence: a column's bins as numbers that a linear model can add up.

    WOE of a bin = ln( (its goods / all goods) / (its bads / all bads) )
    IV of a column = sum over bins of (its goods / all goods - its bads / all bads) WOE

A row is bad if its label is the positive one. Whoever holds the label joins bins from their counts alone:
first those with too few goods or bads to be told, then those that break a monotone order if one is wanted,
then those whose joining costs the least IV until there are no more than wanted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
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
        parts = range(max(group) + 1)
        rows = tuple(sum(r for r, g in zip(self.rows, group, strict=True) if g == k) for k in parts)
        bads = tuple(sum(b for b, g in zip(self.bads, group, strict=True) if g == k) for k in parts)
        return replace(self, rows=rows, bads=bads)


def make_bins(table: RawTable, categorical: Sequence[str], woe: Woe) -> list[ColumnBins]:
    """Return the bins of every column of a party: text and `categorical` columns by value, others by size."""
    if table.sparse:
        raise DataError(f"{table.name}: sparse columns cannot be weighed; give dense ones, or drop woe")
    found = []
    for column in table.columns:
        values = table.column(column)
        if column in categorical or (values.dtype == object and not _is_number(table, column)):
            found.append(category_bins(column, values, woe.least))
        else:
            plain = _column(table, column, numeric=True).astype(np.float64)
            made = number_bins(column, plain, woe.bins, woe.least, woe.special.get(column, ()))
            found.append(replace(made, dates=table.reading.dates.get(column, CLOCK) != CLOCK))
    return found


def codes_of(table: RawTable, bins: ColumnBins) -> Rows:
    """Return the bin of every row of a table."""
    return bins.codes(_column(table, bins.column, bins.numeric))


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


def join_bins(counts: Counts, woe: Woe) -> tuple[int, ...]:
    """Return which bins become one: the number of the joined bin of every bin."""
    pile = _Pile(counts)
    while len(pile.groups) > 1 and pile.smallest() < woe.cases:
        pile.join(*min(pile.with_smallest(), key=pile.loss))
    if woe.monotone:
        pile.make_monotone()
    while len(pile.groups) > woe.most and (pairs := list(pile.pairs())):
        pile.join(*min(pairs, key=pile.loss))
    return pile.numbered()


class _Pile:
    """Groups of bins while they are joined: members, rows and bads of each; ordered ones first, in order."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts
        self.groups: list[list[int]] = [[k] for k in range(len(counts.rows))]

    def size(self, group: Sequence[int]) -> tuple[int, int]:
        """Goods and bads."""
        bads = sum(self._counts.bads[k] for k in group)
        return sum(self._counts.rows[k] for k in group) - bads, bads

    def smallest(self) -> int:
        """Return the fewest rows of either kind that any group has."""
        return min(min(self.size(group)) for group in self.groups)

    def with_smallest(self) -> Iterator[tuple[int, int]]:
        """The pairs that the smallest group may be part of; one that stands alone goes with any other."""
        k = min(range(len(self.groups)), key=lambda k: min(self.size(self.groups[k])))
        pairs = [pair for pair in self.pairs() if k in pair]
        yield from pairs or ((min(k, j), max(k, j)) for j in range(len(self.groups)) if j != k)

    def pairs(self) -> Iterator[tuple[int, int]]:
        """Neighbours: by their place in the order, or, for categories, by their bad rate."""
        ordered = [k for k, group in enumerate(self.groups) if min(group) < self._counts.ordered]
        yield from pairwise(ordered)
        if self._counts.chained:
            rest = [k for k in range(len(self.groups)) if k not in ordered]
            by_rate = sorted(rest, key=lambda k: (self._rate(k), k))
            yield from ((min(pair), max(pair)) for pair in pairwise(by_rate))

    def loss(self, pair: tuple[int, int]) -> float:
        """Return the IV that is lost if these two groups become one."""
        one, other = (self.groups[k] for k in pair)
        return self._iv(one) + self._iv(other) - self._iv([*one, *other])

    def join(self, one: int, other: int) -> None:
        self.groups[one] = sorted(self.groups[one] + self.groups.pop(other))

    def make_monotone(self) -> None:
        """Join ordered neighbours until bad rates only rise or only fall, whichever keeps more IV."""
        apart = [group for group in self.groups if min(group) >= self._counts.ordered]
        ordered = [group for group in self.groups if min(group) < self._counts.ordered]
        kept = max((self._pooled(ordered, sign) for sign in (1, -1)), key=self._total_iv)
        self.groups = kept + apart

    def numbered(self) -> tuple[int, ...]:
        """Return the number of the group of every bin, in the order of their first bins."""
        place = {}
        for number, group in enumerate(sorted(self.groups, key=min)):
            place.update(dict.fromkeys(group, number))
        return tuple(place[k] for k in range(len(place)))

    def _pooled(self, ordered: list[list[int]], sign: int) -> list[list[int]]:
        """Pool adjacent violators."""
        done: list[list[int]] = []
        for group in ordered:
            done.append(group)
            while len(done) > 1 and sign * self._rate_of(done[-2]) >= sign * self._rate_of(done[-1]):
                last = done.pop()
                done[-1] = done[-1] + last
        return done

    def _rate(self, k: int) -> float:
        return self._rate_of(self.groups[k])

    def _rate_of(self, group: Sequence[int]) -> float:
        goods, bads = self.size(group)
        return bads / max(goods + bads, 1)

    def _total_iv(self, groups: list[list[int]]) -> float:
        return sum(self._iv(group) for group in groups)

    def _iv(self, group: Sequence[int]) -> float:
        goods, bads = self.size(group)
        all_goods, all_bads = self.size(range(len(self._counts.rows)))
        of_goods = max(goods, 0.5) / max(all_goods, 0.5)
        of_bads = max(bads, 0.5) / max(all_bads, 0.5)
        return (of_goods - of_bads) * log(of_goods / of_bads)


def _column(table: RawTable, column: str, numeric: bool) -> Column:
    """Return a column's values, text as numbers where the bins are those of numbers."""
    values = table.column(column)
    if numeric and values.dtype == object:
        values = numbers(table.select([column]), [column], {})[:, 0]
    return values


def _is_number(table: RawTable, column: str) -> bool:
    """Return whether a column of text can be read as numbers throughout."""
    try:
        _column(table, column, numeric=True)
    except DataError:
        return False
    return True
