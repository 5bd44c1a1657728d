"""The time to send a party's gradient of d_l numbers over that to send one number (CTI: AsySQN, Table 3).

Measured over the real wire (mutual TLS on loopback, two endpoints) and in the simulated link. A
transmission is a message and the receiver's one-number answer, as in a round; both sides pay the fixed
cost of a message, so the ratio starts near 1 and grows with d_l.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import Sequence

import numpy as np

from colonnade.messages import Announce
from colonnade.net.clock import RealClock, VirtualClock, run_virtual
from colonnade.net.endpoint import Endpoint
from colonnade.net.simulated import Link, SimulatedHub
from colonnade.net.stream.authority import issue, make_authority
from colonnade.net.stream.certificates import Credentials
from colonnade.net.stream.port import free_ports
from colonnade.net.stream.wire import network_wire

PAIR = ("asker", "server")
# Table 3: set, d_l, the paper's CTI
PAPER = (
    ("D1 UCI credit", 12, 1.057),
    ("D2 GiveMeSomeCredit", 12, 1.059),
    ("D6 a9a", 16, 1.083),
    ("D4 w8a", 37, 1.187),
    ("D8 MNIST", 98, 1.333),
    ("D7 epsilon", 250, 1.771),
    ("D5 rcv1", 5_904, 5.688),
    ("D3 news20", 169_398, 89.265),
)
SIZES = tuple(sorted({d for _, d, _ in PAPER}))
# the simulated line: one machine room
LATENCY_S, BANDWIDTH_BPS = 50e-6, 1e9


async def trips(net: Endpoint, peer: Endpoint, values: int, times: int, tag: int) -> float:
    """Mean seconds of `times` transmissions one after another."""
    there, back = np.zeros(values), np.zeros(1)

    async def answer() -> None:
        for k in range(times):
            await peer.recv(Announce, net.me, tag + k)
            await peer.send(net.me, Announce(tag + k, back))

    answering = asyncio.ensure_future(answer())
    began = net.clock.now()
    for k in range(times):
        await net.send(peer.me, Announce(tag + k, there))
        await net.recv(Announce, peer.me, tag + k)
    spent = net.clock.now() - began
    await answering
    return spent / times


async def ratios(
    net: Endpoint, peer: Endpoint, sizes: Sequence[int], times: int, trials: int
) -> dict[int, float]:
    """CTI of every size, the median over trials.

    Scalar and vector take turns, so that a busy machine slows both.
    """
    tag = 0
    found: dict[int, list[float]] = {size: [] for size in sizes}
    for _ in range(trials):
        for size in sizes:
            few = max(2, times // (1 + size // 4096))
            scalar = await trips(net, peer, 1, few, tag)
            vector = await trips(net, peer, size, few, tag + few)
            tag += 2 * few
            found[size].append(vector / scalar)
    return {size: statistics.median(each) for size, each in found.items()}


def over_tls(times: int = 200, trials: int = 10, sizes: Sequence[int] = SIZES) -> dict[int, float]:
    """CTI of every size over mutual TLS."""

    async def measure(folder: str) -> dict[int, float]:
        addresses = {name: ("127.0.0.1", port) for name, port in zip(PAIR, free_ports(2), strict=True)}
        wires = [network_wire(me, addresses, Credentials.load(folder, me, PAIR), 30.0) for me in PAIR]
        ends = [Endpoint(me, PAIR, wire, RealClock(), run=1) for me, wire in zip(PAIR, wires, strict=True)]
        try:
            await asyncio.gather(*(wire.start() for wire in wires))
            await trips(ends[0], ends[1], 1, 20, 1 << 40)  # warm-up
            return await ratios(ends[0], ends[1], sizes, times, trials)
        finally:
            await asyncio.gather(*(end.close() for end in ends))

    with tempfile.TemporaryDirectory() as folder:
        make_authority(folder)
        for me in PAIR:
            issue(folder, me)
        return asyncio.run(measure(folder))


def simulated(sizes: Sequence[int] = SIZES) -> dict[int, float]:
    """CTI of every size in the simulated link."""

    async def measure() -> dict[int, float]:
        hub = SimulatedHub(Link(LATENCY_S, BANDWIDTH_BPS))
        ends = [Endpoint(me, PAIR, hub.wire(me), VirtualClock(), run=1) for me in PAIR]
        return await ratios(ends[0], ends[1], sizes, 2, 1)

    return run_virtual(measure())


def table(tls: dict[int, float], link: dict[int, float]) -> list[list[object]]:
    """Rows of d_l, the paper's CTI, ours over TLS, ours in the simulated link."""
    return [[name, d, paper, tls.get(d), link.get(d)] for name, d, paper in PAPER]


def timed(times: int, trials: int) -> tuple[list[list[object]], float]:
    """The table, and the seconds it took to measure."""
    began = time.perf_counter()
    return table(over_tls(times, trials), simulated()), time.perf_counter() - began
