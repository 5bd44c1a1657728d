"""The settings [telemetry]: where metrics are scraped, how the log is written, where traces go."""

from __future__ import annotations

from typing import Literal
from urllib.parse import urlsplit

from colonnade.errors import JobError
from colonnade.job import Section


class Telemetry(Section, frozen=True):
    """What machines are told of this party, and how; peers are told nothing of it."""

    listen: str | None = None  # of /health, /ready and /metrics, beside those of the monitor
    token_file: str | None = None  # that /metrics asks for
    certificate: str | None = None
    key: str | None = None
    log: Literal["text", "json"] = "text"
    level: Literal["debug", "info", "warning", "error"] = "info"
    traces: str | None = None  # an OTLP collector's address, http://127.0.0.1:4318/v1/traces


def check_telemetry(given: Telemetry, where: str) -> None:
    """Raise JobError for metrics that anybody could read on the way, and for no address of a collector."""
    if (given.certificate is None) != (given.key is None):
        raise JobError(f"{where}: telemetry: certificate and key go together")
    if given.listen is None and (given.token_file or given.certificate):
        raise JobError(f"{where}: telemetry.listen: is missing; say where, as listen = 'HOST:PORT'")
    on_loopback = given.listen is None or given.listen.startswith(("127.", "localhost:", "[::1]:"))
    if not on_loopback and not (given.token_file and given.certificate):
        raise JobError(
            f"{where}: telemetry.listen: {given.listen} can be reached from elsewhere; give token_file, "
            "certificate and key, or stay on 127.0.0.1"
        )
    if given.traces is not None:
        url = urlsplit(given.traces)
        if url.scheme not in ("http", "https") or not url.hostname or url.password:
            raise JobError(
                f"{where}: telemetry.traces: {given.traces!r} is not an http:// or https:// address"
            )
