"""The comparisons of ids within a day, counted by the minute.

Limits ask how often a peer has compared its ids with this party's, for how many of them it asked scores, and
how many sets it came with. Counts by the minute answer that, and take a memory that does not grow with how
often it asks. A minute counts until all of it is over a day ago.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

MINUTE = len("2026-01-31T12:59")  # what is common to all times of a minute
Purpose = Literal["train", "score"]


class Kind(NamedTuple):
    """Comparisons that are counted together; sets of ids are told apart where they are trained with."""

    minute: str
    peer: str
    entry: str
    purpose: Purpose
    commitment: str


class DailyComparisons:
    """How many comparisons of each kind there were, and of how many ids of the peer."""

    def __init__(self) -> None:
        self._counts: dict[Kind, tuple[int, int]] = {}

    def count(self, kind: Kind, ids: int, since: str) -> None:
        """Count one comparison, and forget what was before `since`."""
        told = kind._replace(
            minute=kind.minute[:MINUTE], commitment=kind.commitment if kind.purpose == "train" else ""
        )
        if told not in self._counts:
            for old in [each for each in self._counts if each.minute < since[:MINUTE]]:
                del self._counts[old]
        times, all_ids = self._counts.get(told, (0, 0))
        self._counts[told] = (times + 1, all_ids + ids)

    def times(self, peer: str, entry: str, since: str) -> int:
        """Return how often ids of an entry were compared with those of a peer."""
        return sum(times for kind, (times, _) in self._of(peer, since) if kind.entry == entry)

    def sets(self, peer: str, entry: str, since: str) -> set[str]:
        """Return the sets of ids that a peer came with to train with those of an entry."""
        return {
            kind.commitment
            for kind, _ in self._of(peer, since)
            if kind.entry == entry and kind.purpose == "train"
        }

    def scored(self, peer: str, since: str) -> int:
        """Return how many ids a peer came with for scores."""
        return sum(ids for kind, (_, ids) in self._of(peer, since) if kind.purpose == "score")

    def _of(self, peer: str, since: str) -> list[tuple[Kind, tuple[int, int]]]:
        return [
            (kind, counts)
            for kind, counts in self._counts.items()
            if kind.peer == peer and kind.minute >= since[:MINUTE]
        ]
