"""Weight of evidence by the definitions, one row at a time, on pooled columns: slow and plain."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence


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
