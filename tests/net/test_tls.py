"""Strangers at a party's TLS port: refused, counted by reason, and the run goes on as if nobody had come."""

from __future__ import annotations

import asyncio
import gc
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from tests.net.test_network import PAIR, party, wire
from tests.net.worlds import PARTIES, addresses, certificates, credentials
from tests.patience import PATIENCE_S, until

from colonnade.errors import CertificateError, ColonnadeError, OversizedMessage, PeerUnreachable
from colonnade.messages import Piece
from colonnade.net.endpoint import Endpoint
from colonnade.net.framing import prefix
from colonnade.net.stream import tls_channel
from colonnade.net.stream.authority import issue, make_authority
from colonnade.net.stream.certificates import Credentials
from colonnade.net.stream.tls import STRANGERS as STRANGERS_LIMIT
from colonnade.net.stream.tls import TlsEngine, _context
from colonnade.net.stream.tls_channel import TlsChannel
from colonnade.net.stream.wire import NetworkWire

Visit = Callable[[int], Awaitable[None]]


@dataclass(frozen=True)
class Unchecked(Credentials):
    """Credentials that are wrong, which a party would not load."""

    def __post_init__(self) -> None:
        pass


def foreign(folder: Path, party: str) -> Credentials:
    """A certificate with the right name of another authority, at a party that trusts the right one."""
    make_authority(folder)
    issue(folder, party)
    right = credentials(party)
    own = Credentials.load(folder, party, [])
    return Unchecked(party, own.certificate, own.key, right.ca, right.pinned)


def expired(folder: Path, party: str) -> Credentials:
    for name in ("ca.crt", "ca.key"):
        (folder / name).write_bytes((certificates() / name).read_bytes())
    issue(folder, party, days=-1)
    right = credentials(party)
    crt, key = ((folder / f"{party}.{end}").read_bytes() for end in ("crt", "key"))
    return Unchecked(party, crt, key, right.ca, {**right.pinned, party: crt})


async def _hear(port: int, say: bytes, context: ssl.SSLContext | None = None) -> bytes:
    """Connect, say something, and give what comes back until the party hangs up."""
    host = "bee" if context else None
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=host)
    writer.write(say)
    try:
        return await asyncio.wait_for(reader.read(), PATIENCE_S)
    finally:
        writer.close()


def _client(secrets: Credentials | None = None) -> ssl.SSLContext:
    if secrets is not None:
        return _context(ssl.PROTOCOL_TLS_CLIENT, secrets)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(certificates() / "ca.crt")
    return context


async def garbage(port: int) -> None:
    assert await _hear(port, bytes(range(256)) * 20) is not None


async def plaintext(port: int) -> None:
    await _hear(port, b"GET / HTTP/1.1\r\nHost: bee\r\n\r\n")


async def old_tls(port: int) -> None:
    context = _client(credentials("ant"))
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(ssl.SSLError, match="PROTOCOL_VERSION"):
        await _hear(port, b"", context)


async def no_certificate(port: int) -> None:
    with pytest.raises(ssl.SSLError, match="CERTIFICATE_REQUIRED"):
        await _hear(port, b"", _client())


async def mallory(port: int) -> None:
    """The authority knows her, but she is no party of this run."""
    answer = await _hear(port, prefix(28) + b"colonnade/3 " + bytes(16), _client(credentials("mallory")))
    assert b"refused CertificateError: mallory is not a party that dials bee" in answer


async def wrong_way(port: int) -> None:
    """A party that is to be dialled does not dial."""
    answer = await _hear(port, prefix(28) + b"colonnade/3 " + bytes(16), _client(credentials("cat")))
    assert b"cat is not a party that dials bee" in answer


async def long_greeting(port: int) -> None:
    assert await _hear(port, prefix(2**30) + b"x" * 100, _client(credentials("ant"))) == b""


async def other_protocol(port: int) -> None:
    answer = await _hear(port, prefix(5) + b"hello", _client(credentials("ant")))
    assert b"ant speaks no version of the wire protocol, bee speaks version 3; install the same" in answer


async def earlier_protocol(port: int) -> None:
    """Version 2, which had lengths of four bytes."""
    greeting = (28).to_bytes(4, "little") + b"colonnade/2 " + bytes(16)
    answer = await _hear(port, greeting, _client(credentials("ant")))
    assert b"ant speaks version 2 of the wire protocol, bee speaks version 3; install the same" in answer


async def hangs_up(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port)):
        pass


STRANGERS: dict[str, Visit] = {
    "wrong version number": garbage,
    "http request": plaintext,
    "unsupported protocol": old_tls,
    "peer did not return a certificate": no_certificate,
    "not a party that dials here": mallory,
    "announced a greeting that is too long": long_greeting,
    "does not speak this version of the protocol": other_protocol,
    "the connection was closed during the handshake": hangs_up,
}


async def _run_with_visit(visit: Visit, parties: tuple[str, ...] = PAIR, *, refused: int = 1) -> NetworkWire:
    """A run during which so many are refused at bee's port. Gives bee's wire when all have finished."""
    where = addresses(parties)
    lines = {me: wire(me, where, credentials(me, parties)) for me in parties}

    async def one(me: str) -> None:
        async with party(lines[me], parties) as net:
            for tag in range(10):
                if me == "bee" and tag == 5:
                    await visit(where["bee"][1])
                    await until(lambda: sum(lines["bee"].refused.values()) >= refused)
                await net.broadcast(Piece(tag=tag, values=np.zeros(10)))
                await net.gather(Piece, tag)
            await net.finish()
            assert not net.meter.refused
            assert net.meter.overhead < 500  # the line was never restored, only acknowledged

    await asyncio.gather(*(one(me) for me in parties))
    return lines["bee"]


@pytest.mark.parametrize("reason", STRANGERS)
def test_a_stranger_is_refused_and_counted_and_the_run_goes_on(reason: str) -> None:
    line = asyncio.run(_run_with_visit(STRANGERS[reason]))
    assert dict(line.refused) == {reason: 1}


def test_an_earlier_version_of_the_protocol_is_named() -> None:
    line = asyncio.run(_run_with_visit(earlier_protocol))
    assert dict(line.refused) == {"does not speak this version of the protocol": 1}


def test_a_party_that_is_to_be_dialled_cannot_dial() -> None:
    line = asyncio.run(_run_with_visit(wrong_way, PARTIES[:3]))
    assert dict(line.refused) == {"not a party that dials here": 1}


def test_a_certificate_of_another_authority_does_not_stop_a_run(tmp_path: Path) -> None:
    async def visit(port: int) -> None:
        with pytest.raises(ssl.SSLError, match="UNKNOWN_CA"):
            await _hear(port, b"", _client(foreign(tmp_path, "ant")))

    line = asyncio.run(_run_with_visit(visit))
    [(reason, count)] = line.refused.items()
    assert reason.startswith("certificate not valid")
    assert count == 1


def test_once_the_real_peer_was_met_an_impostor_is_only_counted(tmp_path: Path) -> None:
    for name in ("ca.crt", "ca.key"):
        (tmp_path / name).write_bytes((certificates() / name).read_bytes())
    issue(tmp_path, "ant")

    async def visit(port: int) -> None:
        context = _client(Credentials.load(tmp_path, "ant", []))
        answer = await _hear(port, prefix(28) + b"colonnade/3 " + bytes(16), context)
        assert b"is not the pinned one" in answer

    line = asyncio.run(_run_with_visit(visit))
    assert dict(line.refused) == {"not the pinned certificate": 1}


def _is_over(line: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> bool:
    """Whether the other end has hung up."""
    return line[0].at_eof() or line[0].exception() is not None


def test_many_silent_strangers_do_not_stop_a_run() -> None:
    async def visit(port: int) -> None:
        visitors = [await asyncio.open_connection("127.0.0.1", port) for _ in range(700)]
        await until(lambda: sum(map(_is_over, visitors)) >= 700 - STRANGERS_LIMIT)
        for _, writer in visitors:
            writer.close()
        await asyncio.gather(*(writer.wait_closed() for _, writer in visitors), return_exceptions=True)

    refused = asyncio.run(_run_with_visit(visit, refused=700)).refused
    assert refused["too many connections"] >= 700 - STRANGERS_LIMIT
    assert sum(refused.values()) == 700


def test_a_stranger_that_never_speaks_does_not_keep_a_party_from_closing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tls_channel, "HANDSHAKE_S", 600.0)
    visitors = []

    async def visit(port: int) -> None:
        visitors.append(socket.create_connection(("127.0.0.1", port)))

    asyncio.run(asyncio.wait_for(_run_with_visit(visit, refused=0), PATIENCE_S))
    visitors[0].close()


async def _both(
    ant: Credentials, bee: Credentials, program: Callable[[Endpoint], Awaitable[object]] | None = None
) -> tuple[list[ColonnadeError | None], NetworkWire]:
    where = addresses(PAIR)
    lines = [wire(me, where, each, connect_s=2.0) for me, each in zip(PAIR, (ant, bee), strict=True)]

    async def one(line: NetworkWire) -> ColonnadeError | None:
        try:
            async with party(line) as net:
                await (program(net) if program else net.finish())
        except ColonnadeError as error:
            return error
        return None

    return list(await asyncio.gather(*(one(line) for line in lines))), lines[1]


@pytest.mark.parametrize("make", [foreign, expired])
def test_a_dialler_with_a_bad_certificate_learns_why(
    make: Callable[[Path, str], Credentials], tmp_path: Path
) -> None:
    (ant, bee), line = asyncio.run(_both(make(tmp_path, "ant"), credentials("bee")))
    assert isinstance(ant, CertificateError)
    assert "bee refused the certificate of ant: " in str(ant)
    # nobody can say who it was whose certificate did not hold, so bee names the peer that it misses
    assert isinstance(bee, PeerUnreachable)
    assert "could not reach ant" in str(bee)
    assert "somebody was refused: certificate not valid" in str(bee)
    assert sum(line.refused.values()) == 1


@pytest.mark.parametrize("make", [foreign, expired])
def test_a_listener_with_a_bad_certificate_is_refused_by_name(
    make: Callable[[Path, str], Credentials], tmp_path: Path
) -> None:
    (ant, bee), _ = asyncio.run(_both(credentials("ant"), make(tmp_path, "bee")))
    assert isinstance(ant, CertificateError)
    assert "ant refused the certificate of bee: certificate not valid" in str(ant)
    assert isinstance(bee, PeerUnreachable)
    assert "alert" in str(bee)


def test_a_listener_with_another_party_s_certificate_is_refused_at_both_ends() -> None:
    mallory = credentials("mallory")
    posing = Unchecked("bee", mallory.certificate, mallory.key, mallory.ca, mallory.pinned)
    (ant, bee), _ = asyncio.run(_both(credentials("ant"), posing))
    for error in (ant, bee):
        assert isinstance(error, CertificateError)
        assert "made out to mallory, not to bee" in str(error)


def test_a_frame_over_the_limit_is_refused_before_it_is_read() -> None:
    async def program(net: Endpoint) -> None:
        if net.me == "ant":
            for link in net._delivery._wire._links.values():  # type: ignore[attr-defined]
                link.connection.channel.write(prefix(2**30) + b"x")
        await net.gather(Piece, 0)

    (ant, bee), _ = asyncio.run(_both(credentials("ant"), credentials("bee"), program))
    assert isinstance(bee, OversizedMessage)
    assert "ant: a frame of 1073741824 bytes is announced, the limit is 67108864" in str(bee)
    assert isinstance(ant, ColonnadeError)


def test_credentials_of_another_party_are_refused() -> None:
    with pytest.raises(CertificateError, match="these are the credentials of bee, not of ant"):
        wire("ant", addresses(PAIR), credentials("bee"))


def test_a_party_may_leave_in_the_moment_in_which_a_stranger_comes() -> None:
    """Between accepting a connection and hearing of it there is a turn of the loop."""

    async def program() -> bytes:
        engine = TlsEngine(credentials("bee"))
        host, port = addresses(("bee",))["bee"]
        await engine.listen(host, port, lambda channel: None, lambda reason: None)
        with socket.create_connection((host, port), timeout=PATIENCE_S) as stranger:
            while not engine._strangers:  # noqa: ASYNC110  the very turn is what this is about
                await asyncio.sleep(0)
            await engine.close()
            return await asyncio.to_thread(stranger.recv, 1)

    assert asyncio.run(program()) == b""


def test_a_connection_that_the_peer_has_torn_down_can_be_closed() -> None:
    """An error there ended the search for a peer, and the line never stood again."""

    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as port:
            said: list[Exception | None] = []
            client = _context(ssl.PROTOCOL_TLS_CLIENT, credentials(PAIR[0]))
            engine = TlsEngine(credentials(PAIR[0]))
            _, channel = await asyncio.get_running_loop().create_connection(
                lambda: TlsChannel(client, said.append, lambda error: error, engine._poller, server=False),
                *port.getsockname(),
            )
            there, _ = port.accept()
            there.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            there.close()  # with a reset, which asyncio has not noticed yet
            channel.close()
            await until(channel._transport.is_closing)

    asyncio.run(main())


@pytest.mark.parametrize("visit", [garbage, no_certificate, hangs_up])
def test_a_stranger_that_is_gone_leaves_nothing_for_the_garbage_collector(
    visit: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection has tens of kilobytes of buffers, and in a large process the collector seldom comes."""
    monkeypatch.setattr(tls_channel, "HANDSHAKE_S", 600.0)  # nor is it left to the timer of its handshake

    def channels() -> int:
        return sum(type(each) is TlsChannel for each in gc.get_objects())  # asks no object anything

    async def program() -> None:
        engine = TlsEngine(credentials("bee"))
        host, port = addresses(("bee",))["bee"]
        refused: list[str] = []
        await engine.listen(host, port, lambda channel: None, refused.append)
        gc.collect()
        gc.disable()
        try:
            for _ in range(5):
                await visit(port)
            await until(lambda: len(refused) == 5)  # as many have come, and are gone
            await until(lambda: channels() == 0)
        finally:
            gc.enable()
            await engine.close()

    asyncio.run(program())
