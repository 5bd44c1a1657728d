"""The papers' secure sum: masked values along one tree, the masks along another.

Zhang et al., VFB2, Algorithm 1, after Gu et al., FDSKL, Algorithm 3: party l draws a random number
delta_l; v_l + delta_l is summed along T1 and delta_l along a different T2; the root gets
xi1 - xi2 = sum v_l. A tree pairs leaves and partial sums; each pair is added up at a party, its host.

`hosts.py` chooses the trees and the hosts so that no party, and no two of them, learn more than the total.
The default, `MaskedSum`, stands against every coalition, with half the messages.

A "random real number" is here a 64-bit fixed-point number with 37 fractional bits, uniform on [-B, B) with
B = 2^25/q: nothing wraps around, additions are exact, and the only error is that each party rounds its
values to the step, q*2^-38 in the total, with any masks. (In float64 the same masks would cost
q*B*2^-53 in every addition, and digits of a value finer than its mask would pass in clear.) What finite
masks cannot do is hide perfectly: who sees one masked value tells v from v' with advantage |v - v'|/2B,
and who sees t masked copies of the same value knows it to about B/sqrt(3t). Words of the
ring are another matter: their masks have all 64 bits, and hide them perfectly.
"""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Callable, Coroutine, Mapping
from typing import Self

import numpy as np
from numpy.typing import NDArray

from colonnade.arrays import Floats, Words
from colonnade.errors import ColonnadeError, FixedPointOverflow, ProtocolError, SumError
from colonnade.messages import TOPIC_SHIFT, Branch
from colonnade.net.expect import Array, Number
from colonnade.net.network import Network
from colonnade.secure.hosts import Hop, TreePair, choose_trees, unsafe_reason
from colonnade.secure.protocol import N, SumKind, UsedTags, is_words, no_sum

VALUES, MASKS = 0, 1
FRACTION_BITS = 37
STEP = 2.0**-FRACTION_BITS

Ints = NDArray[np.int64]
Own = tuple[Ints, Ints]
"""A party's own numbers: what it puts into T1, and into T2."""


def mask_size(q: int) -> float:
    """Return the size B of masks: as large as the sum of q masked values allows in 63 bits.

    >>> mask_size(8) == 2.0**22, mask_size(9) == 2.0**21
    (True, True)
    """
    return 2.0 ** (62 - FRACTION_BITS - (q - 1).bit_length())


def error_bound(q: int) -> float:
    """Return the most by which a total can be off: every party rounds its values to the step, nothing else
    does."""
    return q * STEP / 2


def branch_tag(tag: int, q: int, tree: int, node: int) -> int:
    """Return the tag of the message with the sum at a node. Every node has its own within the topic, since a
    party may send another several of them in one sum."""
    topic, number = tag >> TOPIC_SHIFT, tag & (1 << TOPIC_SHIFT) - 1
    nodes = 2 * q - 1
    number = (2 * number + tree) * nodes + node
    if number >> TOPIC_SHIFT:
        raise SumError(f"tag {tag} is too large for a sum along trees; number the rounds from 0")
    return topic << TOPIC_SHIFT | number


class TreeSum(SumKind):
    """A `SecureSum` along the trees `choose(q, root)`, by default those that leak to no two parties.

    `give` returns once this party's own numbers are on their way; the sums it hosts for others are added in
    the background. Should one of them fail, the next `give`, `collect`, `settle` or `close` raises why.
    """

    name = "tree"
    hides_pieces = False  # some three of five or more parties learn a piece together

    def __init__(
        self,
        net: Network,
        choose: Callable[[int, int], TreePair] = choose_trees,
        random_bytes: Callable[[int], bytes] = os.urandom,
        B: float | None = None,
    ) -> None:
        self._net = net
        self._choose = choose
        self._me = net.parties.index(net.me)
        self._q = len(net.parties)
        self._masks = _Masks(self._q, B, random_bytes)
        self._used = UsedTags()
        self._hosting = _Background(net.fail)

    @staticmethod
    def gives_away(parties: int) -> str | None:
        return unsafe_reason(parties)

    @classmethod
    def among(cls, net: Network, secrets: Mapping[str, bytes]) -> Self:
        return cls(net)

    async def give(self, piece: Floats | Words, *, root: str, tag: int) -> None:
        await self._begin(piece, root, tag)

    async def collect(self, piece: N, *, tag: int) -> N:
        pair, own = await self._begin(piece, self._net.me, tag)
        top = pair.trees[VALUES].top
        xi1 = await self._value(pair, VALUES, top, own, tag)
        xi2 = await self._value(pair, MASKS, top, own, tag)
        total = xi1 - xi2
        if is_words(piece):
            return total.view(np.uint64)
        if max(total.max(initial=0), -total.min(initial=0)) > self._masks.widest:
            raise no_sum(self._net.peers, tag)
        return total.astype(np.float64) * STEP

    async def settle(self) -> None:
        """Wait until every sum this party hosts for others is on its way: only then may it leave."""
        await self._hosting.settle()

    async def drop(self, tag: int) -> None:
        """Stop hosting sums at nodes of a sum that will not take place."""
        await self._hosting.drop(tag)

    async def close(self) -> None:
        """Drop what is still hosted here; raise what went wrong with it, unless that was raised before."""
        await self._hosting.close()

    async def _begin(self, piece: Floats | Words, root: str, tag: int) -> tuple[TreePair, Own]:
        """Send this party's own numbers, and start to host; the trees, and the numbers."""
        self._hosting.raise_failure()
        self._used.use(tag)
        pair = self._choose(self._q, self._net.parties.index(root))
        own = self._masks.apply(piece)
        for hop in pair.outgoing[self._me]:
            if hop.node == self._me:
                await self._pass_on(hop, own[hop.tree], tag)
            else:
                self._hosting.start(self._host(pair, hop, own, tag), tag)
        return pair, own

    async def _host(self, pair: TreePair, hop: Hop, own: Own, tag: int) -> None:
        await self._pass_on(hop, await self._value(pair, hop.tree, hop.node, own, tag), tag)

    async def _value(self, pair: TreePair, tree: int, node: int, own: Own, tag: int) -> Ints:
        """Return the sum at a node: the own number, or two sums added here, or what its host sends."""
        if node == self._me:
            return own[tree]
        host = pair.trees[tree].host(node)
        if host != self._me:
            return await self._receive(host, tree, node, own[tree].shape, tag)
        join = pair.trees[tree].joins[node - self._q]
        left = await self._value(pair, tree, join.left, own, tag)
        return left + await self._value(pair, tree, join.right, own, tag)

    async def _pass_on(self, hop: Hop, values: Ints, tag: int) -> None:
        message = Branch(branch_tag(tag, self._q, hop.tree, hop.node), hop.tree, hop.node, values)
        await self._net.send(self._net.parties[hop.to], message)

    async def _receive(self, host: int, tree: int, node: int, shape: tuple[int, ...], tag: int) -> Ints:
        sender = self._net.parties[host]
        branch = await self._net.recv(
            Branch,
            sender,
            branch_tag(tag, self._q, tree, node),
            tree=Number(tree, tree),
            node=Number(node, node),
            values=Array(np.dtype(np.int64), shape),
        )
        return branch.values


class _Masks:
    """Fixed-point numbers and the random numbers, of size B, that hide them."""

    def __init__(self, q: int, B: float | None, random_bytes: Callable[[int], bytes]) -> None:
        self._B = mask_size(q) if B is None else B
        mantissa, exponent = math.frexp(self._B)
        if mantissa != 0.5 or not STEP <= self._B <= mask_size(q):
            raise SumError(f"a mask size must be a power of two up to {mask_size(q):g}, not {B}")
        self._bits = exponent + FRACTION_BITS
        self.widest = q * 2 ** (self._bits - 1)  # no total of values that fit their masks is larger
        self._random_bytes = random_bytes

    def apply(self, piece: Floats | Words) -> Own:
        """Return the masked piece, which goes along T1, and its mask, which goes along T2."""
        if is_words(piece):  # all 64 bits of a word are masked, and nothing shows through
            v, delta = piece.view(np.int64), self._draw(piece.shape, 64)
        else:
            v, delta = self._fixed(piece), self._draw(piece.shape, self._bits)
        return v + delta, delta

    def _fixed(self, piece: Floats) -> Ints:
        largest = float(np.abs(piece).max(initial=0.0))
        if not largest <= self._B:  # also catches NaN, which is never smaller
            raise FixedPointOverflow(
                f"a value of size {largest:g} would show through its mask, which is below {self._B:g}; "
                "scale the columns (data.scale = 'zscore' or 'minmax'), give large labels in larger units, "
                "or use a smaller step"
            )
        return np.rint(piece / STEP).astype(np.int64)

    def _draw(self, shape: tuple[int, ...], bits: int) -> Ints:
        """Return numbers of this many bits and either sign: the leading bits of 64 random ones, so without a
        bias."""
        words = np.frombuffer(self._random_bytes(8 * math.prod(shape)), dtype="<i8")
        return (words >> (64 - bits)).reshape(shape)


class _Background:
    """Tasks that nobody awaits, and the first failure among them, which must not go unnoticed."""

    def __init__(self, fail: Callable[[ColonnadeError], None]) -> None:
        self._fail = fail
        self._tasks: dict[asyncio.Task[None], int] = {}  # and the sum that each is for
        self._failure: BaseException | None = None
        self._raised = False

    def start(self, work: Coroutine[None, None, None], tag: int) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = tag
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task)
        if not task.cancelled():
            error = task.exception()  # looked at even if it is not the first, or the loop complains
            self._failure = self._failure or error
            if isinstance(error, ProtocolError):
                self._fail(error)  # others wait for what this task was to send: they are told why now

    def raise_failure(self) -> None:
        if self._failure is not None:
            self._raised = True
            raise self._failure

    async def settle(self) -> None:
        """Wait until no task is left."""
        while self._tasks:
            await asyncio.wait(self._tasks)
        self.raise_failure()

    async def drop(self, tag: int) -> None:
        """Cancel the tasks of a sum."""
        await self._cancel([task for task, known in self._tasks.items() if known == tag])

    async def _cancel(self, tasks: list[asyncio.Task[None]]) -> None:
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def close(self) -> None:
        """Cancel all tasks; raise a failure that was not raised before."""
        await self._cancel(list(self._tasks))
        if not self._raised:
            self.raise_failure()
