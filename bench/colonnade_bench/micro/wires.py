"""How fast the wires are: round trips and messages a second, for two sizes, side by side in one run.

    python -m colonnade_bench.micro.wires [--scale 1.0]

`local` is two parties in one process, which is what it is for; `tls` is two processes that talk over
loopback with mutual TLS. A round trip is a message and its answer; messages a second is one
party sending as fast as it can and the other one taking them in, order and checks included. Beside each
stands the processor time that both parties spent on one, which other programs on the machine change less.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import numpy as np

from colonnade.messages import Announce, Piece
from colonnade.net.clock import RealClock
from colonnade.net.endpoint import Endpoint
from colonnade.net.local import LocalHub
from colonnade.net.stream.authority import issue, make_authority
from colonnade.net.stream.certificates import Credentials
from colonnade.net.stream.port import free_ports
from colonnade.net.stream.wire import network_wire

ASKER, SERVER = PAIR = ("asker", "server")
SIZES = (1024, 16 * 1024)
TRIPS, BURSTS = 2000, 80
WINDOW = 256  # messages in a burst; then the other side answers, so that memory stays bounded
REPEATS = 3  # the best counts: other programs can only make a repeat slower

Step = tuple[int, int, int]


@dataclass
class PerMessage:
    """Seconds for one message: by the clock, and of both parties' processors. The best of the repeats."""

    clock: float = float("inf")
    processor: float = float("inf")


Costs = dict[tuple[int, int], PerMessage]


def plan(scale: float) -> list[Step]:
    """What is sent: size, messages until an answer, and how often; both sides follow it."""
    return [
        (size, *step)
        for size in SIZES
        for _ in range(REPEATS)
        for step in ((1, int(TRIPS * scale)), (WINDOW, int(BURSTS * scale)))
    ]


async def ask(net: Endpoint, scale: float) -> Costs:
    """Send everything of the plan and take the time, the other party's processor time included."""
    spent = []
    tag = 0
    for size, count, times in plan(scale):
        values = np.zeros(size // 8)
        begin, processor = time.perf_counter(), time.process_time()
        for _ in range(times):
            for each in range(tag, tag + count):
                await net.send(SERVER, Piece(tag=each, values=values))
            await net.recv(Piece, SERVER, tag)
            tag += count
        spent.append((time.perf_counter() - begin, time.process_time() - processor))
    theirs = (await net.recv(Announce, SERVER, 0)).values
    await net.finish()
    costs: Costs = {}
    for (size, count, times), (clock, ours), their in zip(plan(scale), spent, theirs, strict=True):
        cost = costs.setdefault((size, count), PerMessage())
        cost.clock = min(cost.clock, clock / count / times)
        cost.processor = min(cost.processor, (ours + float(their)) / count / times)
    return costs


async def serve(net: Endpoint, scale: float, *, own_process: bool) -> None:
    """Answer everything of the plan, and tell the processor time if it is not the asker's as well."""
    spent = []
    tag = 0
    for _, count, times in plan(scale):
        processor = time.process_time()
        for _ in range(times):
            first = await net.recv(Piece, ASKER, tag)
            for each in range(tag + 1, tag + count):
                await net.recv(Piece, ASKER, each)
            await net.send(ASKER, Piece(tag=tag, values=first.values))
            tag += count
        spent.append((time.process_time() - processor) * own_process)
    await net.send(ASKER, Announce(tag=0, values=np.array(spent)))
    await net.finish()


async def local(scale: float) -> Costs:
    """The costs of two parties in this process."""
    hub = LocalHub()
    asker, server = (Endpoint(me, PAIR, hub.wire(me), RealClock(), run=1) for me in PAIR)
    costs, _ = await asyncio.gather(ask(asker, scale), serve(server, scale, own_process=False))
    return costs


@asynccontextmanager
async def joined(me: str, folder: str, ports: tuple[int, int]) -> AsyncIterator[Endpoint]:
    """This process as one of the two parties."""
    addresses = {name: ("127.0.0.1", port) for name, port in zip(PAIR, ports, strict=True)}
    wire = network_wire(me, addresses, Credentials.load(folder, me, PAIR), 30.0)
    net = Endpoint(me, PAIR, wire, RealClock(), run=1)
    try:
        await wire.start()
        yield net
    finally:
        await net.close()


def run_server(folder: str, ports: tuple[int, int], scale: float) -> None:
    """Answer until all is done; a process of its own."""

    async def program() -> None:
        async with joined(SERVER, folder, ports) as net:
            await serve(net, scale, own_process=True)

    asyncio.run(program())


def network(scale: float) -> Costs:
    """The costs of two processes with mutual TLS."""

    async def program() -> Costs:
        async with joined(ASKER, folder, ports) as net:
            return await ask(net, scale)

    first, second = free_ports(2)
    ports = first, second
    with tempfile.TemporaryDirectory() as folder:
        make_authority(folder)
        for me in PAIR:
            issue(folder, me)
        arguments = (folder, ports, scale)
        process = multiprocessing.get_context("spawn").Process(target=run_server, args=arguments)
        process.start()
        costs = asyncio.run(program())
        process.join()
    return costs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--scale", type=float, default=1.0, help="how much to send, as a share of the default"
    )
    scale = parser.parse_args().scale
    results = {
        "local": asyncio.run(local(scale)),
        "tls": network(scale),
    }
    print(f"{'wire':6} {'size':>6}  {'trips/s':>8} {'CPU us':>7}  {'messages/s':>10} {'CPU us':>7}")
    for name, costs in results.items():
        for size in SIZES:
            print(f"{name:6} {size:6}", end="")
            for count, width in ((1, 8), (WINDOW, 10)):
                cost = costs[size, count]
                print(f"  {1 / cost.clock:{width},.0f} {1e6 * cost.processor:7.1f}", end="")
            print()


if __name__ == "__main__":
    main()
