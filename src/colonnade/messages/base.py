"""What every message has: a kind, and most a tag, which says what it is about."""

from __future__ import annotations

from enum import IntEnum
from typing import Annotated, ClassVar

import msgspec

TOPIC_SHIFT = 48
LONGEST_TEXT = 4000

Text = Annotated[str, msgspec.Meta(max_length=LONGEST_TEXT)]
"""Words for somebody to read: they are logged and kept, so they are short; what is longer is no message."""

Hash = Annotated[bytes, msgspec.Meta(max_length=64)]
"""The bytes of a hash: it stands for something in books that are kept for good."""


class Topic(IntEnum):
    """The purpose of an exchange. Evaluation and set-up are not training traffic and are counted apart."""

    TRAIN = 0
    EVALUATE = 1
    TUNE = 2
    PREDICT = 3
    SNAPSHOT = 4
    CURVATURE = 5
    PAIR = 6
    PAUSE = 7
    WOE = 8
    ALIGN = 9
    BLIND = 12
    GATE = 13


def tag_of(topic: Topic, number: int) -> int:
    """Return the tag of the `number`-th exchange about `topic`.

    >>> topic_of(tag_of(Topic.EVALUATE, 7)).name
    'EVALUATE'
    """
    return topic << TOPIC_SHIFT | number


def topic_of(tag: int) -> Topic:
    """Return the topic that a tag belongs to."""
    return Topic(tag >> TOPIC_SHIFT)


class Message(msgspec.Struct, frozen=True, array_like=True, eq=False, forbid_unknown_fields=True):
    """The base of all messages.

    A queued kind is read as a stream, in the order of arrival; any other kind waits in the mailbox
    until somebody asks for its tag.
    """

    queued: ClassVar[bool] = False
    relayed: ClassVar[bool] = False
    """Whether it may travel through other parties (`net.relay`): all who pass it on may read it."""
    personal: ClassVar[bool] = False
    """Whether it is for one receiver alone, who lacks the words that hide it from others: never broadcast."""
