"""How a daemon and the processes of its runs write their log: to standard error, a line for every message."""

from __future__ import annotations

import logging


class OneLine(logging.Formatter):
    """Writes a message as one line: what a peer says may not look like lines of this daemon's own."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 the base class's name
        """Return the record as text, without control characters; a traceback of this daemon's own follows
        it."""
        text = super().formatMessage(record)
        return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def log_to_stderr() -> None:
    """Write everything from the level of information on to standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(OneLine("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
