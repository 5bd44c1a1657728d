"""Stars, trees and rings against the number of parties (FDSKL, Figure 4): the sums and broadcasts that ship.

Parties are real endpoints on the simulated net, each with one network card (`net/simulated.py`).
With L the latency and T an array's time through a card, the formulas are

    sum over a star       L + (q - 1) T           result over a star            L + (q - 1) T
    sum along two trees   h (L + T) + 2 T         result down a reverse tree    log2(q) (L + T)
    sum around a ring     q (L + T)               result around a ring          (q - 1) (L + T)

with h about log2(q): the papers' sum sends masked values and masks along a tree each, and both arrive at the
root. Seconds are of the net alone; arithmetic is not charged. The ring is here for the figure alone: around
it two neighbours of a party learn its piece together, so none ships.

In rounds of training the result of one is what the shares of the next wait for. A star then loses less than
the formulas say, since the first to hear sends while the last still waits.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from colonnade.job import Broadcast
from colonnade.messages import Backward, Piece
from colonnade.net.clock import VirtualClock, run_virtual
from colonnade.net.endpoint import Endpoint
from colonnade.net.simulated import Link, SimulatedHub
from colonnade.secure.masked import MaskedSum
from colonnade.secure.plain import PlainSum
from colonnade.secure.protocol import SecureSum
from colonnade.secure.tree import TreeSum
from colonnade_bench.common import Bench, Grid, Panel

GIGABIT = Link(latency_s=0.5e-3, bandwidth_bps=1e9)
"""The paper's network, in round numbers."""

PARTIES = (2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32)
Lines = dict[str, list[tuple[float, float]]]


def masked(net: Endpoint) -> MaskedSum:
    """The default sum, with a secret for every pair as if they had agreed on it."""
    return MaskedSum(
        net, {peer: hashlib.sha256(repr(sorted((net.me, peer))).encode()).digest() for peer in net.peers}
    )


@dataclass(frozen=True)
class RingSum:
    """Add up around a ring: the root veils its numbers and passes them on, and every party adds its own.

    Back at the root the veil is taken off. Two neighbours together learn the piece of the party between.
    """

    net: Endpoint

    @property
    def next(self) -> str:
        """The party that follows this one."""
        order = self.net.parties
        return order[(order.index(self.net.me) + 1) % len(order)]

    async def give(self, piece: Any, *, root: str, tag: int) -> None:
        order = self.net.parties
        before = order[order.index(self.net.me) - 1]
        heard = await self.net.recv(Piece, before, tag)
        await self.net.send(self.next, Piece(tag, heard.values + piece))

    async def collect(self, piece: Any, *, tag: int) -> Any:
        veil = np.random.default_rng(tag).standard_normal(piece.shape)
        await self.net.send(self.next, Piece(tag, piece + veil))
        total = (await self.net.recv(Piece, self.net.parties[-1], tag)).values
        return total - veil

    async def settle(self) -> None:
        """Do nothing: no party hosts numbers of others."""

    async def drop(self, tag: int) -> None:
        """Do nothing, for the same reason."""

    async def close(self) -> None:
        """Do nothing, for the same reason."""


async def pass_on(net: Endpoint, message: Backward | None) -> None:
    """Pass a result around the ring: the root begins, and the last party keeps it."""
    order = net.parties
    here = order.index(net.me)
    if message is None:
        (_, message), *_ = await anext(aiter(net.stream(Backward)))
    if here + 1 < len(order):
        await net.send(order[here + 1], message)


@dataclass(frozen=True)
class Way:
    """How numbers go up to the root and how the result comes down; either may be left out."""

    up: Callable[[Endpoint], SecureSum] | None = None
    down: Broadcast | Literal["ring"] | None = None
    rounds: int = 1


SUMS = {
    "masked star": Way(up=masked),
    "plain star": Way(up=PlainSum),
    "tree": Way(up=TreeSum),
    "ring": Way(up=RingSum),
}
RESULTS = {"star": Way(down="star"), "reverse tree": Way(down="tree"), "ring": Way(down="ring")}
TRAINING = {
    "masked star up, star down": Way(masked, "star", rounds=4),
    "masked star up, reverse tree down": Way(masked, "tree", rounds=4),
    "tree up, reverse tree down": Way(TreeSum, "tree", rounds=4),
    "ring up, ring down": Way(RingSum, "ring", rounds=4),
}


async def _take_part(net: Endpoint, secure: SecureSum | None, way: Way, values: int) -> float:
    """One party, the first of which is the root; the virtual time at which it has all it waits for."""
    root, piece = net.parties[0], np.full(values, 0.25)
    for number in range(way.rounds):
        if net.me == root:
            total = piece if secure is None else await secure.collect(piece, tag=number)
            expected = piece[0] * (1 if secure is None else len(net.parties))
            if not np.allclose(total, expected):
                raise ArithmeticError(f"the sum of {len(net.parties)} parties is {total[0]}")
            if way.down == "ring":
                await pass_on(net, Backward(number, total))
            elif way.down is not None:
                await net.spread(Backward(number, total))
        else:
            if secure is not None:
                await secure.give(piece, root=root, tag=number)
            if way.down == "ring":
                await pass_on(net, None)
            elif way.down is not None:
                await net.drain(Backward)
    waits = net.me == root if way.down is None else True
    when = net.clock.now() if waits else 0.0
    if secure is not None:
        await secure.settle()  # others may still need what is added up here
    await net.finish()
    return when


def seconds(q: int, values: int, way: Way, link: Link = GIGABIT) -> float:
    """Simulated seconds for an array of so many values and q parties; of a round, where there are several."""

    async def main() -> float:
        hub = SimulatedHub(link)
        names = tuple(f"party{at:03}" for at in range(q))
        down: Broadcast = "tree" if way.down == "tree" else "star"
        nets = [
            Endpoint(name, names, hub.wire(name), VirtualClock(), run=1, broadcast=down) for name in names
        ]
        sums = [None if way.up is None else way.up(net) for net in nets]
        pairs = zip(nets, sums, strict=True)
        times = await asyncio.gather(*(_take_part(net, secure, way, values) for net, secure in pairs))
        for net in nets:
            await net.close()
        return max(times)

    return run_virtual(main()) / way.rounds


def measure(
    values: int, ways: Mapping[str, Way], parties: Sequence[int] = PARTIES, link: Link = GIGABIT
) -> Lines:
    """Seconds of each way against the number of parties."""
    return {name: [(float(q), seconds(q, values, way, link)) for q in parties] for name, way in ways.items()}


def crossing(lines: Lines, star: str, tree: str) -> int | None:
    """The number of parties from which on a tree is faster than a star; None if it never is."""
    faster = None
    for (q, of_star), (_, of_tree) in zip(lines[star], lines[tree], strict=True):
        if of_tree >= of_star:
            faster = None
        elif faster is None:
            faster = int(q)
    return faster


PARTS = (
    ("one sum", SUMS, "masked star", "tree"),
    ("one result to all", RESULTS, "star", "reverse tree"),
    ("a round of training", TRAINING, "masked star up, star down", "tree up, reverse tree down"),
)
"""What is measured: its name, the ways, and the star and the tree whose lines may cross."""

SIZES = (256, 2**12, 2**14, 2**16)
"""Numbers in an array: the thetas of a usual batch, and more."""


def figure_4(bench: Bench, values: int, parties: Sequence[int] = PARTIES, link: Link = GIGABIT) -> None:
    """Add the figure, its numbers, and where the lines cross."""
    for what, ways, star, tree in PARTS:
        lines = measure(values, ways, parties, link)
        bench.panels.append(Panel(f"Figure 4: {what}", "parties", "simulated seconds", lines))
        rows = [[name, *(1e3 * taken for _, taken in points)] for name, points in lines.items()]
        at = crossing(lines, star, tree)
        where = "nowhere here" if at is None else f"from {at} parties on"
        note = f"{tree} is faster than {star} {where}."
        title = f"Figure 4: {what}, arrays of {values} numbers, simulated milliseconds"
        bench.grids.append(Grid(title, ["way", *(f"{q} parties" for q in parties)], rows, note))
    bench.grids.append(crossings(parties, link))


def crossings(parties: Sequence[int], link: Link) -> Grid:
    """The number of parties from which on a tree is faster, for arrays of several lengths."""
    rows = []
    for values in SIZES:
        row: list[int | None] = [values]
        for _, ways, star, tree in PARTS:
            two = {name: ways[name] for name in (star, tree)}
            row.append(crossing(measure(values, two, parties, link), star, tree))
        rows.append(row)
    heads = ["numbers in an array", *(what for what, *_ in PARTS)]
    note = f"A dash: with up to {max(parties)} parties a star is faster."
    return Grid("Figure 4: parties from which on a tree is faster than a star", heads, rows, note)
