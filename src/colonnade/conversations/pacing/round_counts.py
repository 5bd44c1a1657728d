"""How far a party is with the rounds of several dominators, each at its own pace (`own_pace`)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class RoundCounts:
    """For every dominator: its first unfinished round, how many are finished and begun, where it stops.

    Thetas may overtake each other: `beyond` are the rounds after `base` that are finished.
    """

    base: list[int]
    finished: list[int]
    begun: list[int]  # the round after the last that was begun
    stop: list[int]  # no round from here on
    beyond: list[set[int]]

    @classmethod
    def of(cls, dominators: int, stop: int) -> RoundCounts:
        """Return the counts of a run that has not begun."""
        zeros = [0] * dominators
        return cls(zeros, list(zeros), list(zeros), [stop] * dominators, [set() for _ in range(dominators)])

    def finish(self, own: int, index: int) -> None:
        """Mark a dominator's round as finished."""
        self.finished[index] += 1
        beyond = self.beyond[index]
        if own != self.base[index]:
            beyond.add(own)
            return
        own += 1
        while own in beyond:
            beyond.remove(own)
            own += 1
        self.base[index] = own

    def over(self, own: int, index: int) -> bool:
        """Return whether a dominator's round is finished."""
        return own < self.base[index] or own in self.beyond[index]

    def under_way(self, index: int) -> list[int]:
        """Return the rounds of a dominator that are begun and not finished."""
        return [own for own in range(self.base[index], self.begun[index]) if own not in self.beyond[index]]
