"""TLS between memory and a socket: compiled or not, every byte arrives and every end is told."""

from __future__ import annotations

import gc
import socket
import ssl
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.net.worlds import credentials

from colonnade.net.stream.poller import SUPPORTED
from colonnade.net.stream.sealed import PlainSealed, Sealed
from colonnade.net.stream.tls import _context

pytestmark = pytest.mark.skipif(not SUPPORTED, reason="only where sockets are read past asyncio")

WAYS = list(dict.fromkeys((PlainSealed, Sealed)))


@dataclass
class End:
    """One end of a connection that stands."""

    socket: socket.socket
    tls: ssl.SSLObject
    arrived: ssl.MemoryBIO
    leaving: ssl.MemoryBIO

    def through(self, way: type[PlainSealed]) -> PlainSealed:
        return way(self.socket.fileno(), self.tls, self.arrived, self.leaving, ssl.SSLWantReadError)


def _end(side: int, party: str, own: socket.socket) -> End:
    own.setblocking(False)
    arrived, leaving = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = _context(side, credentials(party)).wrap_bio(
        arrived, leaving, server_side=side == ssl.PROTOCOL_TLS_SERVER
    )
    return End(own, tls, arrived, leaving)


@pytest.fixture
def ends() -> Iterator[tuple[End, End]]:
    """Both ends of a connection, with the handshake done."""
    one, other = socket.socketpair()
    with one, other:
        ant, bee = _end(ssl.PROTOCOL_TLS_CLIENT, "ant", one), _end(ssl.PROTOCOL_TLS_SERVER, "bee", other)
        for speaker, listener in ((ant, bee), (bee, ant), (ant, bee), (bee, ant)):
            with suppress(ssl.SSLWantReadError):
                speaker.tls.do_handshake()
            listener.arrived.write(speaker.leaving.read())
        yield ant, bee


@pytest.mark.parametrize("way", WAYS)
@given(said=st.lists(st.binary(max_size=50) | st.sampled_from([16384, 16385, 40_000]).map(bytes), max_size=6))
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_written_is_read(ends: tuple[End, End], way: type[PlainSealed], said: list[bytes]) -> None:
    (ant, bee), heard = (end.through(way) for end in ends), list[bytes]()
    for data in said:
        assert ant.write(data) == b""
        assert bee.read(heard.append)
        assert bee.read(heard.append)  # nothing more has come, which is no end
    assert b"".join(heard) == b"".join(said)
    assert all(len(record) <= 16384 for record in heard)


@pytest.mark.parametrize("way", WAYS)
def test_what_finds_no_room_comes_back_encrypted(ends: tuple[End, End], way: type[PlainSealed]) -> None:
    (ant, bee), heard = (end.through(way) for end in ends), list[bytes]()
    data = bytes(range(256)) * 2**13
    rest = ant.write(data)  # more than a socket takes
    assert rest
    while rest:
        bee.read(heard.append)
        rest = rest[ends[0].socket.send(rest) :]
    while sum(map(len, heard)) < len(data):
        bee.read(heard.append)
    assert b"".join(heard) == data


@pytest.mark.parametrize("way", WAYS)
def test_half_a_record_waits_for_the_rest(ends: tuple[End, End], way: type[PlainSealed]) -> None:
    ant, bee = ends
    heard: list[bytes] = []
    sealed = bee.through(way)
    ant.tls.write(b"whole")
    ant.tls.write(b"half")
    encrypted = ant.leaving.read()
    ant.socket.send(encrypted[:-3])
    assert sealed.read(heard.append)
    assert heard == [b"whole"]
    ant.socket.send(encrypted[-3:])
    assert sealed.read(heard.append)
    assert heard == [b"whole", b"half"]


@pytest.mark.parametrize("way", WAYS)
def test_what_is_forged_raises_after_what_came_before_it(
    ends: tuple[End, End], way: type[PlainSealed]
) -> None:
    ant, bee = ends
    heard: list[bytes] = []
    ant.tls.write(b"good")
    good = ant.leaving.read()
    ant.tls.write(b"forged")
    ant.socket.send(good + ant.leaving.read()[:-1] + b"\0")
    with pytest.raises(ssl.SSLError):
        bee.through(way).read(heard.append)
    assert heard == [b"good"]


@pytest.mark.parametrize("way", WAYS)
def test_a_last_word_is_an_end_as_good_as_any(ends: tuple[End, End], way: type[PlainSealed]) -> None:
    ant, bee = ends
    heard: list[bytes] = []
    sealed = bee.through(way)
    with pytest.raises(ssl.SSLWantReadError):
        ant.tls.unwrap()  # says that it writes no more, and waits for the other to say so
    ant.socket.send(ant.leaving.read())
    assert not sealed.read(heard.append)
    ant.socket.close()
    assert not sealed.read(heard.append)
    assert heard == []


@pytest.mark.parametrize("way", WAYS)
def test_errors_pass_through(ends: tuple[End, End], way: type[PlainSealed]) -> None:
    ant, bee = ends

    def refuse(record: bytes) -> None:
        raise LookupError(f"{record!r} is not wanted")

    ant.through(way).write(b"this")
    with pytest.raises(LookupError, match="b'this' is not wanted"):
        bee.through(way).read(refuse)
    with pytest.raises(OSError, match="Bad file descriptor"):
        way(-1, bee.tls, bee.arrived, bee.leaving, ssl.SSLWantReadError).read(refuse)
    bee.socket.close()
    assert ant.through(way).write(b"nobody")  # encrypted, and not sent


@pytest.mark.parametrize("way", WAYS)
def test_what_came_is_safe_from_whatever_runs_meanwhile(
    ends: tuple[End, End], way: type[PlainSealed]
) -> None:
    """To allocate may run the garbage collector, so any code, or another thread that reads another line."""
    ant, bee = ends
    one, other = socket.socketpair()
    with one, other:
        stranger = _end(ssl.PROTOCOL_TLS_SERVER, "bee", other)
        elsewhere = stranger.through(way)

        class Finalised:
            def __init__(self) -> None:
                self.itself = self

            def __del__(self) -> None:
                one.send(bytes(1000))
                with suppress(ssl.SSLError):  # nobody has shaken hands there
                    elsewhere.read(lambda record: None)

        heard: list[bytes] = []
        before, listens, says = gc.get_threshold(), bee.through(way), ant.through(way)
        try:
            for allocations in range(1, 30):  # after one of these the collector comes while it is read
                says.write(b"word" * 100)
                Finalised()
                gc.set_threshold(allocations)
                assert listens.read(heard.append)
                gc.set_threshold(*before)
        finally:
            gc.set_threshold(*before)
            gc.collect()
    assert heard == [b"word" * 100] * 29
