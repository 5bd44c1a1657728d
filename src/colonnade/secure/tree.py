"""The papers' secure sum: masked values along one tree, the masks along another.

Zhang et al., VFB2, Algorithm 1, after Gu et al., FDSKL, Algorithm 3: party l draws a random number
delta_l; v_l + delta_l is summed along T1 and delta_l along a different T2; the root gets
xi1 - xi2 = sum v_l. A tree pairs leaves and partial sums; each pair is added up at a party, its host.

Who learns what. "Totally different" trees do not settle it: a host that receives v_l + delta_l in one
tree and delta_l in the other knows v_l. So `choose_schedule` also places the hosts: one half of the
parties adds up masked values and receives no mask, the other half adds up masks and receives no value,
and the root gets both sums and nothing else. Then
- a party alone learns nothing, the root learns the total;
- any number of colluding parties of one half learn nothing, with the root the total;
- with 3 or 4 parties no coalition learns more than an ideal sum would tell it;
- with 5 or more no two do, but some three do, and no choice of trees and hosts can change that: the
  2(q - 1) inner nodes are too few for every party to stand between two neighbours in both trees, so
  some party's value is fenced in by three others;
- with 2 parties the total itself tells the root the other value. No sum helps.
`coalitions.py` derives all this from the schedule, message by message. The default, `MaskedSum`, stands
against every coalition, with half the messages.

A "random real number" is here a 64-bit fixed-point number with 37 fractional bits, uniform on [-B, B) with
B = 2^25/q: nothing wraps around, additions are exact, and the only error is that each party rounds its
values to the step, q*2^-38 in the total, whatever the masks. (In float64 the same masks would cost
q*B*2^-53 in every addition, and digits of a value finer than its mask would pass in clear.) What finite
masks cannot do is hide perfectly: who sees one masked value tells v from v' with advantage |v - v'|/2B,
and who sees t masked copies of the same value knows it to about B/sqrt(3t).
"""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from colonnade.errors import FixedPointOverflow, SumError
from colonnade.messages import TOPIC_SHIFT, Branch
from colonnade.net.transport import Network
from colonnade.secure.protocol import Floats, UsedTags

VALUES, MASKS = 0, 1
FRACTION_BITS = 37
STEP = 2.0**-FRACTION_BITS

Ints = NDArray[np.int64]


class Join(NamedTuple):
    """An inner node: `host` adds up two nodes."""

    host: int
    left: int
    right: int


class Hop(NamedTuple):
    """A message: the sum at `node` of tree `tree` goes to the host of its parent, or to the root."""

    tree: int
    node: int
    sender: int
    to: int


@dataclass(frozen=True)
class Tree:
    """Node l < q is party l's own number; node q + k is the k-th join; the last join holds the sum."""

    joins: tuple[Join, ...]

    @property
    def q(self) -> int:
        return len(self.joins) + 1

    @property
    def top(self) -> int:
        return 2 * self.q - 2

    def host(self, node: int) -> int:
        return node if node < self.q else self.joins[node - self.q].host

    def leaves(self, node: int) -> frozenset[int]:
        """The parties whose numbers are in the sum at this node."""
        if node < self.q:
            return frozenset((node,))
        join = self.joins[node - self.q]
        return self.leaves(join.left) | self.leaves(join.right)


@dataclass(frozen=True)
class Schedule:
    """Who adds up what, for one root: T1 (of values) and T2 (of masks). Parties are numbers here."""

    q: int
    root: int
    trees: tuple[Tree, Tree]

    @cached_property
    def hops(self) -> tuple[Hop, ...]:
        """Every message of one sum. What a host holds already needs none."""
        hops = []
        for t, tree in enumerate(self.trees):
            goal = {child: join.host for join in tree.joins for child in join[1:]} | {tree.top: self.root}
            hops += [Hop(t, node, tree.host(node), to) for node, to in goal.items() if tree.host(node) != to]
        return tuple(hops)

    @cached_property
    def outgoing(self) -> tuple[tuple[Hop, ...], ...]:
        """What each party sends, its own numbers first."""
        ordered = sorted(self.hops, key=lambda hop: hop.node)
        return tuple(tuple(hop for hop in ordered if hop.sender == party) for party in range(self.q))

    @property
    def totally_different(self) -> bool:
        """FDSKL's Definition 2: no subtree with two or more leaves, the whole apart, is in both trees."""
        values, masks = ({tree.leaves(node) for node in range(self.q, tree.top)} for tree in self.trees)
        return not values & masks


class _Growing:
    """A tree being built from its leaves up. A node is passed around with its host."""

    def __init__(self, q: int) -> None:
        self._q = q
        self._joins: list[Join] = []

    def join(self, host: int, left: int, right: int) -> int:
        self._joins.append(Join(host, left, right))
        return self._q + len(self._joins) - 1

    def collect(self, host: int, leaves: list[int]) -> tuple[int, int]:
        """`host` adds these leaves to its own, one by one."""
        node = host
        for leaf in leaves:
            node = self.join(host, node, leaf)
        return node, host

    def merge(self, nodes: list[tuple[int, int]]) -> int:
        """Add up nodes in a balanced way; of two hosts the left one adds."""
        while len(nodes) > 1:
            pairs = zip(nodes[0::2], nodes[1::2], strict=False)
            odd = nodes[len(nodes) // 2 * 2 :]
            nodes = [(self.join(host, left, right), host) for (left, host), (right, _) in pairs] + odd
        return nodes[0][0]

    def tree(self) -> Tree:
        return Tree(tuple(self._joins))


@lru_cache(maxsize=1024)
def choose_schedule(q: int, root: int) -> Schedule:
    """The trees and hosts for q parties and a root, the same at every party without a word.

    The others stand in a row M0 V1 M1 V2 M2 ... (without M0 where their number is even). Each V adds the
    masked value of the M behind it, each M the mask of the V behind it: so every party is the first to
    add its own number in one of the trees, and whoever was sent that number bare in the other needs both
    its neighbours here. The root's mask goes along T2, so that the two parties on top of the trees
    cannot form the total between them.
    """
    if q < 2:
        raise SumError(f"a sum over trees needs two parties or more, not {q}")
    others = [(root + 1 + i) % q for i in range(q - 1)]
    first, row = (others[:1], others[1:]) if q % 2 == 0 else ([], others)
    V, M = row[0::2], row[1::2]

    values = _Growing(q)
    # M0 has no V of its own: the last V takes its value too
    units = [values.collect(v, [m] + first * (v == V[-1])) for v, m in zip(V, M, strict=True)]
    below = values.merge(units) if units else first[0]
    values.join(root, below, root)

    masks = _Growing(q)
    # without M0, V1 has no M of its own: the last M takes its mask too
    givers = [[v] for v in V] if first else [[v] for v in V[1:]]
    givers.append([root] if first else [root, V[0]])
    masks.merge([masks.collect(m, leaves) for m, leaves in zip(first + M, givers, strict=True)])
    return Schedule(q, root, (values.tree(), masks.tree()))


def unsafe_reason(q: int) -> str | None:
    """Why some party learns what it should not when q parties sum along trees; None if none does."""
    if q > 2:
        return None
    return "with two parties the total itself tells the root the other party's values, whatever the trees"


def tree_is_safe(q: int) -> bool:
    """True where no single party learns more than the total, and the total itself hides something.

    >>> [q for q in range(2, 65) if not tree_is_safe(q)]
    [2]
    """
    return unsafe_reason(q) is None


def mask_size(q: int) -> float:
    """B: as large as the sum of q masked values allows in 63 bits.

    >>> mask_size(8) == 2.0**22, mask_size(9) == 2.0**21
    (True, True)
    """
    return 2.0 ** (62 - FRACTION_BITS - (q - 1).bit_length())


def error_bound(q: int) -> float:
    """How far the total may be off: every party rounds its values to the step, and nothing else rounds."""
    return q * STEP / 2


def branch_tag(tag: int, q: int, tree: int, node: int) -> int:
    """Under which tag the sum at a node travels: one of its own within the topic, since a party may send
    another several of them in one sum."""
    topic, number = tag >> TOPIC_SHIFT, tag & (1 << TOPIC_SHIFT) - 1
    nodes = 2 * q - 1
    number = (2 * number + tree) * nodes + node
    if number >> TOPIC_SHIFT:
        raise SumError(f"tag {tag} is too large for a sum along trees; number the rounds from 0")
    return topic << TOPIC_SHIFT | number


class TreeSum:
    """Sums along `schedule(q, root)`, by default the one that leaks to no pair of parties.

    At a party that is not the root, `sum` returns once its own numbers are on their way; the sums it
    hosts for others are added in the background. Should one of them fail, the next `sum`, `settle` or
    `close` raises the reason.
    """

    def __init__(
        self,
        net: Network,
        schedule: Callable[[int, int], Schedule] = choose_schedule,
        random_bytes: Callable[[int], bytes] = os.urandom,
        B: float | None = None,
    ) -> None:
        self._net = net
        self._schedule = schedule
        self._random_bytes = random_bytes
        self._me = net.parties.index(net.me)
        self._q = len(net.parties)
        self._B = mask_size(self._q) if B is None else B
        mantissa, exponent = math.frexp(self._B)
        if mantissa != 0.5 or not STEP <= self._B <= mask_size(self._q):
            raise SumError(f"a mask size must be a power of two up to {mask_size(self._q):g}, not {B}")
        self._mask_bits = exponent + FRACTION_BITS
        self._used = UsedTags()
        self._duties: set[asyncio.Task[None]] = set()
        self._failure: BaseException | None = None
        self._told = False

    async def sum(self, piece: Floats, *, root: str, tag: int) -> Floats | None:
        self._raise_failure()
        self._used.use(tag)
        schedule = self._schedule(self._q, self._net.parties.index(root))
        v = self._fixed(piece)
        delta = self._draw(piece.shape)
        own = (v + delta, delta)
        for hop in schedule.outgoing[self._me]:
            if hop.node == self._me:
                await self._pass_on(hop, own[hop.tree], tag)
            else:
                self._start(self._host(schedule, hop, own, tag))
        if root != self._net.me:
            return None
        top = schedule.trees[VALUES].top
        xi1 = await self._value(schedule, VALUES, top, own, tag)
        xi2 = await self._value(schedule, MASKS, top, own, tag)
        return (xi1 - xi2).astype(np.float64) * STEP

    async def settle(self) -> None:
        """Wait until every sum this party hosts for others is on its way: only then may it leave."""
        while self._duties:
            await asyncio.wait(self._duties)
        self._raise_failure()

    async def close(self) -> None:
        """Drop what is still hosted here; raise what went wrong with it, unless `sum` has done so."""
        for duty in self._duties:
            duty.cancel()
        if self._duties:
            await asyncio.wait(self._duties)
        if not self._told:
            self._raise_failure()

    # -- hosting ------------------------------------------------------------------------------------

    async def _host(self, schedule: Schedule, hop: Hop, own: tuple[Ints, Ints], tag: int) -> None:
        await self._pass_on(hop, await self._value(schedule, hop.tree, hop.node, own, tag), tag)

    async def _value(
        self, schedule: Schedule, tree: int, node: int, own: tuple[Ints, Ints], tag: int
    ) -> Ints:
        """The sum at a node: the own number, or two sums added here, or what its host sends."""
        if node == self._me:
            return own[tree]
        host = schedule.trees[tree].host(node)
        if host != self._me:
            return await self._receive(host, tree, node, own[tree].shape, tag)
        join = schedule.trees[tree].joins[node - self._q]
        left = await self._value(schedule, tree, join.left, own, tag)
        return left + await self._value(schedule, tree, join.right, own, tag)

    async def _pass_on(self, hop: Hop, values: Ints, tag: int) -> None:
        message = Branch(branch_tag(tag, self._q, hop.tree, hop.node), hop.tree, hop.node, values)
        await self._net.send(self._net.parties[hop.to], message)

    async def _receive(self, host: int, tree: int, node: int, shape: tuple[int, ...], tag: int) -> Ints:
        sender = self._net.parties[host]
        branch = await self._net.recv(Branch, sender, branch_tag(tag, self._q, tree, node))
        values = branch.values
        if (branch.tree, branch.node, values.dtype.str, values.shape) != (tree, node, "<i8", shape):
            raise SumError(
                f"{sender} sent {values.shape} {values.dtype} values for node {branch.node} of tree "
                f"{branch.tree} in sum {tag}; {shape} int64 for node {node} of tree {tree} were due"
            )
        return values

    def _start(self, duty: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(duty)
        self._duties.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._duties.discard(task)
        if not task.cancelled() and self._failure is None:
            self._failure = task.exception()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            self._told = True
            raise self._failure

    # -- masking ------------------------------------------------------------------------------------

    def _fixed(self, piece: Floats) -> Ints:
        largest = float(np.abs(piece).max(initial=0.0))
        if not largest <= self._B:  # also catches NaN, which is never smaller
            raise FixedPointOverflow(
                f"a value of size {largest:g} would show through its mask, which is below {self._B:g}; "
                "scale the columns (prepare = 'zscore' or 'minmax') or use a smaller step"
            )
        return np.rint(piece / STEP).astype(np.int64)

    def _draw(self, shape: tuple[int, ...]) -> Ints:
        """Uniform on [-B, B): the leading bits of 64 random ones, so without a bias."""
        words = np.frombuffer(self._random_bytes(8 * math.prod(shape)), dtype="<i8")
        return (words >> (64 - self._mask_bits)).reshape(shape)
