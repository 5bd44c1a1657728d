"""Things in a row of which neighbours become one, a pair at a time, each in the same short time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise


class Chain:
    """A row of numbered things, each with the one before and the one after it."""

    def __init__(self, row: Iterable[int]) -> None:
        self.before: dict[int, int] = {}
        self.after: dict[int, int] = {}
        self.add(row)

    def add(self, row: Iterable[int]) -> None:
        """Have another row beside the first, which it does not touch."""
        for one, other in pairwise(row):
            self.after[one], self.before[other] = other, one

    def pairs(self, k: int) -> Iterator[tuple[int, int]]:
        """Yield the pairs of neighbours that one thing is part of."""
        if k in self.before:
            yield self.before[k], k
        if k in self.after:
            yield k, self.after[k]

    def remove(self, k: int) -> None:
        """Take one out; those beside it are neighbours then."""
        before, after = self.before.pop(k, None), self.after.pop(k, None)
        if before is not None:
            self.after.pop(before)
        if after is not None:
            self.before.pop(after)
        if before is not None and after is not None:
            self.after[before], self.before[after] = after, before
