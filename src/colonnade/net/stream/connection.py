"""One connection between two parties: they find out who is at the other end, then exchange frames.

TLS has proven that the other end owns a certificate of the authority. The dialler checks that it is the
pinned one and greets; the listener does the same and greets back; from then on there are only frames. A
greeting carries a number drawn at random when the process started, so a peer that was restarted in the
middle of a run is not mistaken for the one that was there. A party that refuses says why, so that both ends
can tell their users.
"""

from __future__ import annotations

import asyncio
import re
from typing import Protocol

from colonnade.errors import CertificateError, ColonnadeError, OversizedMessage, PeerLost
from colonnade.net.framing import Splitter, prefix
from colonnade.net.network import Deliver
from colonnade.net.stream.channel import Channel

GREET_S = 10.0
GREETING_LIMIT = 1024

PROTOCOL = 3  # of frames and greetings; another number is refused at both ends
# before version 3 a length had four bytes, of which the last two seem to belong to the greeting
_GREETING = re.compile(rb"(?:\0\0)?colonnade/(\d{1,9}) ")
_REFUSAL = b"refused "


class ConnectionOwner(Protocol):
    """What a connection asks of the wire it belongs to, and tells it."""

    me: str
    protocol: int
    instance: bytes
    size_limit: int
    deliver: Deliver

    def identify(self, connection: Connection) -> str:
        """Return the peer at the other end, or CertificateError."""
        ...

    def stranger(self, reason: str) -> None:
        """Take note that somebody who is no party of the run was turned away."""
        ...

    def admit(self, connection: Connection, peer: str, instance: bytes) -> None:
        """Take in the other end, which has greeted; PeerLost if it is not the process that was there
        before."""
        ...

    def foreign(self, peer: str, spoken: str) -> ColonnadeError:
        """Return the error for a peer that speaks another protocol, as both ends are told."""
        ...

    def rejected(self, peer: str, error: ColonnadeError) -> None:
        """Take note that the peer has refused this party."""
        ...

    def departed(self, connection: Connection, error: ColonnadeError) -> None:
        """Take note that the peer hung up, or sends what cannot be read on."""
        ...

    def drained(self, connection: Connection) -> None:
        """Take note that the channel has room again."""
        ...

    def gone(self, connection: Connection) -> None:
        """Take note that the channel is closed."""
        ...


class Connection:
    """The receiver of one channel. `peer` is who is there, once the greetings are done."""

    def __init__(self, owner: ConnectionOwner, channel: Channel, dialled: str | None) -> None:
        loop = asyncio.get_running_loop()
        self.channel = channel
        self.dialled = dialled
        self.peer: str | None = None
        self.met: asyncio.Future[None] = loop.create_future()
        self._owner = owner
        self._closed = False
        # a frame may follow the listener's greeting at once; nothing follows the dialler's
        self._splitter = Splitter(GREETING_LIMIT if dialled is None else owner.size_limit)
        self._deadline = loop.call_later(GREET_S, self._end, "did not greet")

    def begin(self) -> None:
        """Open the channel and, at the dialling end, greet."""
        self.channel.open(self)
        if self.dialled is not None:
            try:
                self._owner.identify(self)
            except CertificateError as error:
                self._refuse(error)
            else:
                self._greet()

    def close(self) -> None:
        """Close the channel; nothing that arrives from now on counts."""
        self._closed = True
        self._deadline.cancel()
        self.channel.close()

    # -- called by the channel ----------------------------------------------------------------------

    def received(self, data: bytes) -> None:
        if self._closed:
            return
        try:
            frames = self._splitter.feed(data)
        except OversizedMessage as error:
            self._overrun(error)
            return
        deliver = self._owner.deliver
        for frame in frames:
            if self.peer is None:
                self._greeted(frame)
            elif frame:
                deliver(self.peer, frame)
            else:
                self._owner.departed(self, PeerLost(f"{self.peer} hung up; it was stopped, or it failed"))
            if self._closed:
                return

    def drained(self) -> None:
        self._owner.drained(self)

    def gone(self, error: Exception) -> None:
        self._deadline.cancel()
        self._conclude(error)
        if self.peer is None and self.dialled is None and not self._closed:
            self._owner.stranger("left without a greeting")
        self._closed = True
        self._owner.gone(self)

    # -- the greeting -------------------------------------------------------------------------------

    def _greeted(self, frame: bytes) -> None:
        try:
            peer = self._owner.identify(self)
            if frame.startswith(_REFUSAL):
                error = _refusal(peer, frame)
                self._conclude(error)
                self._owner.rejected(peer, error)
                self.close()
                return
            greeting = _GREETING.match(frame)
            if greeting is None or int(greeting[1]) != self._owner.protocol:
                spoken = f"version {int(greeting[1])}" if greeting else "no version"
                self._refuse(self._owner.foreign(peer, spoken))
                return
            self._owner.admit(self, peer, frame[greeting.end() :])
        except (CertificateError, PeerLost) as error:
            self._refuse(error)

    def admitted(self, peer: str) -> None:
        """Let frames pass: the owner takes this connection for the one with `peer`."""
        self.peer = peer
        self._deadline.cancel()
        self._splitter.limit = self._owner.size_limit
        if self.dialled is None:
            self._greet()
        if not self.met.done():
            self.met.set_result(None)

    def _greet(self) -> None:
        self._say(f"colonnade/{self._owner.protocol} ".encode() + self._owner.instance)

    def _say(self, frame: bytes) -> None:
        self.channel.write(prefix(len(frame)) + frame)

    def _refuse(self, error: ColonnadeError) -> None:
        self._say(_REFUSAL + f"{type(error).__name__}: {error}".encode()[: GREETING_LIMIT - len(_REFUSAL)])
        self._conclude(error)
        self.close()

    def _end(self, reason: str) -> None:
        if self.dialled is None:
            self._owner.stranger(reason)
        self._conclude(ConnectionError(reason))
        self.close()

    def _overrun(self, error: OversizedMessage) -> None:
        if self.peer is None:
            self._end("announced a greeting that is too long")
        else:
            # the stream cannot be read on past a frame that is not read, and the peer would only repeat it
            text = f"{self.peer}: {error}; give every party the same limit"
            self._owner.departed(self, OversizedMessage(text))

    def _conclude(self, error: Exception) -> None:
        # only the dialler waits for the outcome
        if self.dialled is not None and not self.met.done():
            known = isinstance(error, ColonnadeError | OSError)
            self.met.set_exception(error if known else ConnectionError(str(error)))


def _refusal(peer: str, frame: bytes) -> ColonnadeError:
    """Return the error for a refusal by the peer, whose text may be anything."""
    text = frame[len(_REFUSAL) :].decode(errors="replace")
    kind, _, reason = "".join(c if c.isprintable() else "?" for c in text).partition(": ")
    return (CertificateError if kind == "CertificateError" else PeerLost)(f"{peer} refused: {reason}")
