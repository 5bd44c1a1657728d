"""The messages that one party sends and receives: all that an attack may use.

The tap sits between a party and its wire and changes nothing; another hears the totals of the secure sums
that are made for the party. Attacks get the transcript, the party's own columns and what every party knows
(the job); never the inside of another party.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from colonnade.arrays import Floats, Numbers
from colonnade.errors import RefusedMessage
from colonnade.messages import Message, Relay, decode
from colonnade.net.frame import DATA, unpack
from colonnade.net.network import Wire
from colonnade.net.tapped import TappedWire
from colonnade.secure.overheard import OverheardSum
from colonnade.secure.protocol import SecureSum


@dataclass
class Transcript:
    """Messages in the order they passed, each with the party at the other end; totals with their tags; and
    its parts of numbers that nobody knows, each read as if it were the number, with its name."""

    party: str
    said: list[tuple[str, Message]] = field(default_factory=list)
    heard: list[tuple[str, Message]] = field(default_factory=list)
    totals: list[tuple[int, Numbers]] = field(default_factory=list)
    parts: list[tuple[str, Floats]] = field(default_factory=list)

    def tap(self, party: str, wire: Wire) -> Wire:
        """Return the wire, tapped if it is this transcript's party's; give it to `run_tables(tap=...)`."""
        if party != self.party:
            return wire
        return TappedWire(wire, partial(_note, self.said), partial(_note, self.heard))

    def overhear(self, party: str, secure: SecureSum) -> SecureSum:
        """Return the secure sum, overheard if it is this transcript's party's; give it to
        `Launch.overhear`."""
        if party != self.party:
            return secure
        return OverheardSum(
            secure,
            lambda tag, total: self.totals.append((tag, total)),
            lambda name, part: self.parts.append((name, part)),
        )


def _note(log: list[tuple[str, Message]], other: str, frame: bytes) -> None:
    try:
        header, payload = unpack(frame)
        if header.kind == DATA:
            message = decode(payload)
            log.append((other, decode(message.payload) if isinstance(message, Relay) else message))
    except RefusedMessage:
        return  # the party itself refuses it too
