"""Holds a party to what its run has declared: what is not declared does not leave, nor more than that.

A party asks before a message goes to its peer, and before it gives away what lets a peer open a product of
theirs. A total is held by the pieces that go into it: there is one word of a `Piece` for each of its numbers.
Of a sum whose pieces go other ways the numbers are counted before a party gives (`secure.declared`).
A session of a run that goes on begins to count again: what was said after the last gate is said again, and is
the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from colonnade.errors import UndeclaredOpening
from colonnade.messages import Message, Piece, Topic
from colonnade.openings.opening import PRODUCT, TOTAL, Opening
from colonnade.openings.wire import opened_fields

ANY = 2**63
"""More bytes than anybody sends."""

WORD = 8
"""Bytes of a number in a piece of a total."""


class OpeningLimits:
    """What one party may still open in a run, by message, topic and hearer."""

    def __init__(self, openings: Iterable[Opening], me: str) -> None:
        self.me = me
        self._bytes: defaultdict[tuple[str, int, str], int] = defaultdict(int)
        self._numbers: defaultdict[tuple[str, int, str], int] = defaultdict(int)  # of totals and products
        for opening in openings:
            self.allow(opening)

    def allow(self, opening: Opening) -> None:
        """Let these numbers be opened, too."""
        if opening.channel is None:
            return
        name, topic = opening.channel
        for hearer in opening.to:
            if name == TOTAL or (name == PRODUCT and hearer != self.me):
                self._numbers[name, topic, hearer] += opening.numbers
            elif opening.by == self.me:
                self._bytes[name, topic, hearer] += opening.bytes

    def bytes_to(self, kind: type[Message], topic: int, to: str) -> int:
        """Return how many bytes of a kind of message about a topic may go to a peer."""
        if kind is Piece:
            return WORD * self._numbers.get((TOTAL, topic, to), 0)
        return self._bytes.get((kind.__name__, topic, to), 0) if opened_fields(kind) else ANY

    def count(self, name: str, topic: int, to: str, numbers: int) -> None:
        """Count numbers of a total or a product that a peer can open; refused if more than declared."""
        key = name, topic, to
        left = self._numbers[key] = self._numbers.get(key, 0) - numbers
        if left < 0:
            raise undeclared(self.me, f"{numbers} {name}s", topic, to)


def undeclared(me: str, what: str, topic: int, to: str) -> UndeclaredOpening:
    """Return the error for what a party does not open."""
    return UndeclaredOpening(
        f"{me} does not open {what} ({Topic(topic).name.lower()}) to {to}: its run declares none, or fewer, "
        "and nothing of it was sent"
    )


class Unlimited(OpeningLimits):
    """For lines of which nothing is declared: fields must be known, and that is all."""

    def __init__(self) -> None:
        super().__init__((), "")

    def bytes_to(self, kind: type[Message], topic: int, to: str) -> int:
        opened_fields(kind)
        return ANY

    def count(self, name: str, topic: int, to: str, numbers: int) -> None:
        """Let sums and products be opened."""
