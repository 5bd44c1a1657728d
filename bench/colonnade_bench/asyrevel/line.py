"""How long one exchange takes on a real line: two parties, mutual TLS, small messages (Table 3)."""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path

import numpy as np

from colonnade.arrays import Numbers
from colonnade.messages import Reply, Upload
from colonnade.net.clock import RealClock
from colonnade.net.endpoint import Endpoint
from colonnade.net.stream.authority import issue, make_authority
from colonnade.net.stream.certificates import Credentials
from colonnade.net.stream.port import free_ports
from colonnade.net.stream.wire import network_wire

PARTIES = ("client", "server")
TRIALS = 5


def line_times(d: int, exchanges: int) -> tuple[float, float, float]:
    """Seconds of an exchange that is answered by values, by one derivative, by a gradient of length d."""
    return asyncio.run(_measure(d, exchanges))


async def _measure(d: int, exchanges: int) -> tuple[float, float, float]:
    with tempfile.TemporaryDirectory(prefix="colonnade-") as name:
        folder = Path(name)
        make_authority(folder)
        for party in PARTIES:
            issue(folder, party)
        addresses = {party: ("127.0.0.1", port) for party, port in zip(PARTIES, free_ports(2), strict=True)}
        ends = {}
        wires = []
        for me, peer in (PARTIES, PARTIES[::-1]):
            wire = network_wire(me, addresses, Credentials.load(folder, me, [peer]), 10.0)
            ends[me] = Endpoint(me, PARTIES, wire, RealClock(), run=1)
            wires.append(wire)
        try:
            await asyncio.gather(*(wire.start() for wire in wires))
            sizes = (2, 1, d)
            best = [float("inf")] * len(sizes)
            # in turns, and the best of several: what else the machine does must not fall on one of them
            for trial in range(TRIALS):
                for number, size in enumerate(sizes):
                    first = (trial * len(sizes) + number) * exchanges
                    taken = await _exchange(ends, np.zeros(size), first, exchanges)
                    best[number] = min(best[number], taken)
        finally:
            for end in ends.values():
                await end.close()
    return best[0], best[1], best[2]


async def _exchange(ends: dict[str, Endpoint], answer: Numbers, first: int, count: int) -> float:
    """Mean seconds of so many exchanges, one after another."""

    async def serve() -> None:
        left = count
        while left:
            for sender, upload in await ends["server"].drain(Upload):
                await ends["server"].send(sender, Reply(upload.tag, 0, answer))
                left -= 1

    serving = asyncio.ensure_future(serve())
    outputs = np.zeros((2, 1, 1))
    began = time.perf_counter()
    for number in range(first, first + count):
        await ends["client"].send("server", Upload(number, outputs))
        await ends["client"].recv(Reply, "server", number)
    taken = time.perf_counter() - began
    await serving
    return taken / count
