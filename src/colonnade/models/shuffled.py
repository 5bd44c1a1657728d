"""The rows of a block in an order that is never there as a whole: made and read part by part.

A part is gathered when a batch of it is first needed and kept while batches are taken from it; only the parts
used last are kept. Where not even these fit the memory that there is for them, every batch gathers its own
rows.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator

import numpy as np

from colonnade.arrays import Floats, Matrix, Rows
from colonnade.models.linear import RowKernels, let_go, rows_of


class ShuffledRows:
    """`RowKernels` of rows in an order of which `order(k)` gives the k-th part, of `size` rows each.

    At most `most` parts are kept, as `gather` makes them; none, and every batch is gathered by itself.
    """

    def __init__(
        self,
        X: Matrix,
        order: Callable[[int], Rows],
        size: int,
        most: int,
        gather: Callable[[Matrix, Rows], RowKernels] = rows_of,
    ) -> None:
        self._X, self._order, self._size, self._most = X, order, size, most
        self._gather = gather
        self._kept: OrderedDict[int, RowKernels] = OrderedDict()

    def scores(self, start: int, end: int, w: Floats) -> Floats:
        parts = [rows.scores(a, b, w) for rows, a, b in self._parts(start, end)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def gradient(self, start: int, end: int, theta: Floats) -> Floats:
        total, first = None, 0
        for rows, a, b in self._parts(start, end):
            part = rows.gradient(a, b, theta[first : first + b - a])
            total, first = part if total is None else total + part, first + b - a
        return np.zeros((int(self._X.shape[1]), *theta.shape[1:])) if total is None else total

    def values(self, start: int, end: int) -> int:
        if isinstance(self._X, np.ndarray):
            return (end - start) * int(self._X.shape[1])
        return sum(rows.values(a, b) for rows, a, b in self._parts(start, end))

    def _parts(self, start: int, end: int) -> Iterator[tuple[RowKernels, int, int]]:
        """Yield the parts that a range is of, each with the range of its own rows."""
        while start < end:
            number, first = divmod(start, self._size)
            last = min(self._size, first + end - start)
            if self._most:
                yield self._part(number), first, last
            else:
                yield rows_of(self._X, self._order(number)[first:last]), 0, last - first
            start += last - first

    def _part(self, number: int) -> RowKernels:
        known = self._kept.get(number)
        if known is None:
            while len(self._kept) >= self._most:
                self._kept.popitem(last=False)
            known = self._kept[number] = self._gather(self._X, self._order(number))
            if isinstance(self._X, np.ndarray):
                let_go(self._X)
        self._kept.move_to_end(number)
        return known
