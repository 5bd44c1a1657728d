"""Many runs over one standing line per peer.

A daemon keeps a line with every peer it knows, for as long as it lives; when one ends it is begun again.
Runs come and go on top: a frame carries its place in a run, and goes to the endpoint of that run. Run 0
is the daemons' own talk, one endpoint per line. A line that ends fails every run on it; a line that was
only interrupted is mended below, by the wire, and the runs are told that frames may be missing.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from colonnade.errors import ColonnadeError, MalformedMessage, PeerUnreachable
from colonnade.net.clock import RealClock
from colonnade.net.endpoint import Endpoint
from colonnade.net.frame import unpack
from colonnade.net.network import Deliver, Lost, Restored
from colonnade.net.places import Places
from colonnade.net.stream.certificates import Credentials
from colonnade.net.stream.channel import Address
from colonnade.net.stream.framing import stream_framing
from colonnade.net.stream.port import Port
from colonnade.net.stream.tls import TlsEngine
from colonnade.net.stream.wire import NetworkWire

CONTROL = 0
ATTEMPT_S = 4.0  # after so long a line says why it does not stand, and begins again
PAUSE_S = 0.2

Talk = Callable[[str, Endpoint], Awaitable[None]]
"""What a daemon does on a line that stands: called with the peer and the endpoint of run 0."""

Missed = Callable[[str, str], None]
"""Called with a peer and why there is no line with it, once for every reason."""


@dataclass
class Line:
    """One peer: the wire while there is one, and why there is none."""

    peer: str
    wire: NetworkWire | None = None
    up: bool = False
    reason: str = "not yet connected"


@dataclass
class Mux:
    me: str
    listen: Address
    peers: Mapping[str, Address]
    credentials: Credentials
    reconnect_s: float = 10.0
    lines: dict[str, Line] = field(init=False)
    refused: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.lines = {peer: Line(peer) for peer in self.peers}
        self._taps: dict[tuple[int, str], RunWire] = {}
        self._port = Port(TlsEngine(self.credentials), self.listen)
        self._keepers: list[asyncio.Task[None]] = []
        self._closing = False

    async def open(self, talk: Talk, missed: Missed = lambda peer, reason: None) -> None:
        await self._port.open()
        self._keepers = [
            asyncio.ensure_future(self._keep(line, talk, missed)) for line in self.lines.values()
        ]

    async def close(self) -> None:
        self._closing = True
        for keeper in self._keepers:
            keeper.cancel()
        await asyncio.gather(*self._keepers, return_exceptions=True)
        await self._port.close()

    def strangers(self) -> Counter[str]:
        """Who was turned away at the port, by reason."""
        return self._port.refused

    def endpoint(self, run: int, parties: tuple[str, ...], *, deadline: float) -> Endpoint:
        """This party's end of a run among some of the peers."""
        for party in parties:
            if party != self.me and not (line := self.lines[party]).up:
                raise PeerUnreachable(f"{party} is away: {line.reason}")
        wire = RunWire(self, run, tuple(party for party in parties if party != self.me))
        return Endpoint(self.me, parties, wire, RealClock(), run=run, deadline=deadline)

    # -- lines --------------------------------------------------------------------------------------

    async def _keep(self, line: Line, talk: Talk, missed: Missed) -> None:
        said = ""
        # a cancellation that arrives while a line is being put away must not begin another
        while not self._closing:
            try:
                await self._once(line, talk)
                said = ""
            except ColonnadeError as error:
                line.reason = str(error)
                if line.reason != said:
                    missed(line.peer, said := line.reason)
            await asyncio.sleep(PAUSE_S)

    async def _once(self, line: Line, talk: Talk) -> None:
        """One life of a line, from the first attempt to its end."""
        peer, loop = line.peer, asyncio.get_running_loop()
        ended: asyncio.Future[Exception] = loop.create_future()
        wire = NetworkWire(
            self.me,
            {self.me: self.listen, peer: self.peers[peer]},
            self.credentials,
            self._port.engine(peer),
            connect_s=ATTEMPT_S,
            reconnect_s=self.reconnect_s,
        )
        wire.attach(
            self._deliver,
            lambda _, error: None if ended.done() else ended.set_result(error),
            self._mended,
        )
        line.wire = wire
        pair = tuple(sorted((self.me, peer)))
        control = Endpoint(
            self.me,
            pair,
            RunWire(self, CONTROL, (peer,)),
            RealClock(),
            run=CONTROL,
            deadline=self.reconnect_s,
        )
        talking: asyncio.Future[None] | None = None
        try:
            await wire.start()
            line.up, line.reason = True, ""
            talking = asyncio.ensure_future(talk(peer, control))
            both: list[asyncio.Future[Any]] = [ended, talking]
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            error = ended.result() if ended.done() else talking.exception()
            line.reason = str(error or "it left")
        finally:
            line.up = False
            for tap in self._taps_of(peer):
                tap.lost(peer, PeerUnreachable(f"{peer} is away: {line.reason or 'this daemon stops'}"))
            if talking is not None:
                talking.cancel()
                with suppress(asyncio.CancelledError, ColonnadeError):
                    await talking
            await control.close()
            await wire.close()
            line.wire = None

    def _mended(self, peer: str) -> None:
        for tap in self._taps_of(peer):
            tap.restored(peer)

    def _taps_of(self, peer: str) -> list[RunWire]:
        return [tap for (_, sender), tap in self._taps.items() if sender == peer]

    def _deliver(self, sender: str, frame: bytes) -> None:
        try:
            header, _ = unpack(frame)
        except MalformedMessage:
            self.refused["MalformedMessage"] += 1
            return
        tap = self._taps.get((header.place, sender))
        if tap is None:
            self.refused["WrongRun"] += 1
        else:
            tap.deliver(sender, frame)


class RunWire:
    """The `Wire` of one run: the standing lines, and only this run's frames."""

    lossless = False
    intact = True
    retry_after: float | None = None

    def __init__(self, mux: Mux, run: int, peers: tuple[str, ...]) -> None:
        self._mux = mux
        places = Places(mux.me, (mux.me, *peers), run)
        self._keys = [(places.of[peer], peer) for peer in peers]
        self._gone: set[str] = set()
        mux._taps.update(dict.fromkeys(self._keys, self))

    def framing(self, size: int) -> tuple[int, int]:
        return stream_framing(size)

    def attach(self, deliver: Deliver, lost: Lost, restored: Restored) -> None:
        self.deliver, self._lost, self.restored = deliver, lost, restored

    def lost(self, peer: str, error: ColonnadeError) -> None:
        self._gone.add(peer)  # a line that begins again knows nothing of this run
        self._lost(peer, error)

    def send(self, to: str, frame: bytes) -> Awaitable[None] | None:
        wire = self._mux.lines[to].wire
        return None if wire is None or to in self._gone else wire.send(to, frame)

    async def close(self) -> None:
        for key in self._keys:
            if self._mux._taps.get(key) is self:
                del self._mux._taps[key]
