"""What messages between processes cost on this machine: what the simulated world charges for them.

A hub process tells some peers something and hears an answer from each, as a label holder does in every round;
all are processes that talk TLS over loopback. The hub's processor time for one peer more is that of a message
sent and one received, without the waking up that a wait ends with. A straight line through the times of two
sizes gives what a message and a byte cost either end. What is left of a round trip with one peer, once both
ends have handled both messages, is latency: the way through the kernel and the waking up.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import numpy as np

from colonnade.messages import Announce, Piece
from colonnade.net.clock import RealClock
from colonnade.net.endpoint import Endpoint
from colonnade.net.stream.authority import issue, make_authority
from colonnade.net.stream.certificates import Credentials
from colonnade.net.stream.port import free_ports
from colonnade.net.stream.wire import network_wire

HUB = "hub"
SIZES = (512, 8192)  # bytes of the numbers in a message: a batch of 64 rows, and one of 1,024
PEERS = (1, 7)
Addresses = dict[str, tuple[str, int]]


@dataclass(frozen=True)
class MessageCosts:
    """What a message and a byte cost the processor of either end, and how long a message is on its way."""

    us_per_message: float
    ns_per_byte: float
    latency_ms: float

    def network(self) -> dict[str, float]:
        """The costs as keys of the job's [network] section."""
        return vars(self).copy()

    def words(self) -> str:
        """The costs in a sentence."""
        return (
            f"a message {self.us_per_message:.1f} us and {self.ns_per_byte:.2f} ns a byte at either end, "
            f"{1e3 * self.latency_ms:.0f} us on its way"
        )


@dataclass(frozen=True)
class Trip:
    """Seconds in which a hub tells all peers something and hears all answers: processor and clock."""

    peers: int
    size: int
    processor: float
    clock: float


def message_costs(times: int = 400, repeats: int = 5, peers: Sequence[int] = PEERS) -> MessageCosts:
    """Measure what messages cost on this machine."""
    return costs_of([trip for count in peers for trip in trips(count, times, repeats)])


def costs_of(found: Sequence[Trip]) -> MessageCosts:
    """The costs that explain the trips of two numbers of peers and two sizes.

    >>> costs_of([
    ...     Trip(1, 0, 100e-6, 300e-6), Trip(1, 1000, 104e-6, 308e-6),
    ...     Trip(5, 0, 260e-6, 900e-6), Trip(5, 1000, 280e-6, 950e-6),
    ... ])
    MessageCosts(us_per_message=20.0, ns_per_byte=2.0, latency_ms=0.11)
    """
    few, many = (
        sorted((trip for trip in found if trip.peers == peers), key=lambda trip: trip.size)
        for peers in sorted({trip.peers for trip in found})
    )
    more = 2 * (many[0].peers - few[0].peers)  # messages that are sent or received
    short, long = ((b.processor - a.processor) / more for a, b in zip(few, many, strict=True))
    per_byte = max(0.0, (long - short) / (few[1].size - few[0].size))
    per_message = max(0.0, short - few[0].size * per_byte)
    latency = max(0.0, few[0].clock / (2 * few[0].peers) - 2 * short)
    return MessageCosts(round(1e6 * per_message, 3), round(1e9 * per_byte, 3), round(1e3 * latency, 6))


def trips(peers: int, times: int, repeats: int) -> list[Trip]:
    """The best trips of a hub with so many peers, for every size."""
    names = [HUB, *(f"peer{k:02}" for k in range(peers))]
    addresses = {name: ("127.0.0.1", port) for name, port in zip(names, free_ports(len(names)), strict=True)}
    with tempfile.TemporaryDirectory() as folder:
        make_authority(folder)
        for name in names:
            issue(folder, name)
        context = multiprocessing.get_context("spawn")
        others = [
            context.Process(target=_answer, args=(name, folder, addresses, times * repeats))
            for name in names[1:]
        ]
        for process in others:
            process.start()
        try:
            return asyncio.run(_tell(folder, addresses, times, repeats))
        finally:
            for process in others:
                process.join(30)


async def _tell(folder: str, addresses: Addresses, times: int, repeats: int) -> list[Trip]:
    """The hub's part: tell all, hear all, and take the time."""
    best: list[Trip] = []
    tag = 0
    async with _joined(HUB, folder, addresses) as net:
        for size in SIZES:
            values = np.zeros(size // 8)
            spent = []
            for _ in range(repeats):
                clock, processor = time.perf_counter(), time.thread_time()
                for number in range(tag, tag + times):
                    await net.spread(Announce(number, values))
                    await net.gather(Piece, number)
                tag += times
                spent.append((time.thread_time() - processor, time.perf_counter() - clock))
            cpu, wall = (min(each) / times for each in zip(*spent, strict=True))
            best.append(Trip(len(net.peers), size, cpu, wall))
        await net.finish()
    return best


def _answer(me: str, folder: str, addresses: Addresses, times: int) -> None:
    """A peer's part: answer everything; a process of its own."""

    async def program() -> None:
        async with _joined(me, folder, addresses) as net:
            for number in range(len(SIZES) * times):
                heard = await net.recv(Announce, HUB, number)
                await net.send(HUB, Piece(number, heard.values.view(np.uint64)))
            await net.finish()

    asyncio.run(program())


@asynccontextmanager
async def _joined(me: str, folder: str, addresses: Addresses) -> AsyncIterator[Endpoint]:
    """This process as one of the parties."""
    wire = network_wire(me, addresses, Credentials.load(folder, me, tuple(addresses)), 30.0)
    net = Endpoint(me, tuple(addresses), wire, RealClock(), run=1)
    try:
        await wire.start()
        yield net
    finally:
        await net.close()
