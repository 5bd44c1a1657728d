"""Real networks: cut lines, silent and killed peers, impostors. Every end is the right one, and in time."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.net.proxy import Proxy
from tests.net.worlds import (
    PARTIES,
    Program,
    addresses,
    certificates,
    credentials,
    endpoint,
    run_party,
    wire_of,
)
from tests.patience import PATIENCE_S, until

from colonnade.errors import (
    CertificateError,
    ColonnadeError,
    DeadlineExceeded,
    JobError,
    NetworkError,
    PeerLost,
    PeerUnreachable,
)
from colonnade.messages import Backward, Piece, Stop
from colonnade.net.clock import RealClock
from colonnade.net.endpoint import Endpoint
from colonnade.net.stream import tls_channel
from colonnade.net.stream.authority import issue, make_authority
from colonnade.net.stream.certificates import Credentials
from colonnade.net.stream.port import free_ports
from colonnade.net.stream.tls import STRANGERS
from colonnade.net.stream.wire import NetworkWire

PAIR = PARTIES[:2]
HARMS = 4


def wire(me: str, where: Any, secrets: Credentials | None = None, **options: Any) -> NetworkWire:
    options = {"connect_s": PATIENCE_S, "reconnect_s": PATIENCE_S, **options}
    return wire_of(me, where, secrets or credentials(me), **options)


@asynccontextmanager
async def party(
    line: NetworkWire, parties: tuple[str, ...] = PAIR, **options: Any
) -> AsyncIterator[Endpoint]:
    net = endpoint(line.me, parties, line, RealClock(), **options)
    try:
        await line.start()
        yield net
    finally:
        await net.close()


def test_parties_may_start_in_any_order() -> None:
    async def main() -> None:
        where = addresses(PARTIES)

        async def one(me: str, late: float) -> None:
            await asyncio.sleep(late)
            async with party(wire(me, where), PARTIES) as net:
                await net.broadcast(Piece(tag=0, values=np.zeros(1)))
                await net.gather(Piece, 0)
                await net.finish()

        lates = dict(zip(PARTIES, (0.3, 0.0, 0.4, 0.1), strict=True))
        await asyncio.gather(*(one(me, late) for me, late in lates.items()))

    asyncio.run(main())


def test_a_peer_that_never_comes_is_named_with_its_address() -> None:
    async def main() -> None:
        where = addresses(PAIR)
        begin = time.perf_counter()
        with pytest.raises(PeerUnreachable, match=f"ant could not reach bee at 127.0.0.1:{where['bee'][1]}"):
            async with party(wire("ant", where, connect_s=0.5)):
                pass
        with pytest.raises(PeerUnreachable, match=r"bee could not reach ant .*it did not connect"):
            async with party(wire("bee", where, connect_s=0.5)):
                pass
        assert time.perf_counter() - begin < 20  # a busy machine may be late, it may not hang

    asyncio.run(main())


def test_a_party_may_be_closed_while_it_still_connects() -> None:
    async def main() -> None:
        line = wire("ant", addresses(PAIR))
        net = endpoint("ant", PAIR, line, RealClock())
        starting = asyncio.ensure_future(line.start())
        await asyncio.sleep(0.05)
        await net.close()
        with pytest.raises(NetworkError, match="ant was closed before every peer was connected"):
            await starting

    asyncio.run(main())


def test_a_port_that_is_taken_is_an_error_that_says_so() -> None:
    async def main() -> None:
        where = addresses(PAIR)
        taken = await asyncio.start_server(lambda r, w: None, *where["bee"])
        async with taken:
            with pytest.raises(JobError, match=f"cannot listen on 127.0.0.1:{where['bee'][1]}"):
                async with party(wire("bee", where)):
                    pass

    asyncio.run(main())


async def _through_proxy(
    rounds: int, harm: Callable[[Proxy], None] | None = None
) -> tuple[list[list[Any]], Proxy]:
    """Two parties in the middle of a run while their connection is harmed again and again."""
    where = addresses(PAIR)
    proxy = Proxy(where["bee"][1])
    [front] = free_ports(1)
    await proxy.open(front)
    dialled = {**where, "bee": ("127.0.0.1", front)}

    async def talk(me: str) -> list[Any]:
        heard: list[Any] = []
        line = wire(me, dialled if me == "ant" else where)
        async with party(line) as net:
            for tag in range(rounds):
                values = np.random.default_rng([tag, me == "ant"]).random(tag % 9 * 1500)
                await net.broadcast(Piece(tag=tag, values=values))
                await net.broadcast(Stop(at=tag))
                if tag % 3 == 0:  # several messages are on their way when the line is cut
                    for earlier in range(max(0, tag - 2), tag + 1):
                        got = await net.gather(Piece, earlier)
                        heard += [each.values.tobytes() for each in got.values()]
            stops: list[int] = []
            while len(stops) < rounds:
                stops += [message.at for _, message in await net.drain(Stop)]
            await net.finish()
            assert not net.meter.refused
            return [*heard, stops]

    async def weather() -> None:
        for _ in range(HARMS):
            await proxy.carry(100_000)
            if harm is not None:
                harm(proxy)
                await proxy.reconnect()  # or two harms might meet one connection

    storm = asyncio.ensure_future(weather())
    heard = await asyncio.gather(talk("ant"), talk("bee"))
    storm.cancel()
    await proxy.close()
    return list(heard), proxy


@pytest.mark.parametrize("harm", [Proxy.cut, Proxy.corrupt])
def test_a_line_that_is_harmed_is_restored_and_not_a_message_is_missing(
    harm: Callable[[Proxy], None],
) -> None:
    calm, _ = asyncio.run(_through_proxy(120))
    stormy, proxy = asyncio.run(_through_proxy(120, harm))
    assert proxy.connections > HARMS
    assert stormy == calm
    assert calm[0][-1] == calm[1][-1] == list(range(120))


_PEER = """
import asyncio, sys
from colonnade.messages import Backward
from tests.net.test_network import party, wire
async def main():
    ant, bee = int(sys.argv[1]), int(sys.argv[2])
    where = {"ant": ("127.0.0.1", ant), "bee": ("127.0.0.1", bee)}
    from colonnade.net.stream.certificates import Credentials
    secrets = Credentials.load(sys.argv[4], sys.argv[3], ["ant", "bee"])
    async with party(wire(sys.argv[3], where, secrets)) as net:
        print("up", flush=True)
        await net.drain(Backward, patient=True)
asyncio.run(main())
"""


def _spawn(me: str, where: dict[str, tuple[str, int]]) -> subprocess.Popen[bytes]:
    ports = [str(where[each][1]) for each in PAIR]
    command = [sys.executable, "-c", _PEER, *ports, me, str(certificates())]
    return subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2])


@pytest.mark.parametrize("victim", PAIR)
def test_a_peer_whose_process_is_killed_is_lost_within_the_deadline(victim: str) -> None:
    async def main() -> None:
        where = addresses(PAIR)
        survivor = PAIR[0] if victim == PAIR[1] else PAIR[1]
        process = _spawn(victim, where)
        try:
            line = wire(survivor, where, reconnect_s=0.6)
            async with party(line) as net:
                waiting = asyncio.ensure_future(net.gather(Piece, 0))
                await asyncio.sleep(0.1)
                process.kill()
                begin = time.perf_counter()
                with pytest.raises(PeerLost, match=f"{survivor} lost {victim} .*waited 0.6 s"):
                    await waiting
                assert time.perf_counter() - begin < 45  # not the deadline of 60 s
        finally:
            process.kill()
            process.communicate()

    asyncio.run(main())


@pytest.mark.parametrize("authority", ["the same", "another"])
def test_whoever_listens_where_a_lost_peer_did_is_not_taken_for_it(authority: str, tmp_path: Path) -> None:
    if authority == "another":
        make_authority(tmp_path)
        for each in PAIR:
            issue(tmp_path, each)
    else:
        for file in certificates().iterdir():
            (tmp_path / file.name).write_bytes(file.read_bytes())
        _reissued(tmp_path, "bee")

    async def main() -> None:
        where = addresses(PAIR)
        process = _spawn("bee", where)
        try:
            async with party(wire("ant", where, reconnect_s=2.0)) as net:
                waiting = asyncio.ensure_future(net.gather(Piece, 0))
                process.kill()
                process.wait()
                stranger = wire("bee", where, Credentials.load(tmp_path, "bee", PAIR))
                listening = asyncio.ensure_future(_outcome(stranger))
                with pytest.raises(PeerLost, match=r"ant lost bee .*waited 2 s"):
                    await waiting
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)
        finally:
            process.kill()
            process.communicate()

    asyncio.run(main())


def test_a_second_process_of_a_peer_does_not_end_what_the_first_does() -> None:
    async def main() -> None:
        where = addresses(PAIR)
        first, bee_line = wire("ant", where), wire("bee", where)
        ant, bee = endpoint("ant", PAIR, first, RealClock()), endpoint("bee", PAIR, bee_line, RealClock())
        await asyncio.gather(first.start(), bee_line.start())
        with pytest.raises(PeerLost, match="another process of ant is connected with bee"):
            async with party(wire("ant", where)):
                pass
        await ant.send("bee", Piece(0, np.zeros(1)))
        assert set(await bee.gather(Piece, 0)) == {"ant"}
        await asyncio.gather(ant.close(), bee.close())

    asyncio.run(main())


def test_a_flood_of_silent_connections_does_not_keep_a_peer_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls_channel, "HANDSHAKE_S", 600.0)  # strangers are not outlived, they are turned away

    async def main() -> None:
        where = addresses(PAIR)
        ant, bee = wire("ant", where), wire("bee", where)
        ends = [endpoint("ant", PAIR, ant, RealClock()), endpoint("bee", PAIR, bee, RealClock())]
        listening = asyncio.ensure_future(bee.start())
        await asyncio.sleep(0.1)
        silent = []
        for _ in range(STRANGERS + 100):
            silent.append(socket.socket())
            silent[-1].setblocking(False)
            with contextlib.suppress(OSError):
                await asyncio.get_running_loop().sock_connect(silent[-1], where["bee"])
        await asyncio.gather(ant.start(), listening)
        for line in silent:
            line.close()
        await asyncio.gather(*(end.close() for end in ends))

    asyncio.run(main())


FLOOD = """
import resource, socket, sys, time
held, at = [], time.monotonic()
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1] - 100
resource.setrlimit(resource.RLIMIT_NOFILE, (most + 100, most + 100))
print("begins", flush=True)
for number in range(2**30):
    line = socket.socket()
    line.setblocking(False)
    try:
        line.connect(("127.0.0.1", int(sys.argv[1])))
    except BlockingIOError:
        pass
    held.append(line)
    if len(held) > min(most, 15000):
        held.pop(0).close()
    time.sleep(max(0.0, at + number / 1200 - time.monotonic()))
"""


@pytest.mark.slow
def test_twelve_hundred_strangers_a_second_do_not_keep_a_peer_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls_channel, "HANDSHAKE_S", 600.0)  # strangers are not outlived, they are turned away

    async def main() -> None:
        where = addresses(PAIR)
        ant, bee = wire("ant", where, connect_s=120.0), wire("bee", where, connect_s=120.0)
        ends = [endpoint("ant", PAIR, ant, RealClock()), endpoint("bee", PAIR, bee, RealClock())]
        listening = asyncio.ensure_future(bee.start())
        flood = await asyncio.create_subprocess_exec(
            sys.executable, "-c", FLOOD, str(where["bee"][1]), stdout=asyncio.subprocess.PIPE
        )
        try:
            if flood.stdout is not None:
                await flood.stdout.readline()
            while sum(bee.refused.values()) < 1000:  # noqa: ASYNC110  how soon depends on the machine
                await asyncio.sleep(0.1)
            await asyncio.gather(ant.start(), listening)
        finally:
            flood.kill()
            await flood.wait()
            await asyncio.gather(*(end.close() for end in ends))

    asyncio.run(asyncio.wait_for(main(), 150))


def test_a_certificate_that_is_taken_away_ends_a_line_that_stands() -> None:
    async def main() -> None:
        where = addresses(PAIR)
        ant, bee = wire("ant", where), wire("bee", where)
        ends = [endpoint("ant", PAIR, ant, RealClock()), endpoint("bee", PAIR, bee, RealClock())]
        await asyncio.gather(ant.start(), bee.start())
        bee.recheck(Credentials.load(certificates(), "bee", ["ant"]))
        await ends[0].send("bee", Piece(0, np.zeros(1)))
        assert set(await ends[1].gather(Piece, 0)) == {"ant"}
        bee.recheck(Credentials.load(certificates(), "bee", []))
        with pytest.raises(CertificateError, match="no certificate of ant is pinned at bee"):
            await ends[1].gather(Piece, 1)
        await asyncio.gather(*(end.close() for end in ends))

    asyncio.run(main())


def test_a_peer_that_was_started_anew_is_not_taken_for_the_old_one() -> None:
    async def main() -> None:
        where = addresses(PAIR)
        first, bee_line = wire("ant", where), wire("bee", where)
        endpoint("ant", PAIR, first, RealClock())
        bee = endpoint("bee", PAIR, bee_line, RealClock())
        await asyncio.gather(first.start(), bee_line.start())
        first._closing = True  # its process ends without a word
        for connection in list(first._connections):
            connection.channel.abort()
        # until bee notices: before, there would be two of ant
        await until(lambda: bee_line._links["ant"].connection is None)
        with pytest.raises(PeerLost, match="ant was started again; what its process before had under way"):
            async with party(wire("ant", where)):
                pass
        with pytest.raises(PeerLost, match="ant was started again; what its process before had under way"):
            await bee.gather(Piece, 0)
        await bee.close()
        await first._engine.close()

    asyncio.run(main())


def test_a_peer_that_leaves_early_is_noticed_at_once() -> None:
    async def main() -> None:
        where = addresses(PAIR)

        async def leaver() -> None:
            async with party(wire("ant", where)):
                await asyncio.sleep(0.05)

        async def stayer() -> None:
            async with party(wire("bee", where)) as net:
                with pytest.raises(PeerLost, match="ant hung up; it was stopped, or it failed"):
                    await net.gather(Piece, 0)

        begin = time.perf_counter()
        await asyncio.gather(leaver(), stayer())
        assert time.perf_counter() - begin < 30  # it was told, and did not wait for ant to come back

    asyncio.run(main())


async def flood(net: Endpoint) -> None:
    for tag in range(1000):
        await net.broadcast(Backward(tag=tag, theta=np.zeros(100_000)))


def test_a_sender_waits_for_a_peer_that_does_not_read_but_not_for_ever() -> None:
    async def main() -> None:
        where = addresses(PAIR)
        process = _spawn("bee", where)
        try:
            async with party(wire("ant", where), deadline=0.5) as net:
                process.send_signal(19)  # stopped: its connection stands, but nobody reads
                begin = time.perf_counter()
                with pytest.raises(DeadlineExceeded, match=r"ant waited 0\.5 s for bee to take what"):
                    await flood(net)
                assert time.perf_counter() - begin < 20
        finally:
            process.kill()
            process.communicate()

    asyncio.run(main())


async def _outcome(line: NetworkWire) -> ColonnadeError | None:
    try:
        async with party(line) as net:
            await net.finish()
    except ColonnadeError as error:
        return error
    return None


def _reissued(folder: Path, name: str) -> None:
    """The authority signs a second certificate for the same party, which nobody has pinned."""
    for end in ("crt", "key"):
        (folder / f"{name}.{end}").unlink()
    issue(folder, name)


@pytest.mark.parametrize("impostor", PAIR)
def test_a_certificate_that_is_not_pinned_is_refused_at_both_ends_at_once(
    impostor: str, tmp_path: Path
) -> None:
    for file in certificates().iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    _reissued(tmp_path, impostor)

    async def main() -> list[ColonnadeError | None]:
        where = addresses(PAIR)
        folders = {me: tmp_path if me == impostor else certificates() for me in PAIR}
        secrets = {me: Credentials.load(folder, me, PAIR) for me, folder in folders.items()}
        return await asyncio.gather(
            *(_outcome(wire(me, where, secrets[me], connect_s=PATIENCE_S)) for me in PAIR)
        )

    begin = time.perf_counter()
    ant, bee = asyncio.run(main())
    assert isinstance(ant, CertificateError)
    assert isinstance(bee, CertificateError)
    assert time.perf_counter() - begin < 30  # who is told does not go on trying
    assert impostor in str(ant)
    assert impostor in str(bee)


def test_an_idle_party_uses_no_processor_time() -> None:
    async def main() -> float:
        where = addresses(PAIR)

        async def idle(me: str) -> float:
            async with party(wire(me, where)) as net:
                await net.broadcast(Piece(tag=0, values=np.zeros(1)))
                await net.gather(Piece, 0)
                await asyncio.sleep(0.1)
                begin = time.process_time()
                await asyncio.sleep(0.7)
                used = time.process_time() - begin
                await net.finish()
                return used

        return max(await asyncio.gather(*(idle(me) for me in PAIR)))

    # a library's own threads can only add to it, so the quietest of three counts
    assert min(asyncio.run(main()) for _ in range(3)) < 0.01


def test_what_came_while_a_party_computed_is_heard_once_it_has_caught_up() -> None:
    where, keys = addresses(PAIR), {me: credentials(me, PAIR) for me in PAIR}
    begin, sent, heard = threading.Event(), threading.Event(), threading.Event()

    async def says(net: Endpoint) -> None:
        begin.wait(PATIENCE_S)
        for number in range(20):
            await net.send("bee", Stop(number))
        await asyncio.sleep(0.05)  # they leave
        sent.set()
        heard.wait(PATIENCE_S)

    async def computes(net: Endpoint) -> int:
        begin.set()
        sent.wait(PATIENCE_S)  # the loop stands still, as it does while a party computes
        await net.catch_up()
        heard.set()
        return net.meter.received_messages

    def alone(me: str, program: Program) -> Any:
        async def live() -> Any:
            wire = wire_of(me, where, keys[me], connect_s=PATIENCE_S, reconnect_s=PATIENCE_S)
            return await run_party(endpoint(me, PAIR, wire, RealClock()), program)

        return asyncio.run(live())

    with ThreadPoolExecutor(2) as threads:
        talking = threads.submit(alone, "ant", says)
        assert threads.submit(alone, "bee", computes).result(PATIENCE_S) == 20
        talking.result(PATIENCE_S)
