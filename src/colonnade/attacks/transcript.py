"""The messages that one party sends and receives: all that an attack may use.

The tap sits between a party and its wire and changes nothing. Attacks get the transcript, the party's own
columns and what every party knows (the job); never the inside of another party.
"""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass, field

from colonnade.errors import RefusedMessage
from colonnade.messages import Message, decode
from colonnade.net.frame import DATA, unpack
from colonnade.net.network import Deliver, Lost, Restored, Wire


@dataclass
class Transcript:
    """Messages in the order they passed, each with the party at the other end."""

    party: str
    said: list[tuple[str, Message]] = field(default_factory=list)
    heard: list[tuple[str, Message]] = field(default_factory=list)

    def tap(self, party: str, wire: Wire) -> Wire:
        """The wire, tapped if it is this transcript's party's; give it to `run_tables(tap=...)`."""
        return TappedWire(wire, self) if party == self.party else wire


class TappedWire:
    """A wire that notes every message in a transcript and otherwise does what the wire inside it does."""

    def __init__(self, wire: Wire, transcript: Transcript) -> None:
        self._wire = wire
        self._transcript = transcript
        self.lossless = wire.lossless
        self.intact = wire.intact
        self.retry_after = wire.retry_after

    def framing(self, size: int) -> tuple[int, int]:
        return self._wire.framing(size)

    def attach(self, deliver: Deliver, lost: Lost, restored: Restored) -> None:
        def heard(sender: str, frame: bytes) -> None:
            _note(self._transcript.heard, sender, frame)
            deliver(sender, frame)

        self._wire.attach(heard, lost, restored)

    def send(self, to: str, frame: bytes) -> Awaitable[None] | None:
        _note(self._transcript.said, to, frame)
        return self._wire.send(to, frame)

    async def close(self) -> None:
        await self._wire.close()


def _note(log: list[tuple[str, Message]], other: str, frame: bytes) -> None:
    try:
        header, payload = unpack(frame)
        if header.kind == DATA:
            log.append((other, decode(payload)))
    except RefusedMessage:
        return  # the party itself refuses it too
