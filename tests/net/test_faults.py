"""Faults in the simulated world: the messages of the fault-free run, or a named error at every party."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest
from tests.net.worlds import PARTIES, simulated

from colonnade.errors import Aborted, ColonnadeError, DeadlineExceeded, PeerLost, SumError
from colonnade.messages import Backward, Piece
from colonnade.net.endpoint import Endpoint
from colonnade.net.simulated import Faults, Link, Partition

ROUNDS = 25
PARTED = Partition(start=0.1, end=2.5, side=frozenset({"ant"}))
WEATHER = {
    "drop": Faults(drop=0.2),
    "duplicate": Faults(duplicate=0.3),
    "corrupt": Faults(corrupt=0.2),
    "delay": Faults(delay=0.3, delay_s=0.2),
    "partition": Faults(partitions=(PARTED,)),
    "storm": Faults(drop=0.1, duplicate=0.1, corrupt=0.1, delay=0.1, delay_s=0.3, partitions=(PARTED,)),
}


async def conversation(net: Endpoint) -> list[Any]:
    """Some rounds of sums and broadcasts; everything a party heard, in the order it asked for it."""
    heard: list[Any] = []
    me = net.parties.index(net.me)
    for tag in range(ROUNDS):
        await net.broadcast(Piece(tag=tag, values=np.full(50, 100.0 * me + tag)))
        pieces = await net.gather(Piece, tag)
        heard.append({sender: each.values.tolist() for sender, each in sorted(pieces.items())})
        await net.broadcast(Backward(tag=tag, theta=np.array([float(tag)])))
    thetas: dict[str, list[int]] = {peer: [] for peer in net.peers}
    while any(len(each) < ROUNDS for each in thetas.values()):
        for sender, message in await net.drain(Backward):
            thetas[sender].append(message.tag)
    await net.finish()
    return [*heard, thetas]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("weather", WEATHER)
def test_a_line_with_faults_carries_the_messages_of_a_line_without(weather: str, seed: int) -> None:
    calm = simulated(conversation)
    assert simulated(conversation, faults=WEATHER[weather], seed=seed, deadline=60.0) == calm


def test_faults_are_paid_for_in_bytes_not_in_messages() -> None:
    async def program(net: Endpoint) -> tuple[int, int, int]:
        await conversation(net)
        return net.meter.messages(), net.meter.received_messages, net.meter.overhead

    for messages, received, overhead in simulated(program, faults=WEATHER["storm"], seed=3, deadline=60.0):
        assert messages == received == 2 * (2 * ROUNDS + 1)
        assert overhead > 0
    assert all(overhead == 0 for _, _, overhead in simulated(program))


@pytest.mark.parametrize("at", [0.0, 0.05, 0.13, 0.21])
@pytest.mark.parametrize("victim", PARTIES[:3])
def test_a_crash_is_a_named_error_at_every_live_party(victim: str, at: float) -> None:
    async def program(net: Endpoint) -> ColonnadeError | None:
        try:
            await conversation(net)
        except ColonnadeError as error:
            await net.abort(error)
            return error
        return None

    outcomes = simulated(program, faults=Faults(crash={victim: at}), deadline=5.0)
    for party, error in zip(PARTIES, outcomes, strict=False):
        if party == victim:
            assert isinstance(error, DeadlineExceeded | None)
        else:
            assert isinstance(error, PeerLost | Aborted)
            assert victim in str(error)


def test_a_crash_is_noticed_even_when_everybody_only_waits() -> None:
    async def program(net: Endpoint) -> float:
        with pytest.raises(ColonnadeError):
            await net.gather(Piece, 0)
        return asyncio.get_running_loop().time()

    ant, bee, _ = simulated(program, faults=Faults(crash={"cat": 1.0}), deadline=30.0)
    assert ant == bee == 1.0


def test_a_partition_that_does_not_heal_ends_in_a_named_error_within_the_deadline() -> None:
    async def program(net: Endpoint) -> tuple[str, float]:
        with pytest.raises(DeadlineExceeded) as caught:
            await conversation(net)
        return str(caught.value), asyncio.get_running_loop().time()

    parted = Faults(partitions=(Partition(0.1, float("inf"), frozenset({"ant"})),))
    for text, when in simulated(program, faults=parted, deadline=5.0):
        assert "ant" in text
        assert when < 0.5 + 2 * 5.0


@pytest.mark.parametrize("seed", range(10))
def test_an_abort_arrives_over_a_line_that_drops_a_third(seed: int) -> None:
    async def program(net: Endpoint) -> str:
        if net.me == "bee":
            await net.abort(SumError("no"))
            return "SumError"
        with pytest.raises(Aborted) as caught:
            await net.gather(Piece, 0)
        return str(caught.value)

    texts = simulated(program, PARTIES, faults=Faults(drop=0.33), seed=seed)
    assert set(texts) == {"SumError", "bee ended the run: SumError: no"}


@pytest.mark.parametrize("weather", [*WEATHER, "calm"])
def test_the_same_seed_gives_the_same_events_at_the_same_times(weather: str) -> None:
    faults = WEATHER.get(weather, Faults())

    def log(seed: int) -> list[tuple[float, str, str, bytes]]:
        events: list[tuple[float, str, str, bytes]] = []

        async def program(net: Endpoint) -> None:
            take = net._delivery.deliver

            def deliver(sender: str, frame: bytes) -> None:
                events.append((asyncio.get_running_loop().time(), sender, net.me, frame))
                take(sender, frame)

            net._delivery._wire.attach(deliver, net._lost, net._delivery.restored)
            await conversation(net)

        simulated(program, faults=faults, seed=seed, deadline=60.0)
        return events

    first = log(1)
    assert first == log(1)
    if weather not in ("calm", "partition"):
        assert first != log(2)


def test_a_line_keeps_its_order_even_within_one_instant() -> None:
    async def program(net: Endpoint) -> int:
        for tag in range(300):
            await net.broadcast(Piece(tag=tag, values=np.zeros(tag % 7)))
        for tag in range(300):
            await net.gather(Piece, tag)
        await net.finish()
        return net.meter.overhead  # a frame out of order would have been asked for again

    assert simulated(program, PARTIES, link=Link(latency_s=0.01)) == [0] * 4


def test_virtual_time_is_latency_and_bandwidth_and_nothing_else() -> None:
    async def program(net: Endpoint) -> tuple[float, int]:
        loop = asyncio.get_running_loop()
        begin = loop.time()
        if net.me == "ant":
            await net.send("bee", Piece(tag=0, values=np.zeros(10_000)))
            return 0.0, net.meter.bytes()
        await net.recv(Piece, "ant", 0)
        return loop.time() - begin, 0

    (_, size), (took, _) = simulated(program, PARTIES[:2], link=Link(latency_s=0.5, bandwidth_bps=1e6))
    assert took == pytest.approx(0.5 + 8 * size / 1e6)
