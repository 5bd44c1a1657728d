"""Which trees a sum runs along, and at which party each pair of numbers is added up: its host.

"Totally different" trees (FDSKL, Definition 2) do not settle who learns what: a host that receives
v_l + delta_l in one tree and delta_l in the other knows v_l. So `choose_trees` also places the hosts: one
half of the parties adds up masked values and receives no mask, the other half adds up masks and receives no
value, and the root gets both sums and nothing else. Then
- a party alone learns nothing, the root learns the total;
- any number of colluding parties of one half learn nothing, with the root the total;
- with 3 or 4 parties no coalition learns more than an ideal sum would tell it;
- with 5 or more no two do, but some three do, and no choice of trees and hosts can change that: the
  2(q - 1) inner nodes are too few for every party to stand between two neighbours in both trees, so
  some party's value is fenced in by three others;
- with 2 parties the total itself tells the root the other value. No sum helps.
`attacks.coalitions` derives all this from the trees and hosts, message by message.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

from colonnade.errors import SumError


class Join(NamedTuple):
    """An inner node of a tree: the party `host` adds up two nodes."""

    host: int
    left: int
    right: int


class Hop(NamedTuple):
    """A message of a sum: what is at `node` of tree `tree` goes to the host of its parent, or to the root."""

    tree: int
    node: int
    sender: int
    to: int


@dataclass(frozen=True)
class SumTree:
    """A tree of sums: node l < q is party l's own number, node q + k the k-th join, the last the total."""

    joins: tuple[Join, ...]

    @property
    def q(self) -> int:
        return len(self.joins) + 1

    @property
    def top(self) -> int:
        return 2 * self.q - 2

    def host(self, node: int) -> int:
        """Return the party at which the number of this node is known first."""
        return node if node < self.q else self.joins[node - self.q].host

    def leaves(self, node: int) -> frozenset[int]:
        """Return the parties whose numbers are in the sum at this node."""
        if node < self.q:
            return frozenset((node,))
        join = self.joins[node - self.q]
        return self.leaves(join.left) | self.leaves(join.right)


@dataclass(frozen=True)
class TreePair:
    """The trees of values (T1) and of masks (T2) for one root, with their hosts. Parties are numbers here."""

    q: int
    root: int
    trees: tuple[SumTree, SumTree]

    @cached_property
    def hops(self) -> tuple[Hop, ...]:
        """Every message of one sum. What a host holds already is not sent."""
        hops = []
        for t, tree in enumerate(self.trees):
            goal = {child: join.host for join in tree.joins for child in join[1:]} | {tree.top: self.root}
            hops += [Hop(t, node, tree.host(node), to) for node, to in goal.items() if tree.host(node) != to]
        return tuple(hops)

    @cached_property
    def outgoing(self) -> tuple[tuple[Hop, ...], ...]:
        """The messages that each party sends, its own numbers first."""
        ordered = sorted(self.hops, key=lambda hop: hop.node)
        return tuple(tuple(hop for hop in ordered if hop.sender == party) for party in range(self.q))

    @property
    def totally_different(self) -> bool:
        """True if no subtree of two or more leaves, the whole apart, is in both trees (FDSKL, Def. 2)."""
        values, masks = ({tree.leaves(node) for node in range(self.q, tree.top)} for tree in self.trees)
        return not values & masks


class _GrowingTree:
    """A tree that is built from its leaves up. A node is passed around with its host."""

    def __init__(self, q: int) -> None:
        self._q = q
        self._joins: list[Join] = []

    def join(self, host: int, left: int, right: int) -> int:
        """Add a node at which `host` adds up two others; its number."""
        self._joins.append(Join(host, left, right))
        return self._q + len(self._joins) - 1

    def collect(self, host: int, leaves: list[int]) -> tuple[int, int]:
        """Let `host` add these leaves to its own, one by one; the last node, and its host."""
        node = host
        for leaf in leaves:
            node = self.join(host, node, leaf)
        return node, host

    def merge(self, nodes: list[tuple[int, int]]) -> int:
        """Add up nodes in a balanced way, each two at the host of the left one; the last node."""
        while len(nodes) > 1:
            pairs = zip(nodes[0::2], nodes[1::2], strict=False)
            odd = nodes[len(nodes) // 2 * 2 :]
            nodes = [(self.join(host, left, right), host) for (left, host), (right, _) in pairs] + odd
        return nodes[0][0]

    def finished(self) -> SumTree:
        return SumTree(tuple(self._joins))


@lru_cache(maxsize=1024)
def choose_trees(q: int, root: int) -> TreePair:
    """Return the trees and hosts for q parties and a root; every party computes the same ones.

    The others stand in a row M0 V1 M1 V2 M2 ... (without M0 where their number is even). Each V adds the
    masked value of the M behind it, each M the mask of the V behind it: so every party is the first to add
    its own number in one of the trees, and the party that was sent that number bare in the other needs both
    its neighbours here. The root's mask goes along T2, so that the two parties on top of the trees cannot
    form the total between them.
    """
    if q < 2:
        raise SumError(f"a sum over trees needs two parties or more, not {q}")
    others = [(root + 1 + i) % q for i in range(q - 1)]
    first, row = (others[:1], others[1:]) if q % 2 == 0 else ([], others)
    V, M = row[0::2], row[1::2]

    values = _GrowingTree(q)
    # M0 has no V of its own: the last V takes its value too
    units = [values.collect(v, [m] + first * (v == V[-1])) for v, m in zip(V, M, strict=True)]
    below = values.merge(units) if units else first[0]
    values.join(root, below, root)

    masks = _GrowingTree(q)
    # without M0, V1 has no M of its own: the last M takes its mask too
    givers = [[v] for v in V] if first else [[v] for v in V[1:]]
    givers.append([root] if first else [root, V[0]])
    masks.merge([masks.collect(m, leaves) for m, leaves in zip(first + M, givers, strict=True)])
    return TreePair(q, root, (values.finished(), masks.finished()))


def unsafe_reason(q: int) -> str | None:
    """Return the reason why a sum along trees protects nothing with q parties; None if it does protect."""
    if q > 2:
        return None
    return "with two parties the total itself tells the root the other party's values, along any trees"


def tree_is_safe(q: int) -> bool:
    """Return whether no single party learns more than the total, and the total itself hides something.

    >>> [q for q in range(2, 65) if not tree_is_safe(q)]
    [2]
    """
    return unsafe_reason(q) is None
