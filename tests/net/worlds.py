"""The worlds that a party program may run in, each as one function: run these parties, give their results.

`tests/net` states what every wire promises; this file is where the wires differ: a virtual or a real
event loop, certificates, ports.
"""

from __future__ import annotations

import asyncio
import functools
import operator
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Protocol, get_args

import msgspec
import pytest
from tests.patience import PATIENCE_S

from colonnade.messages import AnyMessage, Message, coding
from colonnade.net.clock import RealClock, VirtualClock, run_virtual
from colonnade.net.endpoint import Endpoint
from colonnade.net.local import LocalHub
from colonnade.net.network import Clock, Wire
from colonnade.net.simulated import Faults, Link, SimulatedHub
from colonnade.net.stream.authority import issue, make_authority
from colonnade.net.stream.certificates import Credentials
from colonnade.net.stream.port import free_ports
from colonnade.net.stream.tls import TlsEngine
from colonnade.net.stream.wire import NetworkWire

RUN = 0xC01
PARTIES = ("ant", "bee", "cat", "dog")
WORLDS = ("local", "simulated", "tls")

Program = Callable[[Endpoint], Awaitable[Any]]
Make = Callable[[str], tuple[Wire, Clock]]


class World(Protocol):
    def __call__(self, program: Program, parties: tuple[str, ...] = PARTIES[:3], **options: Any) -> list[Any]:
        """Run the program at every party to its end; the parties' results in order."""
        ...


@functools.cache
def certificates() -> Path:
    """One authority and a certificate for every party, made once for all tests of a process."""
    folder = Path(tempfile.mkdtemp(prefix="colonnade-test-"))
    make_authority(folder)
    for party in (*PARTIES, "mallory"):
        issue(folder, party)
    return folder


def credentials(party: str, parties: tuple[str, ...] = PARTIES) -> Credentials:
    return Credentials.load(certificates(), party, parties)


def addresses(parties: tuple[str, ...]) -> dict[str, tuple[str, int]]:
    return {party: ("127.0.0.1", port) for party, port in zip(parties, free_ports(len(parties)), strict=True)}


def endpoint(me: str, parties: tuple[str, ...], wire: Wire, clock: Clock, **options: Any) -> Endpoint:
    return Endpoint(me, parties, wire, clock, **{"deadline": PATIENCE_S, "run": RUN, **options})


async def run_party(net: Endpoint, program: Program) -> Any:
    try:
        if isinstance(net._delivery._wire, NetworkWire):
            await net._delivery._wire.start()
        return await program(net)
    finally:
        await net.close()


async def _together(
    program: Program,
    parties: tuple[str, ...],
    make: Callable[[str], tuple[Wire, Clock]],
    options: dict[str, Any],
) -> list[Any]:
    nets = [endpoint(party, parties, *make(party), **options) for party in parties]
    return await asyncio.gather(*(run_party(net, program) for net in nets))


def local(program: Program, parties: tuple[str, ...] = PARTIES[:3], **options: Any) -> list[Any]:
    hub = LocalHub()
    return asyncio.run(_together(program, parties, lambda me: (hub.wire(me), RealClock()), options))


def simulated(
    program: Program,
    parties: tuple[str, ...] = PARTIES[:3],
    *,
    faults: Faults | None = None,
    link: Link | None = None,
    seed: int = 0,
    **options: Any,
) -> list[Any]:
    async def main() -> list[Any]:
        hub = SimulatedHub(link or Link(latency_s=0.01, bandwidth_bps=1e8), faults, seed)
        return await _together(program, parties, lambda me: (hub.wire(me), VirtualClock()), options)

    return run_virtual(main())


def wire_of(me: str, where: Any, secrets: Credentials, **options: Any) -> NetworkWire:
    return NetworkWire(me, where, secrets, TlsEngine(secrets), **options)


def tls(program: Program, parties: tuple[str, ...] = PARTIES[:3], **options: Any) -> list[Any]:
    where, patient = addresses(parties), {"connect_s": PATIENCE_S, "reconnect_s": PATIENCE_S}

    def make(me: str) -> tuple[Wire, Clock]:
        return wire_of(me, where, credentials(me, parties), **patient), RealClock()

    return asyncio.run(_together(program, parties, make, options))


def world(name: str) -> World:
    return {"local": local, "simulated": simulated, "tls": tls}[name]


def teach(monkeypatch: pytest.MonkeyPatch, kind: type[Message], *, instead_of: type[Message]) -> None:
    """Let received messages be of this kind where they were of that one, as if its class were changed."""
    others = [each for each in get_args(AnyMessage) if each is not instead_of]
    union = functools.reduce(operator.or_, others, kind)
    monkeypatch.setattr(coding, "_decoder", msgspec.msgpack.Decoder(union, dec_hook=coding._unpack))
