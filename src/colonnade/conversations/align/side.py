"""What the leader and its followers have in common: their ids, their peers, and what they are due."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from colonnade.arrays import Digests
from colonnade.conversations.align.compute_pool import ComputePool
from colonnade.conversations.align.layout import chunks_for, lots_for, tables_for
from colonnade.errors import EmptyIntersection
from colonnade.net.expect import Number
from colonnade.net.network import Network

NONE = Number(0, 0)
Method = Literal["curve", "ot"]
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class AlignSide:
    """One party of an alignment."""

    net: Network
    ids: Digests
    secrets: Mapping[str, bytes]
    sizes: Mapping[str, int]
    leader: str
    pool: ComputePool
    progress: Progress
    method: Method

    @property
    def chunks(self) -> int:
        """How many messages the leader's ids are."""
        return chunks_for(self.sizes[self.leader])

    @property
    def lots(self) -> int:
        """How many lots the leader's ids are: one where points of the curve are exchanged."""
        return lots_for(self.sizes[self.leader]) if self.method == "ot" else 1

    def tables(self, party: str) -> int:
        """Return how many tables a party writes for the leader."""
        return tables_for(self.sizes[party], self.lots)

    @property
    def steps(self) -> int:
        """How many steps the leader tells of: what comes back from peers, and tables that are read."""
        followers = [party for party in self.net.parties if party != self.leader]
        asked = 1 + self.lots if self.method == "ot" else self.chunks
        return sum(asked + self.tables(party) for party in followers)


def check_common(common: int, minimum: int) -> None:
    """Raise EmptyIntersection if fewer ids are common than are needed; how many there are is not told."""
    if common < minimum:
        raise EmptyIntersection(
            f"fewer ids are common to all parties than the {minimum} that are needed; look at the id columns "
            "and their normalisation (data.keys in the job)"
        )


def context_of(secret: bytes) -> bytes:
    """Return what hashes of transfers between two parties are keyed with."""
    return hashlib.blake2b(b"colonnade transfers", key=secret, digest_size=32).digest()
