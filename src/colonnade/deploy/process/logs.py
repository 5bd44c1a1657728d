"""How a daemon and the processes of its runs write their log: to standard error, a line for every message.

A line is text or JSON, as the settings say ([telemetry] log); the processes that a daemon starts hear of it
by their environment. What is logged while a run is played has its number.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime

import msgspec

FEW, MINUTE_S = 10, 60.0  # lines of strangers in this many seconds
LONGEST = 200  # characters of one
HOW = "COLONNADE_LOG"  # in the environment: the party, text or json, and the lowest level

RUN: ContextVar[str] = ContextVar("run", default="")
"""The number of the run that is played now."""


class OneLine(logging.Formatter):
    """Writes a message as one line: what a peer says may not look like lines of this daemon's own."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 the base class's name
        """Return the record as text, without control characters; a traceback of this daemon's own follows
        it."""
        text = super().formatMessage(record)
        return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class FewOfStrangers(logging.Filter):
    """Lets through a few short lines a minute of what anybody who reaches a port can cause, and counts the
    rest.

    A request that is no HTTP has an error with a traceback in aiohttp's log, before any token is asked for.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock, self._since, self._seen = clock, clock(), 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is written; one of aiohttp's is made short."""
        if not record.name.startswith("aiohttp"):
            return True
        left_out = 0
        if self._clock() - self._since >= MINUTE_S:
            left_out, self._since, self._seen = max(self._seen - FEW, 0), self._clock(), 0
        self._seen += 1
        cause = f": {record.exc_info[1]!r}" if record.exc_info else ""
        more = f" ({left_out} such lines before it were left out)" if left_out else ""
        record.msg, record.args = f"{record.getMessage()}{cause}"[:LONGEST] + more, ()
        record.exc_info = record.exc_text = None
        return self._seen <= FEW


class AsJson(logging.Formatter):
    """Writes a message as one object of JSON, also with a traceback."""

    def __init__(self, party: str) -> None:
        super().__init__()
        self._party = party

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as JSON; keys that have nothing to say are left out."""
        found = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "party": self._party,
            "run": getattr(record, "run", ""),
            "message": record.getMessage(),
            "error": self.formatException(record.exc_info) if record.exc_info else "",
        }
        plain = {key: _encodable(value) for key, value in found.items() if value}
        return msgspec.json.encode(plain).decode()


def _encodable(text: str) -> str:
    """Return a text without halves of letters, which a peer may have sent."""
    return text.encode("utf-8", "backslashreplace").decode()


def with_run(record: logging.LogRecord) -> bool:
    """Give a record the number of the run that is played, if it does not bring one."""
    record.run = getattr(record, "run", "") or RUN.get()
    return True


@contextmanager
def in_log(run: str) -> Iterator[None]:
    """Give all that is logged meanwhile the number of a run."""
    before = RUN.set(run)
    try:
        yield
    finally:
        RUN.reset(before)


def log_as(party: str, how: str, level: str) -> None:
    """Choose how this process and those that it starts write their log."""
    os.environ[HOW] = f"{party} {how} {level}"


def log_to_stderr() -> None:
    """Write the log to standard error, as was chosen: else as text, from the level of information on."""
    party, how, level = os.environ.get(HOW, " text info").split(" ")
    handler = logging.StreamHandler()
    handler.addFilter(FewOfStrangers())
    handler.addFilter(with_run)
    text = OneLine("%(asctime)s %(levelname)s %(message)s")
    handler.setFormatter(AsJson(party) if how == "json" else text)
    logging.basicConfig(level=level.upper(), handlers=[handler])
