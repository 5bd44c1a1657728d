"""How a daemon and the processes of its runs write their log: to standard error, a line for every message."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

FEW, MINUTE_S = 10, 60.0  # lines of strangers in this many seconds
LONGEST = 200  # characters of one


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


def log_to_stderr() -> None:
    """Write everything from the level of information on to standard error."""
    handler = logging.StreamHandler()
    handler.addFilter(FewOfStrangers())
    handler.setFormatter(OneLine("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
