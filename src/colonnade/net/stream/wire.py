"""A wire over a real network: one connection per pair of parties, kept standing for the whole run.

The party with the smaller name dials, the other listens, so the parties may start in any order. When a
connection breaks, the dialler dials again with a growing pause and the listener waits, both for
`reconnect_s`; when it stands again both ends are told that frames may be missing, and the same bytes are
sent again. A peer that stays away is lost, and so is one that was started again in the middle of a run:
what it held is gone. Who is not a pinned party of this run is refused and counted, and the run goes on.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Awaitable, Mapping

from colonnade.errors import CertificateError, ColonnadeError, NetworkError, PeerLost, PeerUnreachable
from colonnade.net.framing import stream_framing
from colonnade.net.network import Deliver, Lost, Restored
from colonnade.net.stream.certificates import Credentials
from colonnade.net.stream.channel import CLOSE_S, Address, Channel, Transport
from colonnade.net.stream.connection import PROTOCOL, Connection
from colonnade.net.stream.outbox import Outbox
from colonnade.net.stream.peer_link import PeerLink
from colonnade.net.stream.pem_files import names_in
from colonnade.net.stream.tls import TlsEngine

CONNECT_S = RECONNECT_S = 30.0
SIZE_LIMIT = 64 * 2**20
ATTEMPT_S = 10.0  # for one attempt to connect and greet
FIRST_PAUSE, LAST_PAUSE = 0.05, 1.0  # between attempts
STRANGERS = 128  # connections at one time that have not yet said who they are


class NetworkWire:
    """A `Wire` over any `Transport`. Attach an endpoint to it, then `await start()`.

    `addresses` says where `me` listens and where it dials each of the others.
    """

    protocol = PROTOCOL
    lossless = False
    intact = True
    size_limit = SIZE_LIMIT
    retry_after: float | None = None

    def __init__(
        self,
        me: str,
        addresses: Mapping[str, Address],
        credentials: Credentials,
        engine: Transport,
        *,
        connect_s: float = CONNECT_S,
        reconnect_s: float = RECONNECT_S,
    ) -> None:
        if me != credentials.party:
            raise CertificateError(f"these are the credentials of {credentials.party}, not of {me}")
        self.me = me
        self.instance = os.urandom(16)
        self.refused: Counter[str] = Counter()
        self._credentials = credentials
        self._engine = engine
        self._listen = addresses[me]
        self._connect_s, self._reconnect_s = connect_s, reconnect_s
        peers = sorted(peer for peer in addresses if peer != me)
        self._links = {
            peer: PeerLink(peer, addresses[peer], me < peer, Outbox(engine.write_size)) for peer in peers
        }
        self._connections: set[Connection] = set()
        self._started: asyncio.Future[None] | None = None
        self._closing = False
        self._all_gone = asyncio.Event()
        self._last_refusal = ""

    framing = staticmethod(stream_framing)

    def attach(self, deliver: Deliver, lost: Lost, restored: Restored) -> None:
        self.deliver = deliver
        self._lost = lost
        self._restored = restored

    def send(self, to: str, frame: bytes) -> Awaitable[None] | None:
        link = self._links[to]
        return link.outbox.put(frame) if link.connection is not None else link.store(frame)

    def catch_up(self) -> int:
        return self._engine.catch_up()

    # -- connecting ---------------------------------------------------------------------------------

    async def start(self) -> None:
        """Connect to every peer, or raise the first reason why that cannot be done."""
        self._started = asyncio.get_running_loop().create_future()
        try:
            if not all(link.dials for link in self._links.values()):
                await self._engine.listen(*self._listen, self._accepted, self._refuse)
            for link in self._links.values():
                if not link.instance:
                    self._seek(link, self._connect_s)
            self._check_started()
            await self._started
        except BaseException:
            await self.close()
            raise

    def _check_started(self) -> None:
        met = all(link.instance for link in self._links.values())
        if met and self._started is not None and not self._started.done():
            self._started.set_result(None)

    def _seek(self, link: PeerLink, seconds: float) -> None:
        """Begin to look for a connection to this peer; without one in this many seconds, the peer is lost."""
        loop = asyncio.get_running_loop()
        if link.dials:
            link.dialling = loop.create_task(self._dial(link, loop.time() + seconds))
        else:
            link.timer = loop.call_later(seconds, self._give_up, link, "it did not connect")

    async def _dial(self, link: PeerLink, deadline: float) -> None:
        loop = asyncio.get_running_loop()
        pause = FIRST_PAUSE
        try:
            while (reason := await self._attempt(link, min(deadline, loop.time() + ATTEMPT_S))) is not None:
                if loop.time() + pause >= deadline:
                    self._give_up(link, reason)
                    return
                await asyncio.sleep(pause)
                pause = min(2 * pause, LAST_PAUSE)
        except (CertificateError, PeerLost) as error:
            self._lose(link, error)  # trying again would not help

    async def _attempt(self, link: PeerLink, deadline: float) -> str | None:
        """Dial once. Returns None when the peer has greeted, else why it did not; only what another attempt
        cannot mend is raised."""
        connection = None
        try:
            async with asyncio.timeout_at(deadline):
                channel = await self._engine.dial(link.peer, *link.address)
                connection = self._connect(channel, link.peer)
                await connection.met
        except TimeoutError:
            return "no answer"
        except OSError as error:
            return _words(error)
        except CertificateError as error:
            if not link.instance:
                raise
            return str(error)  # the real peer was met before: somebody else answers where it was
        finally:
            if connection is not None and connection.peer is None:
                connection.close()
        return None

    def _give_up(self, link: PeerLink, reason: str) -> None:
        """Lose a peer that could not be found in time."""
        where = f"{link.peer} at {link.address[0]}:{link.address[1]}"
        if self._last_refusal and not link.dials:
            reason = f"{reason}, and somebody was refused: {self._last_refusal}"
        if link.instance:
            waited = f"waited {self._reconnect_s:g} s for it to come back"
            self._lose(link, PeerLost(f"{self.me} lost {where} and {waited}: {reason}"))
        else:
            text = f"{self.me} could not reach {where} within {self._connect_s:g} s: {reason}"
            self._lose(link, PeerUnreachable(f"{text}; is it running, is the address right, the port open?"))

    def _accepted(self, channel: Channel) -> None:
        if self._closing or len(self._connections) >= STRANGERS + len(self._links):
            self._refuse("too many connections")
            channel.abort()
        else:
            self._connect(channel, None)

    def _connect(self, channel: Channel, dialled: str | None) -> Connection:
        connection = Connection(self, channel, dialled)
        self._connections.add(connection)
        connection.begin()
        return connection

    def _refuse(self, reason: str) -> None:
        self.refused[reason] += 1
        self._last_refusal = reason

    # -- called by a connection ---------------------------------------------------------------------

    def identify(self, connection: Connection) -> str:
        certificate = connection.channel.certificate
        if connection.dialled is not None:
            self._credentials.check(connection.dialled, certificate)
            return connection.dialled
        names = names_in(certificate)
        link = next((self._links[name] for name in names if name in self._links), None)
        if link is None or link.dials:
            self._refuse("not a party that dials here")
            raise CertificateError(f"{', '.join(names) or 'nobody'} is not a party that dials {self.me}")
        try:
            self._credentials.check(link.peer, certificate)
        except CertificateError as error:
            self._refuse("not the pinned certificate")
            if not link.instance:
                self._lose(link, error)  # once the real peer was met, an impostor is only counted
            raise
        return link.peer

    def stranger(self, reason: str) -> None:
        self._refuse(reason)

    def foreign(self, peer: str, spoken: str) -> ColonnadeError:
        self._refuse("does not speak this version of the protocol")
        link = self._links[peer]
        error = PeerLost(
            f"{peer} speaks {spoken} of the wire protocol, {self.me} speaks version {self.protocol}; install "
            "the same minor version of Colonnade at both"
        )
        if not link.instance:
            self._lose(link, error)  # once the real peer was met, others are only counted
        return error

    def rejected(self, peer: str, error: ColonnadeError) -> None:
        self._lose(self._links[peer], error)

    def admit(self, connection: Connection, peer: str, instance: bytes) -> None:
        link = self._links[peer]
        if link.left or self._closing:
            connection.close()  # perhaps it dials for the next run already; it will try again
            return
        if link.ended is not None:
            raise PeerLost(f"{self.me} has given up on {peer}: {link.ended}")
        if link.instance not in (b"", instance) and link.connection is not None:
            # its own process speaks here: another with the same certificate may not end what that one does
            self._refuse("a second process of a peer")
            raise PeerLost(f"another process of {peer} is connected with {self.me}; is it running twice?")
        if link.instance not in (b"", instance):
            error = PeerLost(
                f"{peer} was started again; what its process before had under way with {self.me} is over"
            )
            self._lose(link, error)
            raise error
        known = bool(link.instance)
        link.attach(connection, instance)
        if known:
            self._restored(peer)
        else:
            self._check_started()

    def recheck(self, credentials: Credentials) -> None:
        """Check every connection's certificate again, by these pins and by this hour; lose who fails."""
        for link in self._links.values():
            if link.connection is not None:
                try:
                    credentials.check(link.peer, link.connection.channel.certificate)
                except CertificateError as error:
                    self._lose(link, error)

    def renew(self, credentials: Credentials) -> None:
        """Take other credentials; a connection that showed another certificate of this party is begun again.

        That is a short interruption like any other: no frame is lost.
        """
        changed = credentials.certificate != self._credentials.certificate
        self._credentials = credentials
        self.recheck(credentials)
        for link in self._links.values():
            if changed and link.ended is None and link.connection is not None:
                link.connection.channel.abort()

    def departed(self, connection: Connection, error: ColonnadeError) -> None:
        link = self._link_over(connection)
        if link is not None:
            link.left = isinstance(error, PeerLost)
            self._lose(link, error)

    def drained(self, connection: Connection) -> None:
        link = self._link_over(connection)
        if link is not None:
            link.outbox.drained()

    def gone(self, connection: Connection) -> None:
        self._connections.discard(connection)
        if not self._connections:
            self._all_gone.set()
        link = self._link_over(connection)
        if link is not None:
            link.detach()
            if not self._closing:
                self._seek(link, self._reconnect_s)

    def _link_over(self, connection: Connection) -> PeerLink | None:
        """Return the link that sends over this connection; None if it was never admitted, or was replaced."""
        link = self._links.get(connection.peer or "")
        return link if link is not None and link.connection is connection else None

    # -- the end ------------------------------------------------------------------------------------

    def _lose(self, link: PeerLink, error: ColonnadeError) -> None:
        """End the link and tell those that wait for it: the peer is gone for good."""
        if link.ended is not None:
            return
        link.end(error)
        if self._started is not None and not self._started.done():
            self._started.set_exception(error)
        if not self._closing:
            self._lost(link.peer, error)

    async def close(self) -> None:
        """Send what waits, hang up on every peer, leave nothing behind."""
        if self._closing:
            return
        self._closing = True
        if self._started is not None and not self._started.done():
            self._started.set_exception(NetworkError(f"{self.me} was closed before every peer was connected"))
            self._started.exception()  # a task in `start` sees it; if there is none, that is no fault
        for link in self._links.values():
            link.leave()
        for connection in list(self._connections):
            connection.close()
        dialling = [link.dialling for link in self._links.values() if link.dialling is not None]
        await asyncio.gather(*dialling, return_exceptions=True)
        if self._connections:
            self._all_gone.clear()
            await asyncio.wait([asyncio.ensure_future(self._all_gone.wait())], timeout=CLOSE_S + 1.0)
        await self._engine.close()


def _words(error: OSError) -> str:
    """Return the reason of a failed dial."""
    # the text of a failed dial repeats the address and leaves out the reason
    if isinstance(error, ConnectionError) and error.errno:
        return os.strerror(error.errno)
    return error.strerror or str(error)


def network_wire(
    me: str, addresses: Mapping[str, Address], credentials: Credentials, deadline: float
) -> NetworkWire:
    """Return a wire over TLS. A peer that goes away has the deadline to come back."""
    connect = max(deadline, CONNECT_S)  # the others may still be starting, on a busy machine
    engine = TlsEngine(credentials)
    return NetworkWire(me, addresses, credentials, engine, connect_s=connect, reconnect_s=deadline)
