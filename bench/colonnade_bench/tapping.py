"""Counts what crosses between the parties of a run, as it passes, beside what the run declares to open."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from colonnade.data.prepare.party_data import PartyData
from colonnade.job.plan import Plan
from colonnade.messages import TOPIC_SHIFT, Relay, decode
from colonnade.net.frame import DATA, unpack
from colonnade.net.meter import weighed
from colonnade.net.network import Wire
from colonnade.net.tapped import TappedWire
from colonnade.openings.opening import TOTAL, Extent, Opening
from colonnade.openings.wire import opened_fields
from colonnade.run.launch import launch
from colonnade.run.registry import CONVERSATIONS
from colonnade.run.world import Launch

Crossed = Counter[tuple[str, int, str, str]]
"""By message (or total), topic, who sends it (nobody a total), and to whom: bytes, and numbers of totals."""


def declared(plan: Plan[Any], data: dict[str, PartyData]) -> list[Opening]:
    """Return what a run on these tables declares."""
    prepared = {party: each.prepare() for party, each in data.items()}
    first = next(iter(prepared.values()))
    columns = {party: each.train.width for party, each in prepared.items()}
    test = 0 if first.test is None else first.test.rows
    return CONVERSATIONS[plan.conversation].openings(plan, Extent(first.train.rows, test, columns))


def allowed(openings: Iterable[Opening]) -> Crossed:
    """Return the most that may cross."""
    found: Crossed = Counter()
    for each in openings:
        if each.channel is not None:
            name, topic = each.channel
            for to in each.to:
                found[name, topic, each.by, to] += each.numbers if name == TOTAL else each.bytes
    return found


def tapped(plan: Plan[Any], data: dict[str, PartyData]) -> Crossed:
    """Return what crosses in a run."""
    crossing = Crossing()
    launch(replace(Launch(plan, data), tap=crossing.tap, overhear=crossing.overhear))
    return crossing.seen


@dataclass
class Crossing:
    """Taps for every party's wire and sums, which change nothing and keep no message."""

    seen: Crossed = field(default_factory=Counter)

    def tap(self, party: str, wire: Wire) -> Wire:
        """Return the wire, with what leaves by it counted."""
        return TappedWire(wire, partial(self._said, party), lambda other, frame: None)

    def overhear(self, party: str, secure: Any) -> Any:
        """Return the secure sum, with the totals counted that it opens to this party."""
        return _Collected(secure, party, self.seen)

    def _said(self, party: str, to: str, frame: bytes) -> None:
        header, payload = unpack(frame)
        if header.kind != DATA:
            return
        message = decode(payload)
        message = decode(message.payload) if isinstance(message, Relay) else message
        if opened_fields(type(message)):
            kind, topic, size = weighed(message)
            self.seen[kind.__name__, topic, party, to] += size


class _Collected:
    """A sum whose totals are counted; what is opened by other means is not, as no message of its own has
    it."""

    def __init__(self, secure: Any, party: str, seen: Crossed) -> None:
        self.secure, self.party, self.seen = secure, party, seen

    def __getattr__(self, name: str) -> Any:
        return getattr(self.secure, name)

    async def collect(self, piece: Any, *, tag: int) -> Any:
        """Return the total of all pieces."""
        total = await self.secure.collect(piece, tag=tag)
        self.seen[TOTAL, tag >> TOPIC_SHIFT, "", self.party] += total.size
        return total
