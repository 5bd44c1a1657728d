"""The comparisons of ids within a day, counted by the minute.

Limits ask how often a peer has compared its ids with this party's, for how many new ones it asked scores, how
many of these nobody else had, and how many sets it came with. Counts by the minute answer that; how often a
day a peer may ask bounds them. A minute counts until all of it is over a day ago.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

MINUTE = len("2026-01-31T12:59")  # what is common to all times of a minute
FEW = 1000  # ids to score, of which more count as a whole table
Purpose = Literal["train", "score"]


class Kind(NamedTuple):
    """Comparisons that are counted together."""

    minute: str
    peer: str
    entry: str
    purpose: Purpose
    commitment: str


class ComparisonTally(NamedTuple):
    """How many comparisons there were, of how many ids of the peer, and how many of these were common."""

    times: int = 0
    ids: int = 0
    common: int = 0


class DailyComparisons:
    """How many comparisons of each kind there were, of how many ids of the peer, and how many were common."""

    def __init__(self) -> None:
        self._counts: dict[Kind, ComparisonTally] = {}

    def count(self, kind: Kind, ids: int, since: str) -> None:
        """Count one comparison, and forget what was before `since`."""
        self._add(kind, ComparisonTally(1, ids, 0), since)

    def found(self, kind: Kind, common: int, since: str) -> None:
        """Count how many ids of a comparison turned out to be common."""
        self._add(kind, ComparisonTally(0, 0, common), since)

    def _add(self, kind: Kind, more: ComparisonTally, since: str) -> None:
        told = kind._replace(minute=kind.minute[:MINUTE])
        if told not in self._counts:
            for old in [each for each in self._counts if each.minute < since[:MINUTE]]:
                del self._counts[old]
        before = self._counts.get(told, ComparisonTally())
        self._counts[told] = ComparisonTally(*(old + new for old, new in zip(before, more, strict=True)))

    def times(self, peer: str, entry: str, since: str) -> int:
        """Return how often ids of an entry were compared with those of a peer."""
        return sum(tally.times for kind, tally in self._of(peer, since) if kind.entry == entry)

    def sets(self, peer: str, entry: str, since: str) -> set[str]:
        """Return the sets of ids that a peer came with: to train with those of an entry, or whole tables."""
        return {
            kind.commitment
            for kind, tally in self._of(peer, since)
            if kind.entry == entry and (kind.purpose == "train" or tally.ids > FEW)
        }

    def scored(self, peer: str, since: str) -> int:
        """Return how many new ids a peer came with for scores."""
        return sum(tally.ids for kind, tally in self._of(peer, since) if kind.purpose == "score")

    def missed(self, peer: str, entry: str, since: str) -> int:
        """Return how many new ids that a peer came with for scores were not common, as far as is known."""
        scored = (
            tally for kind, tally in self._of(peer, since) if kind.entry == entry and kind.purpose == "score"
        )
        return sum(tally.ids - tally.common for tally in scored)

    def _of(self, peer: str, since: str) -> list[tuple[Kind, ComparisonTally]]:
        return [
            (kind, tally)
            for kind, tally in self._counts.items()
            if kind.peer == peer and kind.minute >= since[:MINUTE]
        ]
