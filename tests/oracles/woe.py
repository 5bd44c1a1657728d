"""Weight of evidence by the definitions, one row at a time, on pooled columns: slow and plain."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

from colonnade.data.prepare.woe import Counts
from colonnade.job import Woe


def counts(codes: Sequence[int], bad: Sequence[bool]) -> dict[int, tuple[int, int]]:
    """Goods and bads of every bin."""
    found: dict[int, tuple[int, int]] = {}
    for code, is_bad in zip(codes, bad, strict=True):
        goods, bads = found.get(code, (0, 0))
        found[code] = (goods, bads + 1) if is_bad else (goods + 1, bads)
    return found


def woe(tally: dict[int, tuple[int, int]]) -> tuple[dict[int, float], float]:
    """The WOE of every bin, and the IV."""
    goods, bads = (sum(each[k] for each in tally.values()) for k in (0, 1))
    found = {k: math.log((g / goods) / (b / bads)) for k, (g, b) in tally.items()}
    return found, sum((g / goods - b / bads) * found[k] for k, (g, b) in tally.items())


def quantile_bin(values: Sequence[float], bins: int) -> Callable[[float], int]:
    """The number of the quantile bin of a value: how many of the quantiles are below it."""
    ordered = sorted(values)
    edges = {ordered[math.ceil(k * len(ordered) / bins) - 1] for k in range(1, bins)} - {ordered[-1]}
    return lambda value: sum(edge < value for edge in edges)


def best_join(tally: list[tuple[int, int]], most: int) -> list[int]:
    """Neighbours joined one pair at a time, each time the pair that leaves the most IV; all are tried."""
    groups = [[k] for k in range(len(tally))]

    def iv(parts: list[list[int]]) -> float:
        summed = {
            n: (sum(tally[k][0] for k in part), sum(tally[k][1] for k in part))
            for n, part in enumerate(parts)
        }
        return woe(summed)[1]

    while len(groups) > most:
        tried = [[*groups[:k], groups[k] + groups[k + 1], *groups[k + 2 :]] for k in range(len(groups) - 1)]
        groups = max(tried, key=iv)
    return [next(n for n, part in enumerate(groups) if k in part) for k in range(len(tally))]


def join(counts: Counts, terms: Woe) -> tuple[int, ...]:
    """Bins joined as `data.prepare.join` says, with everything looked at anew before every joining."""
    tally = [(rows - bads, bads) for rows, bads in zip(counts.rows, counts.bads, strict=True)]
    groups = [[k] for k in range(len(tally))]

    def size(group: list[int]) -> tuple[int, int]:
        return sum(tally[k][0] for k in group), sum(tally[k][1] for k in group)

    everything = size(list(range(len(tally))))

    def iv(group: list[int]) -> float:
        of_goods, of_bads = (
            max(n, 0.5) / max(of, 0.5) for n, of in zip(size(group), everything, strict=True)
        )
        return (of_goods - of_bads) * math.log(of_goods / of_bads)

    def rate(group: list[int]) -> float:
        goods, bads = size(group)
        return bads / max(goods + bads, 1)

    def pairs() -> list[tuple[int, int]]:
        ordered = [k for k, group in enumerate(groups) if min(group) < counts.ordered]
        rest = [k for k in range(len(groups)) if k not in ordered] if counts.chained else []
        by_rate = sorted(rest, key=lambda k: (rate(groups[k]), k))
        return [(min(pair), max(pair)) for row in (ordered, by_rate) for pair in pairwise(row)]

    def join_cheapest(among: list[tuple[int, int]]) -> None:
        one, other = min(
            among, key=lambda pair: sum(iv(groups[k]) for k in pair) - iv(groups[pair[0]] + groups[pair[1]])
        )
        groups[one] = sorted(groups[one] + groups.pop(other))

    while len(groups) > 1 and min(min(size(group)) for group in groups) < terms.cases:
        k = min(range(len(groups)), key=lambda k: min(size(groups[k])))
        alone = [(min(k, j), max(k, j)) for j in range(len(groups)) if j != k]
        join_cheapest([pair for pair in pairs() if k in pair] or alone)
    if terms.monotone:
        ordered = [group for group in groups if min(group) < counts.ordered]
        best = max((_pooled(ordered, rate, sign) for sign in (1, -1)), key=lambda pools: sum(map(iv, pools)))
        groups = [*best, *(group for group in groups if min(group) >= counts.ordered)]
    while len(groups) > terms.most and pairs():
        join_cheapest(pairs())
    groups.sort(key=min)
    return tuple(next(n for n, group in enumerate(groups) if k in group) for k in range(len(tally)))


def _pooled(ordered: list[list[int]], rate: Callable[[list[int]], float], sign: int) -> list[list[int]]:
    """Neighbours joined from left to right wherever a rate is not beyond the one before."""
    done: list[list[int]] = []
    for group in ordered:
        done.append(group)
        while len(done) > 1 and sign * rate(done[-2]) >= sign * rate(done[-1]):
            done[-2:] = [done[-2] + done[-1]]
    return done


def join_small(counts: list[int], least: int) -> list[list[int]]:
    """The smallest of neighbouring bins joined with its smaller neighbour while it is too small."""
    groups = [[k] for k in range(len(counts))]
    while len(groups) > 1:
        sizes = [sum(counts[k] for k in group) for group in groups]
        k = sizes.index(min(sizes))
        if sizes[k] >= least:
            break
        beside = [j for j in (k - 1, k + 1) if 0 <= j < len(groups)]
        first = min(k, min(beside, key=lambda j: sizes[j]))
        groups[first : first + 2] = [groups[first] + groups[first + 1]]
    return groups
