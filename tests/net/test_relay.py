"""Broadcast down a tree: everybody hears everything once and from whom it is, in every world; nobody sends
more than log2 of the parties; and who does not ask for it takes nothing from other hands."""

from __future__ import annotations

import asyncio
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.net.worlds import PARTIES, WORLDS, simulated, world

from colonnade.errors import MalformedMessage, ProtocolError, UnknownParty
from colonnade.messages import Announce, Backward, Bye, Decay, Message, Relay, encode
from colonnade.net.endpoint import Endpoint
from colonnade.net.relay import branches, opened, written
from colonnade.net.simulated import Faults, Link

ROUNDS = 20


def names(q: int) -> tuple[str, ...]:
    return tuple(f"p{i:03}" for i in range(q))


@given(st.integers(1, 255), st.data())
def test_a_tree_serves_everybody_once_within_the_height(q: int, data: st.DataObject) -> None:
    root = data.draw(st.integers(0, q - 1))
    served: dict[int, int] = {root: 0}

    def serve(at: int, hops: int, below: bytes) -> None:
        sent = list(branches(below))
        assert len(sent) <= math.ceil(math.log2(q))
        for turn, (to, rest) in enumerate(sent):
            assert to not in served
            served[to] = hops + turn + 1  # the turn in which it hears, if a message takes one
            serve(to, hops + turn + 1, rest)

    letter = written(Decay(0), names(q)[root], names(q), names(q))
    serve(root, 0, letter.below)
    assert sorted(served) == list(range(q))
    assert max(served.values()) <= math.ceil(math.log2(q))


async def everybody_speaks(net: Endpoint) -> tuple[list[tuple[str, int, float]], int, int]:
    """Everybody spreads some messages; what was heard, and messages and bytes of the kind that were sent."""
    for number in range(ROUNDS):
        await net.spread(Backward(number, np.full(3, float(number))))
    heard: list[tuple[str, int, float]] = []
    while len(heard) < ROUNDS * len(net.peers):
        heard += [(who, message.tag, message.theta[0]) for who, message in await net.drain(Backward)]
    sent = net.meter.messages(), net.meter.bytes_by_kind()["backward"]
    await net.finish()
    return heard, *sent


@pytest.mark.parametrize("kind", WORLDS)
def test_everybody_hears_everybody_in_order_in_every_world(kind: str) -> None:
    told = world(kind)(everybody_speaks, PARTIES, broadcast="tree")
    for me, (heard, _, _) in zip(PARTIES, told, strict=True):
        for peer in set(PARTIES) - {me}:
            assert [(n, v) for who, n, v in heard if who == peer] == [(n, float(n)) for n in range(ROUNDS)]
    # to q - 1 parties it is q - 1 messages, whoever sends them, and each is counted where it leaves
    frames = ROUNDS * len(PARTIES) * (len(PARTIES) - 1)
    assert sum(messages for _, messages, _ in told) == frames
    star = world(kind)(everybody_speaks, PARTIES)
    extra = sum(size for *_, size in told) - sum(size for *_, size in star)
    assert 0 < extra <= frames * 12  # who wrote it, and who comes after


def test_a_tree_also_stands_against_a_bad_network() -> None:
    told = simulated(everybody_speaks, PARTIES, faults=Faults(drop=0.2, duplicate=0.2), broadcast="tree")
    assert all(len(set(heard)) == len(heard) == ROUNDS * 3 for heard, _, _ in told)


def test_only_those_who_are_meant_hear_it_and_only_they_pass_it_on() -> None:
    async def program(net: Endpoint) -> dict[str, int]:
        if net.me == "ant":
            await net.spread(Decay(7), {"bee", "dog"})
        elif net.me != "cat":
            assert [(who, message.tag) for who, message in await net.drain(Decay)] == [("ant", 7)]
        await net.finish()
        return net.meter.bytes_by_peer()

    ant, bee, cat, dog = simulated(program, PARTIES, broadcast="tree")
    goodbye = min(cat.values())
    assert {peer for sent in (ant, bee, dog) for peer, size in sent.items() if size > goodbye} == {
        "bee",
        "dog",
    }


@pytest.mark.parametrize("q", [2, 3, 5, 8, 16])
def test_the_time_is_that_of_the_cards(q: int) -> None:
    link = Link(latency_s=0.01, bandwidth_bps=1e6)

    async def program(net: Endpoint) -> tuple[float, int]:
        if net.me == names(q)[0]:
            await net.spread(Backward(0, np.zeros(5000)))
            size = max(net.meter.bytes_by_peer().values())
        else:
            await net.drain(Backward)
            size = 0
        return asyncio.get_running_loop().time(), size

    def last(broadcast: str) -> tuple[float, float]:
        told = simulated(program, names(q), link=link, broadcast=broadcast)
        return max(when for when, _ in told), 8 * told[0][1] / 1e6

    when, T = last("star")
    assert when == pytest.approx((q - 1) * T + 0.01)
    when, T = last("tree")
    height = math.ceil(math.log2(q))
    assert height * T + 0.01 - 1e-3 <= when <= height * (T + 0.01) + 1e-3


def test_a_run_without_a_tree_refuses_what_is_passed_on() -> None:
    async def program(net: Endpoint) -> dict[str, int]:
        if net.me == "bee":  # says that ant said something
            net._delivery.post("cat", Decay(1), encode(Relay(0, b"", encode(Decay(1)))))
        if net.me == "cat":
            with pytest.raises(ProtocolError, match="bee passed a message on"):
                await net.finish()
            return dict(net.meter.refused)
        await net.finish()
        return {}

    assert simulated(program)[2] == {"MalformedMessage": 1}


@pytest.mark.parametrize(
    ("relay", "error"),
    [
        (Relay(0, b"", encode(Bye())), MalformedMessage),  # nobody leaves by hearsay
        (Relay(0, b"", encode(Relay(0, b"", encode(Decay(1))))), MalformedMessage),
        (Relay(0, b"", b"nonsense"), MalformedMessage),
        (Relay(0, b"\x02\x02", encode(Decay(1))), MalformedMessage),  # cat twice
        (Relay(0, b"\x01", encode(Decay(1))), MalformedMessage),  # back to this party
        (Relay(1, b"", encode(Decay(1))), MalformedMessage),  # this party's own words
        (Relay(0, b"\x03", encode(Decay(1))), UnknownParty),
        (Relay(-1, b"", encode(Decay(1))), UnknownParty),
        (Relay(99, b"", encode(Decay(1))), UnknownParty),
    ],
)
def test_what_makes_no_sense_is_refused(relay: Relay, error: type[Exception]) -> None:
    with pytest.raises(error):
        opened(relay, "bee", PARTIES[:3])


def test_a_kind_that_is_not_made_for_it_is_not_sent() -> None:
    private: Message = Announce(0, np.zeros(1))
    with pytest.raises(TypeError, match="Announce"):
        written(private, "bee", PARTIES, PARTIES)
