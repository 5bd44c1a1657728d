"""The local world: a message needs no frame there, and nobody can tell but by the time it takes."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colonnade.errors import Aborted
from colonnade.messages import (
    Announce,
    Backward,
    Dealt,
    Enough,
    Message,
    Piece,
    Shuffled,
    Veil,
    Veiled,
    encode,
)
from colonnade.net.clock import RealClock
from colonnade.net.endpoint import Endpoint
from colonnade.net.frame import Header, header_size, pack
from colonnade.net.handover import handed
from colonnade.net.local import LocalHub
from colonnade.net.tapped import TappedWire

PARTIES = ("ant", "bee", "cat")


def endpoints(framed: set[str]) -> dict[str, Endpoint]:
    """Parties on one hub, of which some have a wire that is listened to, and so need frames."""
    hub = LocalHub()
    wires = {
        party: TappedWire(hub.wire(party), lambda to, frame: None) if party in framed else hub.wire(party)
        for party in PARTIES
    }
    return {me: Endpoint(me, PARTIES, wire, RealClock(), run=7) for me, wire in wires.items()}


async def talk(net: Endpoint) -> dict[str, list[float]]:
    """Say something of every size to everybody; returns what was heard."""
    for tag, size in enumerate((0, 1, 40, 9000, 70_000)):
        for peer in net.peers:
            await net.send(peer, Piece(tag, np.full(size, float(tag))))
    await net.broadcast(Backward(300, np.arange(5.0), (1, 2, 70_000)))
    await net.broadcast(Enough(0, (1, 2), last=True))
    heard: dict[str, list[float]] = {peer: [] for peer in net.peers}
    for tag in range(5):
        for peer, piece in (await net.gather(Piece, tag)).items():
            heard[peer].append(float(piece.values.sum()))
    await net.finish()
    return heard


@pytest.mark.parametrize("framed", [set(), {"bee"}, {"ant", "cat"}])
def test_bytes_are_counted_as_if_there_were_frames(framed: set[str]) -> None:
    def counts(framed: set[str]) -> list[object]:
        async def program() -> list[object]:
            nets = endpoints(framed)
            heard = await asyncio.gather(*map(talk, nets.values()))
            meters = [net.meter for net in nets.values()]
            traffic = [(m.bytes_by_kind(), m.bytes_by_peer(), m.messages(), m.received_bytes) for m in meters]
            return [heard, traffic]

        return asyncio.run(program())

    assert counts(framed) == counts(set(PARTIES))


@pytest.mark.parametrize("numbers", [(1, 1), (2**16 - 1, 2**16 - 1), (2**16, 0), (3, 2**16)])
def test_the_size_of_a_header_is_known_without_it(numbers: tuple[int, int]) -> None:
    assert header_size(*numbers) == len(pack(Header(0, 5, *numbers), checked=False))


def test_nobody_can_change_what_another_has() -> None:
    async def program() -> None:
        nets = endpoints(set())
        values = np.arange(3.0)
        await nets["ant"].broadcast(Announce(1, values))
        values[:] = 7.0
        for party in ("bee", "cat"):
            got = (await nets[party].recv(Announce, "ant", 1)).values
            assert got.tolist() == [0.0, 1.0, 2.0]
            with pytest.raises(ValueError, match="read-only"):
                got[0] = 1.0
            with pytest.raises(ValueError, match="WRITEABLE"):
                got.flags.writeable = True

    asyncio.run(program())


def test_a_view_of_what_can_be_changed_is_copied_and_what_nobody_can_change_is_not() -> None:
    whole, frozen = np.arange(6, dtype=np.uint64), np.arange(6, dtype=np.uint64)
    view = whole[:3]
    view.setflags(write=False)  # but the whole can be changed
    frozen.setflags(write=False)
    for values, copied in ((view, True), (frozen, False), (frozen[1:4], False)):
        message, _ = handed(Piece(1, values))
        assert isinstance(message, Piece)
        assert np.shares_memory(message.values, values) != copied
        assert not message.values.flags.writeable
        np.testing.assert_array_equal(message.values, values)


def test_what_comes_to_a_party_that_has_left_is_dropped_and_an_abort_arrives() -> None:
    async def program() -> None:
        nets = endpoints(set())
        await nets["cat"].close()
        await nets["ant"].send("cat", Announce(1, np.zeros(1)))
        await nets["ant"].abort(ValueError("no more"))
        with pytest.raises(Aborted, match="no more"):
            await nets["bee"].recv(Announce, "ant", 1)

    asyncio.run(program())


def test_a_stranger_on_the_hub_is_refused_and_counted() -> None:
    async def program() -> None:
        hub = LocalHub()
        two = Endpoint("ant", ("ant", "bee"), hub.wire("ant"), RealClock(), run=7)
        stranger = Endpoint("eve", ("ant", "eve"), hub.wire("eve"), RealClock(), run=7)
        await stranger.send("ant", Announce(1, np.zeros(1)))
        assert two.meter.refused == {"UnknownParty": 1}
        assert two.meter.received_messages == 0

    asyncio.run(program())


@given(
    tag=st.integers(0, 2**52),
    size=st.integers(0, 9000),
    seen=st.lists(st.integers(0, 2**33), max_size=20),
    words=st.booleans(),
)
def test_what_is_handed_over_has_the_size_of_its_encoding(
    tag: int, size: int, seen: list[int], words: bool
) -> None:
    values = np.arange(size, dtype=np.uint64 if words else np.float64)
    cube = values[: size // 6 * 6].reshape(-1, 2, 3)
    messages: list[Message] = [
        Piece(tag, values),
        Backward(tag, values, tuple(seen)),
        Piece(tag, values.reshape(1, -1)),
        Dealt(tag, cube),
        Veiled(tag, cube[:, 1, :2]),  # of which every third number is left out
        Veil(tag, values[None], cube[:, 0], max(seen, default=0)),
        Veil(tag, np.zeros((0, 0), dtype=np.uint64), values[None]),
        Shuffled(tag, values, np.arange(size % 300, dtype=np.uint16)),
    ]
    for message in messages:
        received, length = handed(message)
        assert length == len(encode(message))
        assert encode(received) == encode(message)
        arrays = [
            getattr(received, name)
            for name in ("values", "theta", "moved", "weights", "words", "order")
            if hasattr(received, name)
        ]
        assert arrays
        for array in arrays:
            assert not array.flags.writeable
            assert not np.shares_memory(array, values)
