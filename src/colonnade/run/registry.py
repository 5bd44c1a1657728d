"""All conversations, a row each. A new one is a folder under `conversations` and its row here.

A record is imported when somebody asks for it: a party speaks one conversation and starts without the others.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from colonnade.conversations.conversation import Conversation

ROWS = {
    "backward": "linear.record:BACKWARD",
    "pull": "linear.pull_record:PULL",
    "full": "linear.full_record:FULL",
    "kernel": "kernel.record:KERNEL",
    "gram": "kernel.record:GRAM",
    "cascade": "cascade.record:CASCADE",
    "exchange": "cascade.record:EXCHANGE",
    "boost": "boost.record:BOOST",
}
"""By the name of a conversation: where in `colonnade.conversations` its record is."""


class _Conversations(dict[str, Conversation[Any]]):
    """The records that were asked for so far; any other row is imported when it is."""

    def __missing__(self, name: str) -> Conversation[Any]:
        module, _, record = ROWS[name].partition(":")
        found: Conversation[Any] = getattr(import_module(f"colonnade.conversations.{module}"), record)
        self[name] = found
        return found


CONVERSATIONS = _Conversations()
