"""Joining of bins by the label holder, from their counts alone.

First those with too few goods or bads to be told, then those that break a monotone order if one is wanted,
then those whose joining costs the least IV until there are no more than wanted. A peer chooses how many bins
there are, so each joining takes the logarithm of their number and not their number: what is smallest, or
costs least, is on top of a heap, and what no longer holds is passed over there.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from itertools import chain, count
from math import log

from colonnade.data.prepare.chain import Chain
from colonnade.data.prepare.woe import Counts
from colonnade.job import Woe

Pair = tuple[int, int]


def join_bins(counts: Counts, woe: Woe) -> tuple[int, ...]:
    """Return which bins become one: the number of the joined bin of every bin."""
    pile = _Pile(counts)
    pile.leave_none_below(woe.cases)
    if woe.monotone:
        pile.make_monotone()
    pile.leave_at_most(woe.most)
    return pile.numbered()


class _Pile:
    """Groups of bins while they are joined, each named by its first bin; ordered ones come first."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts
        self._bads = list(counts.bads)
        self._goods = [rows - bads for rows, bads in zip(counts.rows, counts.bads, strict=True)]
        self._all = max(sum(self._goods), 0.5), max(sum(self._bads), 0.5)
        self._into = list(range(len(self._bads)))  # the group that a group went into, or itself
        self._left = len(self._bads)

    def leave_none_below(self, cases: int) -> None:
        """Join the smallest group with the neighbour that costs least while it has too few of either kind."""
        links = self._links()
        smallest = [(self._size(k), k) for k in self._groups()]
        heapify(smallest)
        while self._left > 1 and smallest[0][0] < cases:
            size, k = heappop(smallest)
            if self._into[k] != k or self._size(k) != size:
                continue
            # one that stands alone goes with any other
            pairs = links.pairs(k) if k in links.before or k in links.after else self._with_any(k)
            one = self._join(min(pairs, key=self._loss), links)
            heappush(smallest, (self._size(one), one))

    def make_monotone(self) -> None:
        """Join ordered neighbours until bad rates only rise or only fall, whichever keeps more IV."""
        ordered = [k for k in self._groups() if k < self._counts.ordered]
        pooled = (self._pooled(ordered, sign) for sign in (1, -1))
        kept = max(pooled, key=lambda pools: sum(self._iv(goods, bads) for _, goods, bads in pools))
        links = Chain(ordered)
        for first, *rest in (members for members, _, _ in kept):
            for other in rest:
                self._join((first, other), links)

    def leave_at_most(self, most: int) -> None:
        """Join the neighbours that cost least until there are so few groups, or none has a neighbour."""
        links = self._links()
        place = {k: place for place, k in enumerate(chain(*self._rows()))}
        cheapest = [(self._loss(pair), place[pair[0]], pair) for pair in links.after.items()]
        heapify(cheapest)
        while self._left > most and cheapest:
            loss, _, (left, right) = heappop(cheapest)
            if links.after.get(left) != right or self._loss((left, right)) != loss:
                continue
            one = self._join((left, right), links)
            place[one] = place[left]
            for pair in links.pairs(one):
                heappush(cheapest, (self._loss(pair), place[pair[0]], pair))

    def numbered(self) -> tuple[int, ...]:
        """Return the number of the group of every bin, in the order of their first bins."""
        fresh, numbers = count(), list[int]()
        for k, into in enumerate(self._into):  # an earlier one, or itself
            numbers.append(next(fresh) if into == k else numbers[into])
        return tuple(numbers)

    def _groups(self) -> Iterator[int]:
        """Yield all groups that are left, in order."""
        return (k for k, into in enumerate(self._into) if into == k)

    def _rows(self) -> tuple[list[int], list[int]]:
        """Return the groups that have neighbours: by their place in the order, and categories by bad rate.

        Joined neighbours have a rate between theirs, so that the second row stays in order, too.
        """
        groups = list(self._groups())
        rest = [k for k in groups if k >= self._counts.ordered] if self._counts.chained else []
        by_rate = sorted(rest, key=lambda k: (_rate(self._goods[k], self._bads[k]), k))
        return [k for k in groups if k < self._counts.ordered], by_rate

    def _links(self) -> Chain:
        """Return who is whose neighbour."""
        ordered, by_rate = self._rows()
        links = Chain(ordered)
        links.add(by_rate)
        return links

    def _with_any(self, k: int) -> Iterator[Pair]:
        return ((min(k, j), max(k, j)) for j in self._groups() if j != k)

    def _join(self, pair: Pair, links: Chain) -> int:
        """Make two groups one; returns its name."""
        one, other = min(pair), max(pair)
        links.remove(other)
        self._into[other] = one
        self._goods[one] += self._goods[other]
        self._bads[one] += self._bads[other]
        self._left -= 1
        return one

    def _size(self, k: int) -> int:
        """Return the fewest rows of either kind."""
        return min(self._goods[k], self._bads[k])

    def _loss(self, pair: Pair) -> float:
        """Return the IV that is lost if these two groups become one."""
        (one, other), goods, bads = pair, self._goods, self._bads
        apart = self._iv(goods[one], bads[one]) + self._iv(goods[other], bads[other])
        return apart - self._iv(goods[one] + goods[other], bads[one] + bads[other])

    def _pooled(self, ordered: list[int], sign: int) -> list[tuple[list[int], int, int]]:
        """Pool adjacent violators: the members, goods and bads of every pool."""
        done: list[tuple[list[int], int, int]] = []
        for k in ordered:
            done.append(([k], self._goods[k], self._bads[k]))
            while len(done) > 1 and sign * _rate(*done[-2][1:]) >= sign * _rate(*done[-1][1:]):
                (later, goods, bads), (earlier, *counts) = done.pop(), done.pop()
                earlier.extend(later)
                done.append((earlier, counts[0] + goods, counts[1] + bads))
        return done

    def _iv(self, goods: int, bads: int) -> float:
        of_goods, of_bads = max(goods, 0.5) / self._all[0], max(bads, 0.5) / self._all[1]
        return (of_goods - of_bads) * log(of_goods / of_bads)


def _rate(goods: int, bads: int) -> float:
    return bads / max(goods + bads, 1)
