"""What the coalition analysis must agree with: the sum is run on numbers instead of reasoned about.

`learnt` finds how many numbers about the others' values a coalition's view determines: perturb all
values and masks in every way that leaves the view as it is; whatever cannot change was known.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from colonnade.secure.hosts import Join, SumTree, TreePair

Shape = int | tuple["Shape", "Shape"]


def view(
    pair: TreePair, coalition: frozenset[int], v: NDArray[np.float64], delta: NDArray[np.float64]
) -> list[float]:
    """Every number the coalition sees in one run: its own, and what others send to its members."""
    seen = [float(x[i]) for i in sorted(coalition) for x in (v, delta)]
    for tree, numbers in zip(pair.trees, (v + delta, delta), strict=True):

        def run(node: int, asker: int, tree: SumTree = tree, numbers: NDArray[np.float64] = numbers) -> float:
            """Work out the sum at a node on behalf of a party, and note it where that party is told."""
            if node < pair.q:
                host, value = node, float(numbers[node])
            else:
                host, left, right = tree.joins[node - pair.q]
                value = run(left, host) + run(right, host)
            if asker in coalition and host != asker:
                seen.append(value)
            return value

        run(2 * pair.q - 2, pair.root)
    return seen


def learnt(pair: TreePair, coalition: frozenset[int]) -> int:
    """How many independent numbers about the values of the parties outside the coalition it knows."""
    q = pair.q
    units = np.eye(2 * q)
    view_of = np.array([view(pair, coalition, unit[:q], unit[q:]) for unit in units]).T
    _, sizes, directions = np.linalg.svd(view_of)
    invisible = directions[int((sizes > 1e-9).sum()) :]
    others = [i for i in range(q) if i not in coalition]
    free = np.linalg.matrix_rank(invisible[:, others], tol=1e-9) if len(invisible) and others else 0
    return len(others) - int(free)


def shapes(leaves: tuple[int, ...]) -> Iterator[Shape]:
    """Every way to pair up these leaves: 1, 3, 15, 105, ... binary trees."""
    if len(leaves) == 1:
        yield leaves[0]
        return
    first, *rest = leaves
    for chosen in range(2 ** len(rest) - 1):
        left = (first, *(leaf for k, leaf in enumerate(rest) if chosen >> k & 1))
        right = tuple(leaf for leaf in rest if leaf not in left)
        for a in shapes(left):
            for b in shapes(right):
                yield a, b


def placements(shape: Shape, q: int, *, anywhere: bool = False) -> Iterator[SumTree]:
    """Every choice of hosts: each inner node at the host of one of its two parts, or at any party."""

    def grow(shape: Shape, joins: tuple[Join, ...]) -> Iterator[tuple[tuple[Join, ...], int, int]]:
        if isinstance(shape, int):
            yield joins, shape, shape
            return
        for left_joins, left, a in grow(shape[0], joins):
            for both, right, b in grow(shape[1], left_joins):
                for host in range(q) if anywhere else (a, b):
                    yield (*both, Join(host, left, right)), q + len(both), host

    for joins, _, _ in grow(shape, ()):
        yield SumTree(joins)
