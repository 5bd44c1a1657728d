"""Many runs over one standing line per peer.

A daemon keeps a line with every peer it knows, for as long as it lives; when one ends it is begun again.
Runs come and go on top: a frame carries its route in a run, and goes to the endpoint of that run. Run 0
is the daemons' own talk, one endpoint per line. A line that ends fails every run on it; a line that was
only interrupted is mended below, by the wire, and the runs are told that frames may be missing.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

from colonnade.errors import ColonnadeError, PeerUnreachable
from colonnade.net.clock import RealClock
from colonnade.net.endpoint import SIZE_LIMIT, Endpoint
from colonnade.net.frame import Routes
from colonnade.net.mailbox import WAITING_LIMIT
from colonnade.net.recorder import Recorder
from colonnade.net.stream.certificates import Credentials
from colonnade.net.stream.channel import Address
from colonnade.net.stream.port import Port
from colonnade.net.stream.run_wires import Carried, DaemonLine, RunWire, RunWires
from colonnade.net.stream.tls import TlsEngine
from colonnade.net.stream.wire import NetworkWire

CONTROL = 0
ATTEMPT_S = 4.0  # after so long a line says why it does not stand, and begins again
PAUSE_S = 0.2

log = logging.getLogger("colonnade.party")

Talk = Callable[[str, Endpoint], Awaitable[None]]
"""What a daemon does on a line that stands: called with the peer and the endpoint of run 0."""

Missed = Callable[[str, str], None]
"""Called with a peer and why there is no line with it, once for every reason."""


class MessageLimits(NamedTuple):
    """How many bytes a message may have, and all that lie unread."""

    message: int
    waiting: int


CONTROL_ROOM = MessageLimits(2**20, 8 * 2**20)  # daemons say short things beside the runs


@dataclass
class Mux:
    """The standing lines of one daemon, and the runs on them."""

    me: str
    listen: Address
    peers: Mapping[str, Address]
    credentials: Credentials
    reconnect_s: float = 60.0
    waiting_limit: int = WAITING_LIMIT
    renewed: Callable[[], Credentials] | None = None  # reads the pinned certificates again
    recheck_s: float = 60.0
    lines: dict[str, DaemonLine] = field(init=False)

    def __post_init__(self) -> None:
        self.lines = {peer: DaemonLine(peer) for peer in self.peers}
        self._runs = RunWires(self.waiting_limit)
        self._engine = TlsEngine(self.credentials)
        self._port = Port(self._engine, self.listen)
        self._keepers: dict[str, asyncio.Task[None]] = {}
        self._keep_with: Callable[[DaemonLine], Awaitable[None]] | None = None  # once this is open
        self._rechecking: asyncio.Task[None] | None = None
        self._closing = False

    async def open(self, talk: Talk, missed: Missed = lambda peer, reason: None) -> None:
        """Listen, and keep a line with every peer from now on."""
        await self._port.open()
        self._keep_with = lambda line: self._keep(line, talk, missed)
        for peer in self.lines:
            self._begin(peer)
        self._rechecking = asyncio.create_task(self._recheck())

    def _begin(self, peer: str) -> None:
        """Keep a line with a peer from now on."""
        if self._keep_with is not None:
            self._keepers[peer] = asyncio.ensure_future(self._keep_with(self.lines[peer]))

    async def renew(self, credentials: Credentials, peers: Mapping[str, Address]) -> None:
        """Go on with other credentials and other peers; lines with the others stay.

        A line ends whose peer is none any more, or is somewhere else now.
        """
        gone = [peer for peer, where in self.peers.items() if peers.get(peer) != where]
        self.credentials, self.peers = credentials, peers
        ending = [self._keepers.pop(peer) for peer in gone if peer in self._keepers]
        for keeper in ending:
            keeper.cancel()
        await asyncio.gather(*ending, return_exceptions=True)
        for peer in gone:
            del self.lines[peer]
        self._engine.renew(credentials)
        for line in self.lines.values():
            if line.wire is not None:
                line.wire.renew(credentials)
        for peer in peers:
            if peer not in self.lines:
                self.lines[peer] = DaemonLine(peer)
                self._begin(peer)

    async def close(self) -> None:
        self._closing = True
        keepers = [*self._keepers.values(), *([self._rechecking] if self._rechecking else [])]
        for keeper in keepers:
            keeper.cancel()
        await asyncio.gather(*keepers, return_exceptions=True)
        await self._port.close()

    @property
    def refused(self) -> Counter[str]:
        """How many frames were refused before they reached a run, by reason."""
        return self._runs.refused

    @property
    def sent(self) -> Counter[str]:
        """How many bytes were sent to each peer, framing included."""
        return self._runs.sent

    @property
    def received(self) -> Counter[str]:
        """How many bytes came from each peer, framing included."""
        return self._runs.received

    def carried(self, run: int, *, forget: bool = False) -> Carried:
        """Return the bytes of a run so far; nothing of it is kept any more where it is to be forgotten."""
        found = self._runs.carried.get(run, Carried())
        if forget:
            self._runs.carried.pop(run, None)
        return found

    def strangers(self) -> Counter[str]:
        """Return how many connections were turned away at the port, by reason."""
        return self._port.refused

    def wire(self, run: int, parties: tuple[str, ...]) -> RunWire:
        """Return the frames of a run among some of the peers, for a delivery that attaches to them."""
        for party in parties:
            if party != self.me and not (line := self.lines[party]).up:
                raise PeerUnreachable(f"{party} is away: {line.reason}")
        lines = {party: self.lines[party] for party in parties if party != self.me}
        return RunWire(self._runs, lines, Routes(self.me, parties, run))

    def endpoint(
        self, run: int, parties: tuple[str, ...], *, deadline: float, recorder: Recorder | None = None
    ) -> Endpoint:
        """Return this party's end of a run among some of the peers; a recorder hears of all that passes
        there."""
        for party in parties:
            if party != self.me and not (line := self.lines[party]).up:
                raise PeerUnreachable(f"{party} is away: {line.reason}")
        return self._endpoint(run, parties, deadline, MessageLimits(SIZE_LIMIT, self.waiting_limit), recorder)

    def _endpoint(
        self,
        run: int,
        parties: tuple[str, ...],
        deadline: float,
        room: MessageLimits,
        recorder: Recorder | None = None,
    ) -> Endpoint:
        lines = {party: self.lines[party] for party in parties if party != self.me}
        wire = RunWire(self._runs, lines, Routes(self.me, parties, run))
        endpoint = Endpoint(
            self.me,
            parties,
            wire if recorder is None else recorder.tap(wire),
            RealClock() if recorder is None else recorder.clock,
            run=run,
            deadline=deadline,
            size_limit=room.message,
            waiting_limit=room.waiting,
            strict=run != CONTROL,  # a newer peer may say more there than this version understands
        )
        wire.weigh(lambda: endpoint.waiting, endpoint.clear, room.waiting if run == CONTROL else inf)
        return endpoint

    # -- lines --------------------------------------------------------------------------------------

    async def _keep(self, line: DaemonLine, talk: Talk, missed: Missed) -> None:
        said = ""
        # a cancellation that arrives while a line is being put away must not begin another
        while not self._closing:
            try:
                await self._live(line, talk)
                said = ""
            except Exception as error:  # after any error the line is begun again
                if isinstance(error, ColonnadeError):
                    line.reason = str(error)
                else:
                    log.exception("the line with %s", line.peer)
                    line.reason = f"{self.me} failed ({type(error).__name__}); its log says more"
                if line.reason != said:
                    missed(line.peer, said := line.reason)
            await asyncio.sleep(PAUSE_S)

    async def _recheck(self) -> None:
        """Look again and again whether the peers' certificates hold: they expire, and pins are taken away."""
        while not self._closing:
            await asyncio.sleep(self.recheck_s)
            credentials = self.credentials
            if self.renewed is not None:
                try:
                    credentials = self.renewed()
                except ColonnadeError as error:  # perhaps one has expired: those that were read say whose
                    log.warning("the certificates cannot be read again: %s", error)
            for line in self.lines.values():
                if line.wire is not None:
                    line.wire.recheck(credentials)

    async def _live(self, line: DaemonLine, talk: Talk) -> None:
        """Begin a line, talk on it until it ends or the talk does, and put it away."""
        ended: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()
        line.wire = wire = self._wire(line.peer, ended)
        control = self._endpoint(CONTROL, (self.me, line.peer), self.reconnect_s, CONTROL_ROOM)
        talking: asyncio.Future[None] | None = None
        try:
            await wire.start()
            line.up, line.reason = True, ""
            talking = asyncio.ensure_future(talk(line.peer, control))
            await asyncio.wait((ended, talking), return_when=asyncio.FIRST_COMPLETED)
            error = ended.result() if ended.done() else talking.exception()
            line.reason = str(error or "it left")
        finally:
            line.up = False
            away = f"{line.peer} is away: {line.reason or 'this daemon stops'}"
            self._runs.lost(line.peer, PeerUnreachable(away))
            if talking is not None:
                talking.cancel()
                await asyncio.gather(talking, return_exceptions=True)
            await control.close()
            await wire.close()
            line.wire = None

    def _wire(self, peer: str, ended: asyncio.Future[Exception]) -> NetworkWire:
        """Return a wire to one peer, not started yet; `ended` is set when the peer is lost."""
        wire = NetworkWire(
            self.me,
            {self.me: self.listen, peer: self.peers[peer]},
            self.credentials,
            self._port.engine(peer),
            connect_s=ATTEMPT_S,
            reconnect_s=self.reconnect_s,
        )

        def lost(_: str, error: Exception) -> None:
            if not ended.done():
                ended.set_result(error)

        wire.attach(self._runs.deliver, lost, self._runs.restored)
        return wire
