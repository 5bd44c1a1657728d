"""Health and metrics for the party's own operators: three pages on loopback, in Prometheus' text format.

Nothing here tells about data: there are only counts of peers, runs, bytes and refusals.
"""

from __future__ import annotations

import asyncio
import hmac
import re
import ssl
from collections.abc import Iterator
from contextlib import suppress

from colonnade.deploy.daemon.daemon import Daemon
from colonnade.deploy.http.connections import HANDSHAKE_S, ConnectionLimits
from colonnade.deploy.server_tls import ServerTls
from colonnade.deploy.settings import address
from colonnade.deploy.telemetry import metrics
from colonnade.deploy.tokens import read_token
from colonnade.net.stream.channel import cannot_listen

LIMIT = 8192
PATIENCE_S = 5.0


async def serve(daemon: Daemon) -> asyncio.Server:
    """Start the server of these pages on loopback, for everybody on this machine."""
    return await _listen(daemon, "monitor", daemon.settings.monitor or "")


async def serve_telemetry(daemon: Daemon) -> asyncio.Server:
    """Start the same where [telemetry] says: with TLS, and a token for the metrics, if it has them."""
    settings, given = daemon.settings, daemon.settings.telemetry
    token = None
    if given.token_file is not None:
        token = read_token(settings.path(given.token_file), "telemetry.token_file")
    tls = None
    if given.certificate is not None and given.key is not None:
        server_tls = ServerTls("telemetry", settings.path(given.certificate), settings.path(given.key))
        daemon.server_tls.append(server_tls)
        tls = server_tls.context
    return await _listen(daemon, "telemetry.listen", given.listen or "", token, tls)


async def _listen(
    daemon: Daemon, setting: str, where: str, token: str | None = None, tls: ssl.SSLContext | None = None
) -> asyncio.Server:
    """Start a server of these pages at the address that a setting names."""
    host, port = address(where, setting)

    def visitor() -> asyncio.StreamReaderProtocol:
        reader = asyncio.StreamReader(limit=LIMIT)
        return asyncio.StreamReaderProtocol(reader, lambda r, w: _answer(daemon, token, r, w))

    patience = HANDSHAKE_S if tls is not None else None
    try:
        return await asyncio.get_running_loop().create_server(
            ConnectionLimits(visitor), host, port, ssl=tls, ssl_handshake_timeout=patience
        )
    except OSError as error:
        raise cannot_listen(f"{setting}:", where, error) from error


async def _answer(
    daemon: Daemon, token: str | None, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Answer one HTTP request and close the connection."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            words = head.split(" ", 2)
            path = words[1] if len(words) > 1 else ""
            if path == "/metrics" and not _may_ask(head, token):
                status, body = "401 Unauthorized", "show the token: Authorization: Bearer TOKEN\n"
            else:
                status, body = page(daemon, path)
            writer.write(
                f"HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\n"
                f"Content-Length: {len(body.encode())}\r\nConnection: close\r\n\r\n{body}".encode()
            )
            await writer.drain()
    except (OSError, EOFError, TimeoutError, asyncio.LimitOverrunError):
        pass  # the client went away or asked nothing
    finally:
        with suppress(OSError):
            writer.close()


def _may_ask(head: str, token: str | None) -> bool:
    """Return whether a request shows the token, where there is one."""
    shown = re.search(r"^authorization:[ \t]*bearer[ \t]+(\S+)[ \t]*\r?$", head, re.IGNORECASE | re.MULTILINE)
    return token is None or (shown is not None and hmac.compare_digest(shown[1].encode(), token.encode()))


def page(daemon: Daemon, path: str) -> tuple[str, str]:
    """Return the HTTP status and the text of the page at this path."""
    match path:
        case "/health":
            return "200 OK", f"{', '.join(['ok', *ailments(daemon)])}\n"
        case "/ready":  # for what sends requests to the service: a party that lives need not answer them
            status = "503 Service Unavailable" if daemon.no_scores else "200 OK"
            return status, f"{', '.join(ailments(daemon)) or 'ready'}\n"
        case "/metrics":
            return "200 OK", metrics.page(daemon)
        case _:
            return "404 Not Found", "there is /health, /ready and /metrics\n"


def ailments(daemon: Daemon) -> Iterator[str]:
    """Yield what is not as it should be: peers that are away, and why no scores are answered."""
    if away := [peer for peer, line in daemon.mux.lines.items() if not line.up]:
        yield f"away: {' '.join(away)}"
    if daemon.no_scores:
        yield f"no scores: {daemon.no_scores}"
