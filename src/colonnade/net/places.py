"""Where frames belong: in a run, from one of its parties to another. Both ends of a line know it.

A frame carries its place as one number (`frame.place_of`); one that is not the number that is due on the
line belongs to another run or to other parties, and is refused as such.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from colonnade.errors import RefusedMessage, UnknownParty, WrongRun
from colonnade.net.frame import place_of


class Places:
    """Those of one party: `to` a peer and `of` what comes from it."""

    def __init__(self, me: str, parties: Sequence[str], run: int) -> None:
        numbers = {party: number for number, party in enumerate(sorted(parties))}
        own = numbers[me]
        self.to = {peer: place_of(run, own, number) for peer, number in numbers.items() if peer != me}
        self.of = {peer: place_of(run, number, own) for peer, number in numbers.items() if peer != me}
        self._run, self._parties = run, range(len(numbers))

    def refusal(self, sender: str, place: int) -> RefusedMessage:
        """Why a frame with this place is not taken from this sender."""
        if any(place == place_of(self._run, *pair) for pair in product(self._parties, repeat=2)):
            return UnknownParty(f"a frame from {sender} names another sender or receiver")
        return WrongRun(f"{sender} sent a frame of another run than {self._run:08x}")
