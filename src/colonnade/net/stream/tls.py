"""The real network over TLS 1.3 sockets: both ends show a certificate, nothing older is spoken.

There are no session tickets: every connection proves both identities afresh. What happens on one connection
is in `tls_channel`.
"""

from __future__ import annotations

import asyncio
import ssl
import tempfile
from collections.abc import Callable

from colonnade.errors import CertificateError
from colonnade.net.framing import RECORD
from colonnade.net.stream.certificates import Credentials
from colonnade.net.stream.channel import AT_ONCE, Channel, cannot_listen
from colonnade.net.stream.poller import SUPPORTED, Poller
from colonnade.net.stream.tls_channel import TlsChannel
from colonnade.net.stream.unproven import UnprovenGuests

STRANGERS = 512  # handshakes at one time; somebody is turned away for who comes on top of these


class TlsEngine:
    """An `Engine` over TLS sockets."""

    write_size = 4 * RECORD

    def __init__(self, credentials: Credentials) -> None:
        self._me = credentials.party
        self.renew(credentials)
        self._listener: asyncio.Server | None = None
        self._strangers: UnprovenGuests[TlsChannel] = UnprovenGuests(STRANGERS)
        self._poller = Poller()

    def renew(self, credentials: Credentials) -> None:
        """Show another certificate from now on, and trust another authority; connections that stand stay."""
        self._client = _context(ssl.PROTOCOL_TLS_CLIENT, credentials)
        self._server = _context(ssl.PROTOCOL_TLS_SERVER, credentials)
        self._server.num_tickets = 0

    async def dial(self, peer: str, host: str, port: int) -> Channel:
        loop = asyncio.get_running_loop()
        secured: asyncio.Future[None] = loop.create_future()

        def outcome(error: ssl.SSLError | OSError | None) -> None:
            if not secured.done():
                if error is None:
                    secured.set_result(None)
                else:
                    secured.set_exception(_explain(error, self._me, peer))

        def channel() -> TlsChannel:
            def explain(error: Exception) -> Exception:
                return _explain(error, self._me, peer)

            return TlsChannel(self._client, outcome, explain, self._poller, server=False)

        _, dialled = await loop.create_connection(channel, host, port)
        try:
            await secured
        except BaseException:
            dialled.close()
            raise
        return dialled

    async def listen(
        self, host: str, port: int, accepted: Callable[[Channel], None], refused: Callable[[str], None]
    ) -> None:
        def channel() -> TlsChannel:
            def outcome(error: ssl.SSLError | OSError | None) -> None:
                self._strangers.leave(incoming)
                if error is None:
                    accepted(incoming)
                else:
                    refused(_words(error))

            incoming = TlsChannel(self._server, outcome, lambda error: error, self._poller, server=True)
            incoming.unproven = self._strangers
            if (turned_away := self._strangers.enter(incoming)) is not None:
                turned_away.abort()
                refused("too many connections")
            return incoming

        try:
            self._listener = await asyncio.get_running_loop().create_server(channel, host, port)
        except OSError as error:
            raise cannot_listen(self._me, f"{host}:{port}", error) from error

    def catch_up(self) -> int:
        self._poller.poll()
        return 0 if SUPPORTED else AT_ONCE

    async def close(self) -> None:
        if self._listener is not None:
            self._listener.close()
        for stranger in self._strangers.everybody():
            stranger.abort()
        # a socket is closed one turn of the loop after its abort, and was heard of one after it was accepted
        await asyncio.sleep(0)
        await asyncio.sleep(0)


def _context(side: int, credentials: Credentials) -> ssl.SSLContext:
    context = ssl.SSLContext(side)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    # the certificate's name is the party, not the host, and is checked with the pin after the handshake
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    # what stands in ca.crt is trusted, also where another has signed it
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.load_verify_locations(cadata=credentials.ca.decode("ascii"))
    with tempfile.NamedTemporaryFile() as file:  # readable by its owner only, and gone after these lines
        file.write(credentials.certificate + credentials.key)
        file.flush()
        context.load_cert_chain(file.name)
    return context


def _explain(error: Exception, me: str, peer: str) -> Exception:
    """Return the error to raise for a TLS error: it says whose certificate was refused, if that is what
    happened."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return CertificateError(f"{me} refused the certificate of {peer}: {_words(error)}")
    reason = getattr(error, "reason", None) or ""
    if "ALERT" in reason and ("CERTIFICATE" in reason or "UNKNOWN_CA" in reason):
        return CertificateError(f"{peer} refused the certificate of {me}: {_words(error)}")
    return ConnectionError(f"TLS with {peer} failed: {_words(error)}")


def _words(error: Exception) -> str:
    """Return the reason of an error, in words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"certificate not valid: {error.verify_message}"
    reason = getattr(error, "reason", None)
    return str(reason).lower().replace("_", " ") if reason else str(error)
