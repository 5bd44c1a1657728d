"""Broadcast down a tree: what one party has to say goes to a few, and each of them passes it on.

The papers add up numbers along a tree, pair by pair, all pairs at the same time, and send results back "in a
reverse order" (FDSKL, section 2.3.1): the party that added last is served first. So the sender serves the far
half of the others through one of them, then the far half of the rest, and so on; everybody who is served does
the same with those behind it. Nobody sends more than ceil(log2 q) times, and the last party hears after as
many hops, where a star makes its root send q - 1 times.

A relayed message says who is still to be served, so no party has to know the tree. What each side learns: a
party that passes a message on reads it. Only kinds that are marked `relayed` may travel so, and they go to
none but parties that may read them anyway. The sender's name is what the party before says it is: a party on
the way could change what it passes on, as it could not where everybody has a line of its own to the sender.
So a run that does not ask for the tree refuses relayed messages.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from colonnade.errors import MalformedMessage, UnknownParty
from colonnade.messages import Message, Relay, decode, encode


def branches(below: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield whom to send to, in this order, and whom each of them has to serve in turn.

    >>> [(to, list(rest)) for to, rest in branches(bytes([1, 2, 3, 4, 5, 6, 7]))]
    [(4, [5, 6, 7]), (2, [3]), (1, [])]
    """
    while below:
        middle = len(below) // 2
        yield below[middle], below[middle + 1 :]
        below = below[:middle]


class Letter(NamedTuple):
    """A message on its way down a tree: who wrote it, what it says, and who is still to be served.

    Parties are given by their places among all parties of the run.
    """

    origin: int
    payload: bytes
    below: bytes

    def copies(self, parties: tuple[str, ...]) -> Iterator[tuple[str, bytes]]:
        """Yield whom this party sends the message to, and the bytes for each."""
        for to, rest in branches(self.below):
            yield parties[to], encode(Relay(self.origin, rest, self.payload))


def written(message: Message, me: str, parties: tuple[str, ...], to: Collection[str]) -> Letter:
    """Return a message of this party's own. It starts with the party behind it, so that senders share the
    load."""
    if not message.relayed:
        raise TypeError(f"a {type(message).__name__} is not made to travel through other parties")
    here = parties.index(me)
    places = [(here + turn) % len(parties) for turn in range(1, len(parties))]
    return Letter(here, encode(message), bytes(place for place in places if parties[place] in to))


def opened(relay: Relay, me: str, parties: tuple[str, ...]) -> tuple[Letter, Message]:
    """Return a message that another party passed on, to be served from here on; refused if it makes no
    sense."""
    places = {relay.origin, parties.index(me), *relay.below}
    if not 0 <= min(places) <= max(places) < len(parties):
        raise UnknownParty("a relayed message names a party that is not part of this run")
    if len(places) != len(relay.below) + 2:
        raise MalformedMessage("a relayed message would come to a party twice")
    message = decode(relay.payload)
    if not message.relayed:
        raise MalformedMessage(f"a {type(message).__name__} does not travel through other parties")
    return Letter(relay.origin, relay.payload, relay.below), message
