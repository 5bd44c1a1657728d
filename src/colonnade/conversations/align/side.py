"""What the leader and its followers have in common: their ids, their peers, and what they are due."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from colonnade.arrays import Digests
from colonnade.conversations.align.crew import Crew
from colonnade.conversations.align.layout import buckets_for, chunks_for
from colonnade.errors import EmptyIntersection
from colonnade.net.network import Network

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Side:
    """One party of an alignment."""

    net: Network
    ids: Digests
    secrets: Mapping[str, bytes]
    sizes: Mapping[str, int]
    leader: str
    crew: Crew
    progress: Progress

    @property
    def chunks(self) -> int:
        """How many messages the leader's ids are."""
        return chunks_for(self.sizes[self.leader])

    @property
    def steps(self) -> int:
        """How many steps the leader tells of: chunks that come back and tables that are read."""
        followers = [party for party in self.net.parties if party != self.leader]
        return sum(self.chunks + buckets_for(self.sizes[party]) for party in followers)


def check_common(common: int, minimum: int) -> None:
    """Raise EmptyIntersection if fewer ids are common than are needed; how many there are is not told."""
    if common < minimum:
        raise EmptyIntersection(
            f"fewer ids are common to all parties than the {minimum} that are needed; look at the id columns "
            "and their normalisation (align.keys in the job)"
        )
