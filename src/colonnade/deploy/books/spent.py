"""What one run has cost this party so far, over all its sessions: bytes both ways by peer and by what for.

A session counts its own bytes. They are added here when it ends, and are on disk every few seconds while the
run goes on, so that a run that was cut off and went on costs what all its sessions cost together.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

STRETCHES = ("common rows", "training", "closing", "weighing")
"""What the stretches of a run are for, in the order of their numbers."""

ByPeer = dict[str, dict[str, int]]
"""Bytes, by peer and by what they were for."""


class Spent(msgspec.Struct, kw_only=True):
    """Sessions, and bytes both ways."""

    sessions: int = 0
    sent: ByPeer = {}
    received: ByPeer = {}

    def add(self, what: str, sent: Mapping[str, int], received: Mapping[str, int]) -> None:
        """Add the bytes of one stretch of a session."""
        for total, more in ((self.sent, sent), (self.received, received)):
            for peer, count in more.items():
                about = total.setdefault(peer, {})
                about[what] = about.get(what, 0) + count

    def plus(self, other: Spent) -> Spent:
        """Return what this and another cost together."""
        both = Spent(sessions=self.sessions + other.sessions)
        for each in (self, other):
            for peer, about in each.sent.items():
                for what, count in about.items():
                    both.add(what, {peer: count}, {})
            for peer, about in each.received.items():
                for what, count in about.items():
                    both.add(what, {}, {peer: count})
        return both

    @property
    def bytes_sent(self) -> int:
        """All bytes that were sent."""
        return total(self.sent)

    @property
    def bytes_received(self) -> int:
        """All bytes that came."""
        return total(self.received)


def total(by_peer: ByPeer) -> int:
    """Return the sum of bytes to, or from, all peers.

    >>> total({"bank": {"training": 5, "closing": 1}, "shop": {"training": 2}})
    8
    """
    return sum(sum(about.values()) for about in by_peer.values())
