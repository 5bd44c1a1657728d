"""What a coalition of parties can work out from the messages of one sum.

Every message of a sum is a linear form in the parties' values v and their masks, so what a coalition
learns is linear algebra: pool the forms its members receive, drop the unknowns they made themselves, and
keep the combinations in which every mask cancels. An ideal sum would give its members their own values
and, where the root is among them, the total. All that is left over is the leak. This is exact (integers,
no tolerance) and answers "who must collude?" for the plain, the masked and the papers' tree sum alike.

Gu et al. (FDSKL, Definition 2) ask for two "totally different" trees instead: no subtree with more than
one leaf in both. That is neither enough (it overlooks single leaves and says nothing about who hosts a
node) nor needed; the trees here are judged by what leaks. Linear algebra treats a mask as perfect; how
much a real-valued mask of finite size hides is told in `tree.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from math import gcd

from colonnade.secure.hosts import TreePair, choose_trees

Form = Mapping[int, int]
"""A linear form: unknown -> coefficient. Unknowns 0..q-1 are the parties' values, the rest are masks."""


@dataclass(frozen=True)
class MessageGraph:
    """The messages of one sum: what each party knows by itself, and what it is sent."""

    q: int
    root: int
    makes: tuple[frozenset[int], ...]
    """The unknowns that each party knows because they are its own: its value and its masks."""
    receives: tuple[tuple[Form, ...], ...]
    """What each party is sent."""


def tree_graph(pair: TreePair) -> MessageGraph:
    """Return the messages of the papers' sum: v + delta along the first tree, delta along the second."""
    q = pair.q
    receives: list[list[Form]] = [[] for _ in range(q)]
    for hop in pair.hops:
        leaves = pair.trees[hop.tree].leaves(hop.node)
        masks = {q + i: 1 for i in leaves}
        receives[hop.to].append(masks if hop.tree else dict.fromkeys(leaves, 1) | masks)
    makes = tuple(frozenset({i, q + i}) for i in range(q))
    return MessageGraph(q, pair.root, makes, tuple(map(tuple, receives)))


def plain_graph(q: int, root: int = 0) -> MessageGraph:
    """Return the messages of a plain sum: everybody sends its value to the root in clear."""
    sent: tuple[Form, ...] = tuple({i: 1} for i in range(q) if i != root)
    receives = tuple(sent if i == root else () for i in range(q))
    return MessageGraph(q, root, tuple(frozenset({i}) for i in range(q)), receives)


def masked_graph(q: int, root: int = 0, neighbours: int | None = None) -> MessageGraph:
    """Return the messages of a masked sum: everybody sends its value to the root, plus a mask that it shares
    with each higher party, minus one for each lower party.

    With `neighbours`, parties stand on a circle in the order of their numbers and mask with the nearest.
    """
    reach = q if neighbours is None else neighbours // 2
    near = [(i, j) for i, j in combinations(range(q), 2) if min(j - i, q - j + i) <= reach]
    mask = {pair: q + k for k, pair in enumerate(near)}
    makes = tuple(frozenset({i} | {k for pair, k in mask.items() if i in pair}) for i in range(q))
    sent: tuple[Form, ...] = tuple(
        {i: 1} | {k: 1 if pair[0] == i else -1 for pair, k in mask.items() if i in pair}
        for i in range(q)
        if i != root
    )
    return MessageGraph(q, root, makes, tuple(sent if i == root else () for i in range(q)))


GRAPHS: Mapping[str, Callable[[int, int, int | None], MessageGraph]] = {
    "plain": lambda q, root, neighbours: plain_graph(q, root),
    "tree": lambda q, root, neighbours: tree_graph(choose_trees(q, root)),
    "masked": masked_graph,
}
"""The messages of every kind of sum: of this many parties, to a root, with this many neighbours or all."""


def derives(graph: MessageGraph, coalition: Iterable[int]) -> list[Form]:
    """Return a basis of everything the coalition can work out about the values of the parties outside it.

    >>> derives(plain_graph(3), {0})
    [{1: 1}, {2: 1}]
    >>> derives(masked_graph(3), {0})
    [{1: 1, 2: 1}]
    """
    members = frozenset(coalition)
    own = frozenset[int]().union(*(graph.makes[i] for i in members))
    forms = (
        {unknown: c for unknown, c in form.items() if unknown not in own}
        for i in members
        for form in graph.receives[i]
    )
    # masks have the higher numbers, so they are eliminated first; rows led by a value hold no mask
    basis = {lead: row for lead, row in _echelon(forms).items() if lead < graph.q}
    for lead in sorted(basis, reverse=True):
        for other in basis:
            if other != lead and basis[other].get(lead):
                basis[other] = _eliminate(basis[other], basis[lead], lead)
    return [dict(sorted(basis[lead].items())) for lead in sorted(basis)]


def leaks(graph: MessageGraph, coalition: Iterable[int]) -> bool:
    """Return whether the coalition learns more than an ideal sum would tell it.

    >>> leaks(plain_graph(3), {0}), leaks(masked_graph(3), {0})
    (True, False)
    """
    members = frozenset(coalition)
    # the total minus the members' own values: all that an ideal sum tells, and only where the root is in
    ideal = int(graph.root in members and len(members) < graph.q)
    return len(derives(graph, members)) > ideal


def exposes(graph: MessageGraph, coalition: Iterable[int]) -> bool:
    """Return whether the coalition learns the value of one party outside it, be it from the total alone."""
    return any(len(form) == 1 for form in derives(graph, coalition))


def smallest_leaking_coalition(graph: MessageGraph, upto: int | None = None) -> frozenset[int] | None:
    """Return a smallest coalition that learns more than an ideal sum would tell it; None if there is none.

    >>> smallest_leaking_coalition(plain_graph(4))
    frozenset({0})
    >>> smallest_leaking_coalition(masked_graph(4)) is None
    True
    """
    return _smallest(graph, leaks, upto)


def smallest_exposing_coalition(graph: MessageGraph, upto: int | None = None) -> frozenset[int] | None:
    """Return a smallest coalition that learns the value of a single party outside it. Even an ideal sum has
    one: everybody but one party, the root included.

    >>> sorted(smallest_exposing_coalition(masked_graph(4)))
    [0, 1, 2]
    """
    return _smallest(graph, exposes, upto)


@dataclass(frozen=True)
class CoalitionRow:
    """How many of q parties must collude, for each kind of sum; None: no number suffices."""

    q: int
    more_than_total: dict[str, int | None]
    one_value: dict[str, int | None]


def coalition_table(qs: Iterable[int] = range(2, 9)) -> Iterator[CoalitionRow]:
    """Yield, for each kind of sum, the size of the smallest coalition that learns more than the total, and of
    the smallest that learns some single party's value."""
    for q in qs:
        graphs = {kind: graph(q, 0, None) for kind, graph in GRAPHS.items()}
        yield CoalitionRow(
            q,
            {kind: _size(smallest_leaking_coalition(graph)) for kind, graph in graphs.items()},
            {kind: _size(smallest_exposing_coalition(graph)) for kind, graph in graphs.items()},
        )


def _size(coalition: frozenset[int] | None) -> int | None:
    return None if coalition is None else len(coalition)


def _smallest(
    graph: MessageGraph, learns: Callable[[MessageGraph, Iterable[int]], bool], upto: int | None
) -> frozenset[int] | None:
    for size in range(1, (graph.q - 1 if upto is None else upto) + 1):
        for coalition in combinations(range(graph.q), size):
            if learns(graph, coalition):
                return frozenset(coalition)
    return None


def _echelon(forms: Iterable[Form]) -> dict[int, Form]:
    """Return a basis of the span of the forms, by the leading (highest) unknown of each row."""
    rows: dict[int, Form] = {}
    for form in forms:
        row = form
        while row:
            lead = max(row)
            if lead not in rows:
                rows[lead] = row
                break
            row = _eliminate(row, rows[lead], lead)
    return rows


def _eliminate(row: Form, pivot: Form, unknown: int) -> Form:
    """Return a multiple of `row` plus a multiple of `pivot` in which the unknown is gone."""
    a, b = pivot[unknown], row[unknown]
    mixed = {k: a * row.get(k, 0) - b * pivot.get(k, 0) for k in row.keys() | pivot.keys()}
    left = {k: c for k, c in mixed.items() if c}
    if not left:
        return left
    scale = gcd(*left.values()) * (1 if left[max(left)] > 0 else -1)
    return {k: c // scale for k, c in left.items()}
