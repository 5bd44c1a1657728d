"""Summing the same arrays over a star, a binary tree and a ring (FDSKL, Figure 4).

The parties are real endpoints on the simulated net. A message takes the link's latency; the receiver takes
it in through one network card, an array at a time, and adds it. So a star waits for its root's card, a
ring for every hop in turn, and a tree for its height:

    star  L + (q - 1) (T + A)        ring  (q - 1) (L + T + A)        tree  ceil(log2 q) (L + T + A)

with L the latency, T an array's time through a card and A that of an addition.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import numpy as np

from colonnade.arrays import Floats
from colonnade.messages import Piece
from colonnade.net.clock import VirtualClock, run_virtual
from colonnade.net.endpoint import Endpoint
from colonnade.net.inprocess.simulated import Link, SimulatedHub

SHAPES = ("star", "tree", "ring")
PARTIES = (2, 4, 8, 16, 32)


@dataclass(frozen=True)
class Machines:
    """Latency, bandwidth and speed of addition: the paper's gigabit network, in round numbers."""

    latency_s: float = 0.5e-3
    bandwidth_bps: float = 1e9
    add_s_per_value: float = 1e-9

    def seconds(self, values: int) -> float:
        """Seconds to take in and add one array (T + A)."""
        return values * (64 / self.bandwidth_bps + self.add_s_per_value)


@dataclass
class Summing:
    """One party of a summation; party 0 is the root."""

    net: Endpoint
    at: int
    q: int
    total: Floats
    machines: Machines

    async def run(self, shape: str) -> None:
        """Take part in a sum of this shape."""
        match shape:
            case "star":
                await self.star()
            case "tree":
                await self.tree()
            case "ring":
                await self.ring()

    async def star(self) -> None:
        """Sum at the root, which takes in everybody's array."""
        if self.at:
            await self.send(0)
            return
        for other in range(1, self.q):
            await self.add(other)

    async def tree(self) -> None:
        """Sum over a binary tree: at height h, party k takes in party k + 2^h if 2^(h+1) divides k."""
        reach = 1
        while reach < self.q:
            if self.at % (2 * reach):
                await self.send(self.at - reach)
                return
            if self.at + reach < self.q:
                await self.add(self.at + reach)
            reach *= 2

    async def ring(self) -> None:
        """Sum from the last party to the one before it, and so on to the root."""
        if self.at + 1 < self.q:
            await self.add(self.at + 1)
        if self.at:
            await self.send(self.at - 1)

    async def send(self, to: int) -> None:
        await self.net.send(_name(to), Piece(0, self.total))

    async def add(self, sender: int) -> None:
        values = (await self.net.recv(Piece, _name(sender), 0)).values
        await self.net.clock.work(self.machines.seconds(values.size))
        self.total = self.total + values


def _name(at: int) -> str:
    return f"party{at:03}"


def summed(shape: str, arrays: list[Floats], machines: Machines) -> tuple[Floats, float]:
    """The total at the root, and the virtual seconds it took."""

    async def main() -> tuple[Floats, float]:
        hub = SimulatedHub(Link(machines.latency_s))
        names = tuple(_name(at) for at in range(len(arrays)))
        nets = [Endpoint(name, names, hub.wire(name), VirtualClock(), run=1) for name in names]
        parties = [
            Summing(net, at, len(arrays), array, machines)
            for at, (net, array) in enumerate(zip(nets, arrays, strict=True))
        ]
        await asyncio.gather(*(party.run(shape) for party in parties))
        seconds = nets[0].clock.now()
        for net in nets:
            await net.close()
        return parties[0].total, seconds

    return run_virtual(main())


def measure(values: int, machines: Machines | None = None) -> dict[str, list[tuple[float, float]]]:
    """Seconds of each shape against the number of parties, for arrays of this many values."""
    machines = machines or Machines()
    rng = np.random.default_rng(0)
    lines: dict[str, list[tuple[float, float]]] = {shape: [] for shape in SHAPES}
    for q in PARTIES:
        arrays = list(rng.standard_normal((q, values)))
        for shape in SHAPES:
            _, seconds = summed(shape, arrays, machines)
            lines[shape].append((float(q), seconds))
    return lines
