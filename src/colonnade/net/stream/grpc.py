"""The real network over gRPC: one bidirectional stream per pair of parties, with mutual TLS.

For companies whose networks already carry gRPC. gRPC in Python pays per message, not per byte, so a gRPC
message carries all the frames that wait for a peer. The dialler trusts exactly one certificate, the
peer's pinned one; the listener sees the dialler's certificate and checks it. gRPC itself turns away
whoever has no certificate of the authority, so such strangers are refused but cannot be counted here.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Protocol

# gRPC's own log lines say less than the errors raised here, and come unasked
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

import grpc

from colonnade.errors import CertificateError
from colonnade.net.stream.certificates import Credentials, der
from colonnade.net.stream.channel import CLOSE_S, LATER, Channel, Receiver, cannot_listen
from colonnade.net.stream.wire import SIZE_LIMIT

_SERVICE, _METHOD = "colonnade.Wire", "Talk"


class _Stream(Protocol):
    """What the two ends of a gRPC stream have in common."""

    async def read(self) -> bytes:
        """The next message, or `grpc.aio.EOF`."""
        ...

    async def write(self, data: bytes, /) -> None: ...


class GrpcEngine:
    """An `Engine` over gRPC streams."""

    write_size = 2**20

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials
        self._server: grpc.aio.Server | None = None
        self._lives: set[asyncio.Task[None]] = set()
        largest = SIZE_LIMIT + 2 * self.write_size
        self._options = [
            ("grpc.max_send_message_length", largest),
            ("grpc.max_receive_message_length", largest),
            ("grpc.keepalive_time_ms", 15_000),
            ("grpc.keepalive_timeout_ms", 10_000),
            ("grpc.keepalive_permit_without_calls", 1),
            ("grpc.http2.max_pings_without_data", 0),
            ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
            ("grpc.so_reuseport", 0),  # a port that is taken must be an error
            ("grpc.enable_retries", 0),  # the wire dials again itself
            ("grpc.use_local_subchannel_pool", 1),  # a new attempt is a new connection, not an old failure
        ]

    async def dial(self, peer: str, host: str, port: int) -> Channel:
        own = self._credentials
        if peer not in own.pinned:
            raise CertificateError(
                f"no certificate of {peer} is pinned at {own.party}; store {peer}.crt there"
            )
        pinned = own.pinned[peer]
        secrets = grpc.ssl_channel_credentials(pinned, own.key, own.certificate)
        # the certificate names the party, not the host
        options = [*self._options, ("grpc.ssl_target_name_override", peer)]
        connection = grpc.aio.secure_channel(_target(host, port), secrets, options=options)
        call = connection.stream_stream(f"/{_SERVICE}/{_METHOD}")()
        channel = GrpcChannel(
            call,
            der(pinned),
            done_writing=call.done_writing,
            explain=lambda error: _explain(error, own.party, peer),
        )

        async def live() -> None:
            try:
                await channel.live()
            finally:
                await connection.close()

        task = asyncio.get_running_loop().create_task(live())
        self._lives.add(task)
        task.add_done_callback(self._lives.discard)
        return channel

    async def listen(
        self, host: str, port: int, accepted: Callable[[Channel], None], refused: Callable[[str], None]
    ) -> None:
        async def talk(_: object, context: grpc.aio.ServicerContext) -> None:
            proof = context.auth_context()
            if proof.get("ssl_tls_version", [b""])[0] != b"TLSv1.3":
                refused("unsupported protocol")
                await context.abort(grpc.StatusCode.UNAUTHENTICATED, "TLS 1.3 is required")
            channel = GrpcChannel(context, der(proof["x509_pem_cert"][0]))
            accepted(channel)
            await channel.live()  # the stream lasts as long as this call

        own = self._credentials
        handler = grpc.stream_stream_rpc_method_handler(talk)
        self._server = grpc.aio.server(options=self._options)
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(_SERVICE, {_METHOD: handler}),)
        )
        secrets = grpc.ssl_server_credentials([(own.key, own.certificate)], own.ca, require_client_auth=True)
        try:
            self._server.add_secure_port(_target(host, port), secrets)
        except RuntimeError as error:
            raise cannot_listen(own.party, f"{host}:{port}", error) from error
        await self._server.start()

    def catch_up(self) -> int:
        return LATER

    async def close(self) -> None:
        if self._lives:
            await asyncio.wait(self._lives, timeout=CLOSE_S)
        if self._server is not None:
            await self._server.stop(None)


class GrpcChannel:
    """One stream, read and written by two tasks, since gRPC has no other way to wait."""

    def __init__(
        self,
        stream: _Stream,
        certificate: bytes,
        *,
        done_writing: Callable[[], Awaitable[None]] | None = None,
        explain: Callable[[grpc.RpcError], Exception] | None = None,
    ) -> None:
        self.certificate = certificate
        self._receiver: Receiver | None = None
        self._stream = stream
        self._done_writing = done_writing
        self._explain = explain
        self._pending: deque[bytes] = deque()
        self._news = asyncio.Event()
        self._closing = False
        self._stop: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._timer: asyncio.TimerHandle | None = None

    def open(self, receiver: Receiver) -> None:
        self._receiver = receiver

    def write(self, data: bytes) -> bool:
        if self._closing:
            return True
        self._pending.append(data)
        self._news.set()
        return False

    def prompt(self) -> bool:
        return False  # its own task writes, and takes along what is sent until then

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            self._news.set()
            self._timer = asyncio.get_running_loop().call_later(CLOSE_S, self.abort)

    def abort(self) -> None:
        self._closing = True
        if not self._stop.done():
            self._stop.set_result(None)

    async def live(self) -> None:
        """Carry bytes both ways until either end closes or the stream breaks."""
        loop = asyncio.get_running_loop()
        reader, writer = loop.create_task(self._read()), loop.create_task(self._write())
        error: Exception = ConnectionError("the connection was closed")
        try:
            first = {reader, writer, self._stop}
            await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
            if self._done_writing is not None and writer.done() and not writer.exception():
                # half-closed: the peer reads to the end and then ends the stream itself
                await asyncio.wait({reader, self._stop}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if self._timer is not None:
                self._timer.cancel()
            self._closing = True
            reader.cancel()
            writer.cancel()
            for outcome in await asyncio.gather(reader, writer, return_exceptions=True):
                if isinstance(outcome, grpc.RpcError) and self._explain is not None:
                    error = self._explain(outcome)
            if self._receiver is not None:
                self._receiver.gone(error)

    async def _read(self) -> None:
        while (data := await self._stream.read()) is not grpc.aio.EOF:
            if self._receiver is not None:
                self._receiver.received(data)

    async def _write(self) -> None:
        while True:
            while self._pending:
                await self._stream.write(self._pending.popleft())
            if self._closing:
                break
            self._news.clear()
            if self._receiver is not None:
                self._receiver.drained()
            if not self._pending:
                await self._news.wait()
        if self._done_writing is not None:
            await self._done_writing()


def _target(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _explain(error: grpc.RpcError, me: str, peer: str) -> Exception:
    """The error to raise for a gRPC error: it says whose certificate was refused, as far as gRPC tells."""
    details = str(getattr(error, "details", lambda: error)())
    if "CERTIFICATE_VERIFY_FAILED" in details or "Hostname Verification" in details:
        return CertificateError(
            f"{me} refused the certificate of {peer}: it is not the pinned one, or not valid"
        )
    if "CERTIFICATE" in details or "UNKNOWN_CA" in details:
        return CertificateError(f"{peer} refused the certificate of {me}")
    reason = details.rpartition("last error: ")[2]
    if "Socket closed" in details:
        reason = f"{reason} (by a peer that stops, or that does not trust the certificate of {me})"
    return ConnectionError(f"gRPC with {peer} failed: {reason}")
