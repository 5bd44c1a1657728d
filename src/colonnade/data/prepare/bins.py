"""Bins of a column: quantiles of numbers, values of categories; gaps and special values have their own.

A party makes the bins of its own columns by itself. No bin has fewer than `least` training rows, since
others will see counts per bin: small neighbours are joined, rare categories become one, and all that is still
too small (a few gaps, a rare special value) goes with the column's largest bin.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

import numpy as np

from colonnade.arrays import Floats, Rows
from colonnade.data.prepare.chain import Chain
from colonnade.data.prepare.labels import category_codes, category_names
from colonnade.data.read.dates import date_words
from colonnade.data.table import Column

UNSEEN = -1  # the code of a value that the training rows did not have


@dataclass(frozen=True)
class ColumnBins:
    """The bins of one column, numbered: ordered ones first, then categories or special values, then gaps.

    A number belongs to the first bin whose edge is not below it; one more bin is above the last edge.
    `special` numbers and `categories` name their bin; several may share one. `other` is for categories
    that are not listed, `missing` for gaps; either may be UNSEEN.
    """

    column: str
    numeric: bool
    count: int
    edges: tuple[float, ...] = ()
    special: tuple[tuple[float, int], ...] = ()
    categories: tuple[tuple[str, int], ...] = ()
    other: int = UNSEEN
    missing: int = UNSEEN
    dates: bool = False  # numbers are days from 1970

    @property
    def ordered(self) -> int:
        """How many bins have an order: those of plain numbers."""
        return len(self.edges) + 1 if self.numeric else 0

    def codes(self, values: Column) -> Rows:
        """Return the bin of every value; UNSEEN for what the training rows did not have."""
        return self._number_codes(values) if self.numeric else self._category_codes(values)

    def _number_codes(self, values: Column) -> Rows:
        numbers = values.astype(np.float64)
        codes = np.searchsorted(np.array(self.edges), numbers, side="left").astype(np.int64)
        for value, code in self.special:
            codes[numbers == value] = code
        codes[np.isnan(numbers)] = self.missing
        return codes

    def _category_codes(self, values: Column) -> Rows:
        names = [name for name, _ in self.categories]
        places = category_codes(values, names)
        known = np.array([*(code for _, code in self.categories), self.other], dtype=np.int64)
        codes = known[places]  # a place of -1 is the last entry: other
        codes[gaps(values)] = self.missing
        return codes

    def describe(self, members: Sequence[int]) -> str:
        """Return these bins in words: an interval, the categories, special values, a gap."""
        words = []
        if low := [k for k in members if k < self.ordered]:
            words.append(self._interval(min(low), max(low)))
        words += [name for name, code in self.categories if code in members]
        words += [f"= {value:g}" for value, code in self.special if code in members]
        words += ["other"] if self.other in members else []
        words += ["missing"] if self.missing in members else []
        return ", ".join(words)

    def _interval(self, first: int, last: int) -> str:
        low = "" if first == 0 else f"> {self._edge(first - 1)}"
        high = "" if last == len(self.edges) else f"<= {self._edge(last)}"
        return " and ".join(part for part in (low, high) if part) or "any number"

    def _edge(self, place: int) -> str:
        edge = self.edges[place]
        return date_words(edge) if self.dates else f"{edge:.6g}"


def gaps(values: Column) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return which values are missing."""
    found = np.array([not str(v).strip() for v in values]) if values.dtype == object else np.isnan(values)
    return np.asarray(found, dtype=np.bool_)


def number_bins(
    column: str, values: Floats, bins: int, least: int, special: Sequence[float] = ()
) -> ColumnBins:
    """Return quantile bins of a number column, at most `bins` of them, each with at least `least` rows."""
    apart = np.isin(values, np.array(special)) if len(special) else np.zeros(len(values), dtype=bool)
    plain = values[~np.isnan(values) & ~apart]
    quantiles = _quantiles(plain, bins)
    counts = np.bincount(np.searchsorted(quantiles, plain, side="left"), minlength=len(quantiles) + 1)
    edges, sizes = _joined(quantiles, counts.tolist(), least)
    places = [(float(v), _place(sizes, int((values == v).sum()), least)) for v in special]
    missing = _place(sizes, int(np.isnan(values).sum()), least)
    shared = sizes.index(max(sizes)) if sizes[0] < least and len(sizes) > 1 else 0

    def code(bin_: int) -> int:
        """Return the number of a bin once plain numbers that are too few share the largest bin, as bin 0."""
        return 0 if bin_ == shared else bin_ - (0 < shared < bin_)

    seen = tuple((value, code(k)) for value, k in places if k != UNSEEN)
    missing = code(missing) if missing != UNSEEN else UNSEEN
    return ColumnBins(column, True, len(sizes) - (shared > 0), tuple(edges), special=seen, missing=missing)


def category_bins(column: str, values: Column, least: int) -> ColumnBins:
    """Return a bin for every category with at least `least` rows; the rarer ones share one."""
    gap = gaps(values)
    names = category_names(values[~gap]) if not gap.all() else ()
    codes = category_codes(values, names)
    counts = np.bincount(codes[codes >= 0], minlength=len(names))
    sizes: list[int] = []
    listed = []
    for name, size in zip(names, counts.tolist(), strict=True):
        if size >= least:
            listed.append((name, len(sizes)))
            sizes.append(size)
    rare, missing_rows = int(counts.sum()) - sum(sizes), int(gap.sum())
    # the larger first: the smaller may have to go with it
    if rare >= missing_rows:
        other, missing = _place(sizes, rare, least), _place(sizes, missing_rows, least)
    else:
        missing, other = _place(sizes, missing_rows, least), _place(sizes, rare, least)
    return ColumnBins(column, False, len(sizes), categories=tuple(listed), other=other, missing=missing)


def _quantiles(plain: Floats, bins: int) -> Floats:
    """Return the inner edges of quantile bins: values of the column, each once, the largest left out."""
    if not len(plain):
        return np.empty(0)
    edges: Floats = np.unique(np.quantile(plain, np.arange(1, bins) / bins, method="inverted_cdf"))
    inner: Floats = edges[edges < plain.max()]
    return inner


def _joined(edges: Floats, counts: list[int], least: int) -> tuple[list[float], list[int]]:
    """Return the bins with the smallest joined to its smaller neighbour for as long as one is below
    `least`."""
    links = Chain(range(len(counts)))
    size, last = dict(enumerate(counts)), list(range(len(counts)))  # of a bin that is named by its first
    smallest = [(rows, k) for k, rows in size.items()]
    heapify(smallest)
    while len(size) > 1 and smallest[0][0] < least:
        rows, k = heappop(smallest)
        if size.get(k) != rows:  # it was joined meanwhile
            continue
        one, other = min(links.pairs(k), key=lambda pair: size[pair[0]] + size[pair[1]])
        links.remove(other)
        size[one] += size.pop(other)
        last[one] = last[other]
        heappush(smallest, (size[one], one))
    return [float(edges[last[k]]) for k in size if last[k] < len(edges)], list(size.values())


def _place(sizes: list[int], rows: int, least: int) -> int:
    """Return the bin for some more rows: one of their own, or the largest there is if they are too few."""
    if rows == 0:
        return UNSEEN
    if rows >= least or not sizes:
        sizes.append(rows)
        return len(sizes) - 1
    largest = sizes.index(max(sizes))
    sizes[largest] += rows
    return largest
