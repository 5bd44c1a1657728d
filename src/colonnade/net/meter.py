"""Counts what leaves a party: messages and bytes, by kind, by topic and by peer, framing included.

Beside all bytes it counts the payload, which is the arrays alone as they travel, and what encryption adds
(TLS records). The rest is our own framing.
"""

from __future__ import annotations

from collections import Counter
from functools import cache

import msgspec

from colonnade.arrays import Numbers
from colonnade.messages import TOPIC_SHIFT, Message, Topic
from colonnade.openings.limits import OpeningLimits, Unlimited, undeclared
from colonnade.openings.wire import opened_fields

Key = tuple[type[Message], int, str]
Weighed = tuple[type[Message], int, int]
"""What a meter needs to know of a message, to any receiver: its kind, its topic, and its arrays' bytes."""


class Meter:
    """What one party has sent and received. Evaluation is no training traffic and can be counted apart.

    It is also where a run is held to what it has declared, as everything that leaves is counted here first.
    """

    def __init__(self) -> None:
        # messages, bytes, bytes of payload, bytes of encryption; the most bytes of payload there may be, and
        # how many of these were sent before there were these limits
        self._sent: dict[Key, list[int]] = {}
        self.limits: OpeningLimits = Unlimited()
        self.overhead = 0
        self._overhead_sealed = 0
        self.received_messages = 0
        self.received_bytes = 0
        self.refused: Counter[str] = Counter()

    def hold_to(self, limits: OpeningLimits) -> None:
        """Allow from now on what these limits do, beside what was sent already."""
        self.limits = limits
        for (kind, topic, to), entry in self._sent.items():
            entry[4:] = entry[2] + limits.bytes_to(kind, topic, to), entry[2]

    def sent(self, weighed: Weighed, to: str, frame: int, length: int = 0, sealed: int = 0) -> None:
        """Count a message that leaves: bytes of its frame, of the length before it, of encryption around it.

        Refused where the run has not declared that so much is opened.
        """
        kind, topic, payload = weighed
        key = (kind, topic, to)
        entry = self._sent.get(key)
        if entry is None:
            entry = self._sent[key] = [0, 0, 0, 0, self.limits.bytes_to(kind, topic, to), 0]
        told = entry[2] + payload
        if told > entry[4]:
            entry[4] = entry[5] + self.limits.bytes_to(kind, topic, to)  # may have been allowed since
            if told > entry[4]:
                raise undeclared(self.limits.me, f"a {kind.__name__} of {payload} bytes", topic, to)
        entry[0] += 1
        entry[1] += frame + length + sealed
        entry[2] = told
        entry[3] += sealed

    def repeated(self, frame: int, length: int, sealed: int) -> None:
        """Count an acknowledgement or a resend: bytes that carry no message of their own."""
        self.overhead += frame + length + sealed
        self._overhead_sealed += sealed

    def books(self) -> dict[str, list[int]]:
        """Return all counts of what was sent and received, as plain numbers."""
        sent = {f"{kind.__name__} {topic} {to}": entry[:4] for (kind, topic, to), entry in self._sent.items()}
        others = [self.overhead, self._overhead_sealed, self.received_messages, self.received_bytes]
        return {**sent, "": others}

    def add(self, books: dict[str, list[int]]) -> None:
        """Count what an earlier session of the same run has counted, too."""
        kinds = {kind.__name__: kind for kind in Message.__subclasses__()}
        for key, counts in books.items():
            if not key:
                self.overhead += counts[0]
                self._overhead_sealed += counts[1]
                self.received_messages += counts[2]
                self.received_bytes += counts[3]
                continue
            name, topic, to = key.split(" ", 2)
            kind, about = kinds[name], int(topic)
            allowed = self.limits.bytes_to(kind, about, to)
            entry = self._sent.setdefault((kind, about, to), [0, 0, 0, 0, allowed, 0])
            # a session may say again all that the one before has said: it counts from nothing
            entry[:] = [
                one + other for one, other in zip(entry, [*counts, counts[2], counts[2]], strict=True)
            ]

    def messages(self, *, evaluation: bool = False) -> int:
        return sum(entry[0] for key, entry in self._sent.items() if (key[1] == Topic.EVALUATE) is evaluation)

    def bytes_by_kind(self, *, evaluation: bool = False) -> dict[str, int]:
        totals: Counter[str] = Counter()
        for (kind, topic, _), entry in self._sent.items():
            if (topic == Topic.EVALUATE) is evaluation:
                totals[kind.__name__.lower()] += entry[1]
        if self.overhead and not evaluation:
            totals["resends"] += self.overhead
        return dict(sorted(totals.items()))

    def payload_by_kind(self) -> dict[str, int]:
        """Return the bytes of arrays in all that is not evaluation, by kind of message."""
        totals: Counter[str] = Counter()
        for (kind, topic, _), entry in self._sent.items():
            if topic != Topic.EVALUATE:
                totals[kind.__name__.lower()] += entry[2]
        return dict(sorted(totals.items()))

    def sealed_bytes(self) -> int:
        """Return the bytes that encryption added to all that is not evaluation."""
        sent = sum(entry[3] for (_, topic, _), entry in self._sent.items() if topic != Topic.EVALUATE)
        return sent + self._overhead_sealed

    def bytes_by_peer(self, *, evaluation: bool = False) -> dict[str, int]:
        totals: Counter[str] = Counter()
        for (_, topic, to), entry in self._sent.items():
            if (topic == Topic.EVALUATE) is evaluation:
                totals[to] += entry[1]
        return dict(sorted(totals.items()))

    def bytes(self, *, evaluation: bool = False) -> int:
        """Return the number of all bytes; asked for so often that it is not the sum of `bytes_by_kind`."""
        counts = [entry[1] for key, entry in self._sent.items() if (key[1] == Topic.EVALUATE) is evaluation]
        return sum(counts) + (0 if evaluation else self.overhead)


def weighed(message: Message) -> Weighed:
    """Return what is to be counted of a message."""
    kind = type(message)
    payload = 0
    for name in arrays_of(kind):
        payload += getattr(message, name).nbytes
    # the tag's topic, not the tag itself: a table of what was sent must not grow with the rounds
    return kind, getattr(message, "tag", 0) >> TOPIC_SHIFT, payload


@cache
def arrays_of(kind: type[Message]) -> tuple[str, ...]:
    """Return the names of the fields of a message that are arrays; refused if some field is unknown."""
    opened_fields(kind)
    return tuple(field.name for field in msgspec.structs.fields(kind) if field.type == Numbers)
