"""What every wire promises, stated once and run in every world."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.net.worlds import PARTIES, RUN, WORLDS, World, world

from colonnade.errors import (
    Aborted,
    DeadlineExceeded,
    OversizedMessage,
    ProtocolError,
    SumError,
    UnknownParty,
)
from colonnade.messages import (
    Announce,
    Backward,
    Branch,
    Bye,
    Hello,
    Message,
    Piece,
    Stop,
    Topic,
    encode,
    tag_of,
)
from colonnade.net.endpoint import Endpoint
from colonnade.net.frame import ACK, DATA, Header, pack, route_of


@pytest.fixture(params=WORLDS)
def run(request: pytest.FixtureRequest) -> World:
    return world(request.param)


def piece(tag: int, *values: float) -> Piece:
    return Piece(tag=tag, values=np.array(values))


def same(a: Message, b: Message) -> bool:
    return type(a) is type(b) and encode(a) == encode(b)


MESSAGES: tuple[Message, ...] = (
    Hello(version="0.1.0", job="ab12", public_key=b"\x00" * 32, signature=b"s" * 70),
    Piece(tag=1, values=np.array([1, 2**64 - 1], dtype=np.uint64)),
    Branch(tag=2, tree=1, node=3, values=np.arange(6, dtype=np.float32).reshape(2, 3)),
    Announce(tag=tag_of(Topic.TUNE, 9), values=np.zeros((0, 4))),
    Piece(tag=tag_of(Topic.EVALUATE, 1), values=np.array([0.5])),
    Backward(tag=4, theta=np.linspace(-1, 1, 300)),
    Stop(at=77),
)


def test_every_kind_of_message_arrives_as_it_was_sent(run: World) -> None:
    async def program(net: Endpoint) -> bool:
        for message in MESSAGES:
            await net.broadcast(message)
        for message in MESSAGES:
            kind = type(message)
            if kind.queued:
                continue
            for got in (await net.gather(kind, getattr(message, "tag", -1))).values():
                assert same(got, message)
        for kind in (Backward, Stop):
            drained: list[tuple[str, Any]] = []
            while len(drained) < len(net.peers):
                drained += await net.drain(kind)
            assert {sender for sender, _ in drained} == set(net.peers)
            expected = next(message for message in MESSAGES if type(message) is kind)
            assert all(same(each, expected) for _, each in drained)
        await net.finish()
        return True

    assert all(run(program))


def test_one_peer_s_messages_keep_their_order(run: World) -> None:
    async def program(net: Endpoint) -> None:
        count = 500
        for i in range(count):
            await net.broadcast(Stop(at=i))
        seen: dict[str, list[int]] = {peer: [] for peer in net.peers}
        while any(len(each) < count for each in seen.values()):
            for sender, message in await net.drain(Stop):
                seen[sender].append(message.at)
        assert all(each == list(range(count)) for each in seen.values())
        await net.finish()

    run(program)


def test_tags_may_be_asked_for_in_any_order(run: World) -> None:
    async def program(net: Endpoint) -> None:
        for tag in range(20):
            await net.broadcast(piece(tag, tag))
        for tag in reversed(range(20)):
            got = await net.gather(Piece, tag)
            assert set(got) == set(net.peers)
            assert all(message.values[0] == tag for message in got.values())
        await net.finish()

    run(program)


def test_exchanges_run_side_by_side(run: World) -> None:
    async def program(net: Endpoint) -> None:
        async def exchange(tag: int) -> float:
            await net.broadcast(piece(tag, tag))
            return sum(float(each.values[0]) for each in (await net.gather(Piece, tag)).values())

        sums = await asyncio.gather(*(exchange(tag) for tag in range(50)))
        assert sums == [tag * len(net.peers) for tag in range(50)]
        await net.finish()

    run(program, PARTIES)


def test_one_word_of_each_peer_may_be_awaited_at_the_same_time(run: World) -> None:
    async def program(net: Endpoint) -> None:
        waits = [asyncio.ensure_future(net.recv(Announce, peer, 5)) for peer in net.peers]
        await asyncio.sleep(0)
        for peer in reversed(net.peers):
            await net.send(peer, Announce(tag=5, values=np.array([net.parties.index(net.me)])))
        got = await asyncio.gather(*waits)
        assert [int(each.values[0]) for each in got] == [net.parties.index(peer) for peer in net.peers]
        await net.finish()

    run(program)


def test_drain_gives_everything_that_waits(run: World) -> None:
    async def program(net: Endpoint) -> None:
        for i in range(5):
            await net.broadcast(Stop(at=i))
        await net.broadcast(piece(0))
        await net.gather(Piece, 0)  # order is kept, so by now every Stop is here
        assert len(await net.drain(Stop)) == 5 * len(net.peers)
        await net.finish()

    run(program)


def test_a_deadline_names_who_was_silent_and_is_kept(run: World) -> None:
    async def program(net: Endpoint) -> str:
        if net.me != "cat":
            await net.broadcast(piece(3, 1.0))
        loop = asyncio.get_running_loop()
        begin = loop.time()
        wait = net.recv(Piece, "ant", 99) if net.me == "cat" else net.gather(Piece, 3)
        with pytest.raises(DeadlineExceeded) as caught:
            await wait
        assert 0.5 <= loop.time() - begin < 8  # a busy machine may be late, it may not hang
        await asyncio.sleep(1.0)  # who leaves first must not be what the others notice
        return str(caught.value)

    ant, bee, cat = run(program, deadline=0.5)
    assert "ant waited 0.5 s for Piece 3 from cat" in ant
    assert "bee waited 0.5 s for Piece 3 from cat" in bee
    assert "cat waited 0.5 s for Piece 99 from ant" in cat


def test_a_message_over_the_limit_is_refused_where_it_is_sent_and_the_line_goes_on(run: World) -> None:
    async def program(net: Endpoint) -> None:
        with pytest.raises(OversizedMessage, match=r"a Piece of 8\d\d\d bytes is over the limit of 4096"):
            await net.broadcast(Piece(tag=0, values=np.zeros(1000)))
        await net.broadcast(piece(1, 1.0))
        await net.gather(Piece, 1)
        await net.finish()

    run(program, size_limit=4096)


def test_an_unknown_receiver_or_sender_is_named(run: World) -> None:
    async def program(net: Endpoint) -> None:
        with pytest.raises(UnknownParty, match="eve"):
            await net.send("eve", Bye())
        with pytest.raises(UnknownParty, match="eve"):
            await net.recv(Piece, "eve", 0)
        await net.finish()

    run(program)


def _bad_frames(me: int, to: int) -> dict[str, bytes]:
    """Frames that must not be believed, each with the name it is refused by."""

    def frame(payload: bytes = b"", **change: int) -> bytes:
        route = route_of(change.get("run", RUN), change.get("sender", me), change.get("receiver", to))
        numbers = change.get("sequence", 1), change.get("acknowledged", 0)
        return pack(Header(change.get("kind", DATA), route, *numbers), payload)

    good = frame(encode(piece(7, 1.0)))
    return {
        "MalformedMessage empty": b"",
        "MalformedMessage short": good[:10],
        "MalformedMessage truncated": good[:-1],
        "MalformedMessage corrupt": good[:-1] + bytes([good[-1] ^ 1]),
        "MalformedMessage kind": frame(kind=9),
        "MalformedMessage acknowledges too much": frame(kind=ACK, sequence=0, acknowledged=10**6),
        "WrongRun": frame(encode(piece(7, 1.0)), run=RUN + 1),
        "UnknownParty sender": frame(encode(piece(7, 1.0)), sender=to),
        "UnknownParty receiver": frame(encode(piece(7, 1.0)), receiver=me),
    }


def test_bad_frames_are_refused_counted_and_do_not_stop_the_party(run: World) -> None:
    async def program(net: Endpoint) -> dict[str, int]:
        if net.me == "ant":
            bad = _bad_frames(0, 1)
            for name, frame in bad.items():
                # an empty frame has a meaning of its own on a stream, so it never gets that far
                if frame or not hasattr(net._delivery._wire, "refused"):
                    net._delivery._wire.send("bee", frame)
                else:
                    assert name == "MalformedMessage empty"
        await net.broadcast(piece(1, 1.0))
        got = await net.gather(Piece, 1)
        await net.finish()
        assert set(got) == set(net.peers)
        return dict(net.meter.refused)

    ant, bee = run(program, PARTIES[:2])
    assert ant == {}
    assert bee["MalformedMessage"] in (5, 6)
    assert (bee["WrongRun"], bee["UnknownParty"]) == (1, 2)


def test_a_frame_in_order_that_is_no_message_ends_the_run_by_its_senders_name(run: World) -> None:
    async def program(net: Endpoint) -> dict[str, int]:
        if net.me == "ant":
            delivery, line = net._delivery, net._delivery._lines["bee"]
            # no message, one nested too deep, and a good one that overtakes them: all are taken at once
            payloads = (b"\xc1", b"\x93\x01\x00" + b"\x91" * 100_000, encode(piece(1, 1.0)))
            for frame in reversed([line.pack(payload) for payload in payloads]):
                delivery._wire.send("bee", frame)
            with pytest.raises(Aborted, match="bee ended the run"):
                await net.recv(Piece, "bee", 1)
        else:
            with pytest.raises(ProtocolError, match="ant sent what bee cannot read"):
                await net.recv(Piece, "ant", 7)
            assert (await net.recv(Piece, "ant", 1)).values[0] == 1.0  # the next was still delivered
            await net.abort(ProtocolError("ant sent no message"))
        return dict(net.meter.refused)

    assert run(program, PARTIES[:2]) == [{}, {"MalformedMessage": 2}]


def test_a_frame_of_nobody_is_refused_by_name(run: World) -> None:
    async def program(net: Endpoint) -> dict[str, int]:
        net._delivery.deliver("eve", pack(Header(DATA, route_of(RUN, 0, 1), 1, 0), encode(Bye())))
        await net.finish()
        return dict(net.meter.refused)

    assert run(program, PARTIES[:2]) == [{"UnknownParty": 1}] * 2


def test_a_message_that_is_said_twice_ends_the_run_by_its_senders_name(run: World) -> None:
    async def program(net: Endpoint) -> dict[str, int]:
        if net.me == "ant":
            await net.broadcast(piece(1, 1.0))
            await net.broadcast(piece(1, 2.0))
            with pytest.raises(Aborted, match="bee ended the run"):
                await net.gather(Piece, 2)
        else:
            with pytest.raises(ProtocolError, match="ant sent Piece 1 twice"):
                await net.gather(Piece, 2)
            await net.abort(ProtocolError("ant says everything twice"))
        return dict(net.meter.refused)

    assert run(program, PARTIES[:2]) == [{}, {"MalformedMessage": 1}]


def test_an_abort_reaches_every_peer_and_ends_every_wait(run: World) -> None:
    async def program(net: Endpoint) -> str:
        if net.me == "bee":
            await net.recv(Piece, "ant", 0)
            await net.abort(SumError("the pieces do not add up"))
            return ""
        await net.send("bee", piece(0)) if net.me == "ant" else None
        with pytest.raises(Aborted) as caught:
            await asyncio.gather(net.gather(Piece, 1), net.drain(Backward), net.finish())
        with pytest.raises(Aborted):
            await net.broadcast(piece(2))
        return str(caught.value)

    begin = time.perf_counter()
    texts = run(program, PARTIES)
    assert [text for text in texts if text] == ["bee ended the run: SumError: the pieces do not add up"] * 3
    assert time.perf_counter() - begin < 45  # not the deadline of 60 s


def test_parties_that_finish_at_different_times_all_finish(run: World) -> None:
    async def program(net: Endpoint) -> None:
        await asyncio.sleep(0.1 * net.parties.index(net.me))
        await net.finish()

    run(program)


def test_what_one_sends_is_what_the_other_receives(run: World) -> None:
    async def program(net: Endpoint) -> tuple[int, int, int]:
        rng = np.random.default_rng(net.parties.index(net.me))
        for tag in range(30):
            await net.broadcast(Piece(tag=tag, values=rng.random(int(rng.integers(5000)))))
            await net.gather(Piece, tag)
        await net.finish()
        return sum(net.meter.bytes_by_peer().values()), net.meter.received_bytes, net.meter.messages()

    (sent_a, received_a, count_a), (sent_b, received_b, count_b) = run(program, PARTIES[:2])
    assert (sent_a, sent_b) == (received_b, received_a)
    assert count_a == count_b == 31


def test_large_arrays_pass(run: World) -> None:
    async def program(net: Endpoint) -> None:
        values = np.random.default_rng(1).random(800_000)  # 6.4 MB: many records, above the high-water mark
        for tag in range(3):
            await net.broadcast(Piece(tag=tag, values=values))
        for tag in range(3):
            assert np.array_equal((await net.gather(Piece, tag))[net.peers[0]].values, values)
        await net.finish()

    run(program, PARTIES[:2])


def test_a_sender_that_is_cancelled_leaves_the_line_in_order(run: World) -> None:
    async def program(net: Endpoint) -> None:
        values = np.zeros(400_000)
        senders = [asyncio.ensure_future(net.broadcast(Piece(tag=t, values=values))) for t in range(8)]
        await asyncio.sleep(0)
        senders[0].cancel()
        await asyncio.gather(*senders, return_exceptions=True)
        for tag in range(8):
            await net.gather(Piece, tag)
        await net.finish()

    run(program, PARTIES[:2])


Step = tuple[str, int]


@settings(max_examples=25)
@given(steps=st.lists(st.tuples(st.sampled_from(["piece", "stop"]), st.integers(0, 3000)), max_size=40))
@pytest.mark.parametrize("make", [world("local"), world("simulated")])
def test_any_conversation_is_heard_in_full(make: World, steps: list[Step]) -> None:
    """Whatever mix of kinds and sizes is said, every peer hears all of it, each kind in order."""

    async def program(net: Endpoint) -> None:
        for tag, (kind, size) in enumerate(steps):
            what = Piece(tag=tag, values=np.full(size, 1.5)) if kind == "piece" else Stop(at=size)
            await net.broadcast(what)
        for tag, (kind, size) in enumerate(steps):
            if kind == "piece":
                got = await net.gather(Piece, tag)
                assert all(each.values.shape == (size,) for each in got.values())
        stops = [size for kind, size in steps if kind == "stop"]
        heard: list[tuple[str, Stop]] = []
        while len(heard) < len(stops) * len(net.peers):
            heard += await net.drain(Stop)
        for peer in net.peers:
            assert [each.at for sender, each in heard if sender == peer] == stops
        await net.finish()

    make(program)


def test_the_reason_of_an_abort_is_cut_where_it_would_be_a_burden() -> None:
    async def program(net: Endpoint) -> None:
        if net.me == "ant":
            await net.abort(ValueError("x" * 10**6))
        else:
            with pytest.raises(Aborted) as caught:
                await net.gather(Piece, 0)
            assert len(str(caught.value)) < 3000

    world("local")(program)
