"""All conversations, a row each. A new one is a folder under `conversations` and its row here."""

from __future__ import annotations

from typing import Any

from colonnade.conversations.boost.record import BOOST
from colonnade.conversations.cascade.record import CASCADE, EXCHANGE
from colonnade.conversations.conversation import Conversation
from colonnade.conversations.kernel.record import GRAM, KERNEL
from colonnade.conversations.linear.full_record import FULL
from colonnade.conversations.linear.record import BACKWARD, PULL

CONVERSATIONS: dict[str, Conversation[Any]] = {
    conversation.name: conversation
    for conversation in (FULL, BACKWARD, PULL, KERNEL, GRAM, CASCADE, EXCHANGE, BOOST)
}
