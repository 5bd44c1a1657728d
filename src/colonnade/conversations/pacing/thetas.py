"""Thetas that have come from other dominators, and wait until there is time to step on them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from colonnade.arrays import Floats
from colonnade.conversations.pacing.pacing import Pacing
from colonnade.conversations.pacing.schedule import Round
from colonnade.errors import ProtocolError
from colonnade.messages import Backward
from colonnade.net.expect import Array, expect

Theta = tuple[Round, Floats]


class Thetas:
    """The thetas that may come, and those that wait. `shape` is what theta of a number of rows must be."""

    def __init__(self, dominators: tuple[str, ...], pace: Pacing, shape: Callable[[int], Array]) -> None:
        self._dominators, self._pace, self._shape = dominators, pace, cache(shape)
        self._counts = len(pace.seen)  # that come with each of them
        self._expected: dict[int, Round] = {}
        self.waiting: list[Theta] = []

    def expect(self, batch: Round) -> str:
        """Expect theta of a round; returns whose round it is."""
        self._expected[batch.number] = batch
        return self._dominators[batch.number % len(self._dominators)]

    def hear(self, sender: str, message: Backward) -> None:
        """Let a theta that has come wait; an error if the message is not what its sender may send."""
        number, seen, dominators = message.tag, message.seen, self._dominators
        if dominators[number % len(dominators)] != sender:
            raise ProtocolError(f"{sender} sent theta of round {number}, which it does not dominate")
        batch = self._expected.pop(number, None)
        if batch is None:
            raise ProtocolError(f"{sender} sent theta of round {number}, which is over or has not begun")
        shape = self._shape(batch.end - batch.start)
        if shape.wrong(message.theta):
            expect(sender, message, {"theta": shape})
        if len(seen) != self._counts or (seen and min(seen) < 0):
            raise ProtocolError(f"{sender} sent {seen} with theta of round {number}")
        self._pace.heard(number, seen)
        self.waiting.append((batch, message.theta))

    def take(self) -> list[Theta]:
        """Return all thetas that wait, which now are the caller's to step on."""
        here, self.waiting = self.waiting, []
        return here

    def take_due(self) -> list[Theta]:
        """Return those that wait and are due."""
        here = self.take()
        if not self._pace.holds_back:
            return here
        due = [each for each in here if self._pace.is_due(each[0].number)]
        if len(due) < len(here):
            self.waiting = [each for each in here if not self._pace.is_due(each[0].number)]
        return due
