"""One TLS connection over one TCP connection, with its handshake.

TLS runs in memory between an asyncio transport and the wire. Measured against asyncio's own TLS layer
that is a fifth less time for a round trip, and a handshake that fails can still send its alert, so the
other end learns why it was refused.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from typing import cast

from colonnade.net.framing import RECORD
from colonnade.net.stream.channel import CLOSE_S, Receiver
from colonnade.net.stream.poller import SUPPORTED, Poller
from colonnade.net.stream.sealed import Sealed
from colonnade.net.stream.unproven import UnprovenGuests

HANDSHAKE_S = 10.0
HANDSHAKE_BUFFER, READ_BUFFER, WRITE_BUFFER = 2**13, 2**17, 2**18

# a machine that vanished without a word is noticed after about 25 s, whether or not anything is sent
_KEEPALIVE = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 25_000}


class TlsChannel(asyncio.BufferedProtocol):
    """One TLS connection over one TCP connection.

    `outcome` is called once, at the end of the handshake: None, or why it failed. `explain` makes an
    error of what breaks the connection later. No buffer here is large for long: memory that is asked for and
    given back by the megabyte costs more in page faults than the encryption of what is in it.
    """

    def __init__(
        self,
        context: ssl.SSLContext,
        outcome: Callable[[ssl.SSLError | OSError | None], None],
        explain: Callable[[Exception], Exception],
        poller: Poller,
        *,
        server: bool,
    ) -> None:
        self.certificate = b""
        self.welcome = True
        self.unproven: UnprovenGuests[TlsChannel] | None = (
            None  # of those who have not shown yet who they are
        )
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=server)
        self._buffer = memoryview(bytearray(HANDSHAKE_BUFFER))  # strangers get little
        self._outcome = outcome
        self._explain = explain
        self._poller = poller
        self._descriptor = -1  # while the poller watches it,
        self._sealed: Sealed | None = None  # and what is read and written there, past asyncio's transport
        self._spoke = -1  # how often anything was heard until this channel was last written to
        self._receiver: Receiver | None = None
        self._connected = self._secured = self._closing = self._paused = False
        self._error: Exception | None = None
        self._timer: asyncio.TimerHandle | None = None

    # -- called by the wire -------------------------------------------------------------------------

    def open(self, receiver: Receiver) -> None:
        self._receiver = receiver
        if self._transport.is_closing():
            asyncio.get_running_loop().call_soon(receiver.gone, ConnectionError("the connection was closed"))
        else:
            if self._incoming.pending:
                asyncio.get_running_loop().call_soon(self._read, receiver)
            if SUPPORTED:
                self._watch()

    def write(self, data: bytes) -> bool:
        if self._closing or self._transport.is_closing():
            return True
        self._spoke = self._poller.heard
        if self._sealed is not None and not self._transport.get_write_buffer_size():
            unsent = self._sealed.write(data)
        else:
            rest = memoryview(data)
            while rest:
                rest = rest[self._tls.write(rest) :]
            unsent = self._outgoing.read()
        if unsent:
            self._transport.write(unsent)
        return not self._paused

    def prompt(self) -> bool:
        return self._spoke != self._poller.heard

    def close(self) -> None:
        if not self._closing and not self._transport.is_closing():
            self._closing = True
            self._unwatch()
            self._transport.resume_reading()  # to notice when the peer has closed as well
            try:
                # half-closed: the peer can still read what was written, an alert or a refusal above all
                self._transport.write_eof()
            except OSError:  # the peer has torn it down already, which asyncio has not told us yet
                self._transport.abort()
            else:
                self._abort_after(CLOSE_S)

    def abort(self) -> None:
        self._closing = True
        self.welcome = False  # in case asyncio has not told us of the connection yet
        if self._connected:
            self._transport.abort()

    # -- called by asyncio --------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport, self._connected = cast(asyncio.Transport, transport), True
        if not self.welcome:
            self.abort()
            self._tell_outcome(ConnectionError("too many connections"))
            return
        self._transport.set_write_buffer_limits(WRITE_BUFFER)
        sock = self._transport.get_extra_info("socket")
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in _KEEPALIVE.items():
            if hasattr(socket, option):
                sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
        self._abort_after(HANDSHAKE_S)
        self._handshake()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        if self._closing:
            return
        self._incoming.write(self._buffer[:nbytes])
        if not self._secured:
            if self.unproven is not None:
                self.unproven.spoke(self)
            self._handshake()
        elif self._receiver is not None:
            self._read(self._receiver)

    def eof_received(self) -> None:
        """Let the transport close itself, as nothing more will come."""

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        if self._receiver is not None:
            self._receiver.drained()

    def connection_lost(self, error: Exception | None) -> None:
        self._unwatch()
        if self._timer is not None:
            self._timer.cancel()
        error = self._error or error or ConnectionError("the connection was closed")
        if not self._secured and not self._closing:
            self._tell_outcome(ConnectionError("the connection was closed during the handshake"))
        if self._receiver is not None:
            self._receiver.gone(error)

    # -- reading without asyncio's transport, once it is known who is there ------------------------------

    def _watch(self) -> None:
        self._transport.pause_reading()
        self._descriptor = self._transport.get_extra_info("socket").fileno()
        self._sealed = Sealed(
            self._descriptor, self._tls, self._incoming, self._outgoing, ssl.SSLWantReadError
        )
        self._poller.watch(self._descriptor, self._readable)

    def _unwatch(self) -> None:
        if self._descriptor >= 0:
            self._poller.forget(self._descriptor)
            self._descriptor, self._sealed = -1, None

    def _readable(self) -> None:
        """Read what has come. An error ends this channel and no other."""
        if self._closing or self._transport.is_closing() or self._sealed is None or self._receiver is None:
            return
        try:
            if not self._sealed.read(self._receiver.received):
                self._unwatch()
                self._transport.close()
            elif self._outgoing.pending:
                self._answer()
        except ssl.SSLError as error:
            self._error = self._explain(error)
            self.close()
        except OSError as error:
            self._error = error
            self._transport.abort()
        except Exception as error:
            told = {"message": "what came over TLS could not be taken", "exception": error, "protocol": self}
            asyncio.get_running_loop().call_exception_handler(told)
            self._error = error
            self._transport.abort()

    # -- TLS ----------------------------------------------------------------------------------------

    def _handshake(self) -> None:
        """Go on with the handshake; the outcome is told once it is over."""
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._transport.write(self._outgoing.read())
        except ssl.SSLError as error:
            self._transport.write(self._outgoing.read())  # the alert, which tells the other end why
            self.close()
            self._tell_outcome(error)
        else:
            self._transport.write(self._outgoing.read())
            if self._timer is not None:
                self._timer.cancel()
            self._secured, self._buffer = True, memoryview(bytearray(READ_BUFFER))
            self.certificate = self._tls.getpeercert(binary_form=True) or b""
            self._tell_outcome(None)

    def _tell_outcome(self, error: ssl.SSLError | OSError | None) -> None:
        """Say how the handshake ended, once.

        The listener may hold this channel: forgotten, it does not keep the channel and its buffers alive
        until the garbage collector comes by, which in a process that lives for weeks is seldom.
        """
        outcome, self._outcome = self._outcome, _nothing
        outcome(error)

    def _read(self, receiver: Receiver) -> None:
        """Decrypt what has arrived and hand it over."""
        try:
            while self._incoming.pending and not self._closing:
                record = self._tls.read(RECORD)
                if not record:
                    self.close()
                    break
                receiver.received(record)
        except ssl.SSLWantReadError:
            pass  # half a record; the rest is on its way
        except ssl.SSLError as error:
            self._error = self._explain(error)
            self.close()
        self._answer()

    def _answer(self) -> None:
        """Send what TLS itself has to say about what it has read."""
        if self._outgoing.pending and not self._closing:
            self._transport.write(self._outgoing.read())

    def _abort_after(self, seconds: float) -> None:
        """End the connection after this many seconds, instead of when it was to end before."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(seconds, self._transport.abort)


def _nothing(error: ssl.SSLError | OSError | None) -> None:
    """Do nothing: the outcome was told."""
