"""Health and metrics for the party's own operators: three pages on loopback, in Prometheus' text format.

Nothing here tells about data: there are only counts of peers, runs, bytes and refusals.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress

from colonnade.deploy.daemon.daemon import Daemon
from colonnade.deploy.http.connections import ConnectionLimits
from colonnade.deploy.settings import address
from colonnade.net.stream.channel import cannot_listen

LIMIT = 8192
PATIENCE_S = 5.0


async def serve(daemon: Daemon) -> asyncio.Server:
    """Start the server of both pages."""
    host, port = address(daemon.settings.monitor or "", "monitor")

    def visitor() -> asyncio.StreamReaderProtocol:
        reader = asyncio.StreamReader(limit=LIMIT)
        return asyncio.StreamReaderProtocol(reader, lambda r, w: _answer(daemon, r, w))

    try:
        return await asyncio.get_running_loop().create_server(ConnectionLimits(visitor), host, port)
    except OSError as error:
        raise cannot_listen("monitor:", str(daemon.settings.monitor), error) from error


async def _answer(daemon: Daemon, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer one HTTP request and close the connection."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            request = (await reader.readuntil(b"\r\n\r\n")).split(b" ", 2)
            status, body = page(daemon, request[1].decode(errors="replace") if len(request) > 1 else "")
            head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\n"
            writer.write(
                f"{head}Content-Length: {len(body.encode())}\r\nConnection: close\r\n\r\n{body}".encode()
            )
            await writer.drain()
    except (OSError, EOFError, TimeoutError, asyncio.LimitOverrunError):
        pass  # the client went away or asked nothing
    finally:
        with suppress(OSError):
            writer.close()


def page(daemon: Daemon, path: str) -> tuple[str, str]:
    """Return the HTTP status and the text of the page at this path."""
    match path:
        case "/health":
            return "200 OK", f"{', '.join(['ok', *ailments(daemon)])}\n"
        case "/ready":  # for what sends requests to the service: a party that lives need not answer them
            status = "503 Service Unavailable" if daemon.no_scores else "200 OK"
            return status, f"{', '.join(ailments(daemon)) or 'ready'}\n"
        case "/metrics":
            return "200 OK", "\n".join(metrics(daemon)) + "\n"
        case _:
            return "404 Not Found", "there is /health, /ready and /metrics\n"


def ailments(daemon: Daemon) -> Iterator[str]:
    """Yield what is not as it should be: peers that are away, and why no scores are answered."""
    if away := [peer for peer, line in daemon.mux.lines.items() if not line.up]:
        yield f"away: {' '.join(away)}"
    if daemon.no_scores:
        yield f"no scores: {daemon.no_scores}"


def metrics(daemon: Daemon) -> Iterator[str]:
    """Yield the lines of the metrics page: counters and gauges, each after its description."""

    def about(name: str, kind: str, text: str) -> str:
        return f"# HELP colonnade_{name} {text}\n# TYPE colonnade_{name} {kind}"

    yield about("info", "gauge", "The version that runs.")
    yield f'colonnade_info{{party="{daemon.me}",version="{daemon.version}"}} 1'
    yield about("peer_up", "gauge", "Whether the line to a peer stands.")
    for peer, line in daemon.mux.lines.items():
        yield f'colonnade_peer_up{{peer="{peer}"}} {int(line.up)}'
    if daemon.no_scores is not None:
        yield about("service_ready", "gauge", "Whether the prediction service answers.")
        yield f"colonnade_service_ready {int(not daemon.no_scores)}"
    yield about("runs_active", "gauge", "Runs now.")
    yield f"colonnade_runs_active {len(daemon.runs)}"
    yield about("proposals_waiting", "gauge", "Proposals that wait for the operator.")
    yield f"colonnade_proposals_waiting {len(daemon.approvals.held)}"
    yield about("runs_total", "counter", "Runs that ended, by how.")
    for state in ("done", "failed", "refused", "withdrawn", "expired"):
        yield f'colonnade_runs_total{{state="{state}"}} {daemon.journal.ended[state]}'
    counters = {
        "sent_bytes_total": ("Bytes sent in all runs, framing included.", daemon.books.sent_bytes()),
        "strangers_total": ("Connections turned away.", sum(daemon.mux.strangers().values())),
        "frames_refused_total": ("Frames refused.", sum(daemon.mux.refused.values())),
        "scored_rows_total": ("Rows scored for this party or by it for others.", daemon.journal.scored_rows),
    }
    for name, (text, value) in counters.items():
        yield about(name, "counter", text)
        yield f"colonnade_{name} {value}"
    yield about("score_psi", "gauge", "PSI of served scores against those of the test rows.")
    for model, scores in daemon.journal.scores.items():
        if (psi := scores.psi) is not None:
            yield f'colonnade_score_psi{{model="{model}"}} {psi:.6g}'
