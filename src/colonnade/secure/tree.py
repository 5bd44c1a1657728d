"""The papers' secure sum: masked values along one tree, the masks along another.

Zhang et al., VFB2, Algorithm 1, after Gu et al., FDSKL, Algorithm 3: party l draws a random number
delta_l; v_l + delta_l is summed along T1 and delta_l along a different T2; the root gets
xi1 - xi2 = sum v_l. A tree pairs leaves and partial sums; each pair is added up at a party, its host.

`hosts.py` chooses the trees and the hosts so that no party, and no two of them, learn more than the total.
The default, `MaskedSum`, stands against every coalition, with half the messages.

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

import numpy as np

from colonnade.arrays import Floats, Rows
from colonnade.errors import FixedPointOverflow, SumError
from colonnade.messages import TOPIC_SHIFT, Branch
from colonnade.net.network import Network
from colonnade.secure.hosts import Hop, Schedule, choose_schedule
from colonnade.secure.protocol import UsedTags

VALUES, MASKS = 0, 1
FRACTION_BITS = 37
STEP = 2.0**-FRACTION_BITS

Ints = Rows


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
        if not task.cancelled():
            error = task.exception()  # looked at even if it is not the first, or the loop complains
            self._failure = self._failure or error

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
