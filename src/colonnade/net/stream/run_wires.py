"""The frames of every run on a daemon's standing lines: each goes to the run that its route names.

What a peer can make a daemon keep is bounded over all its runs together: unread messages, frames that came
out of order, and frames that it does not acknowledge. Where that is too much, the run that keeps most ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from math import inf

from colonnade.errors import ColonnadeError, MalformedMessage, OversizedMessage
from colonnade.net.frame import Routes, unpack
from colonnade.net.framing import stream_framing
from colonnade.net.mailbox import OVERHEAD
from colonnade.net.network import Deliver, Lost, Restored
from colonnade.net.stream.channel import LATER
from colonnade.net.stream.wire import NetworkWire

WEIGHED_EVERY = 2**20  # bytes that a peer sends between two looks at what is kept because of it


@dataclass
class DaemonLine:
    """The line with one peer: the wire while there is one, and why there is none."""

    peer: str
    wire: NetworkWire | None = None
    up: bool = False
    reason: str = "not yet connected"


@dataclass
class Carried:
    """Bytes of the frames of one run by peer, both ways, framing included."""

    sent: Counter[str] = field(default_factory=Counter)
    received: Counter[str] = field(default_factory=Counter)


class RunWires:
    """The runs on the standing lines of one daemon: a frame goes to the wire of the run its route names."""

    def __init__(self, limit: int) -> None:
        self.refused: Counter[str] = Counter()
        self.sent: Counter[str] = Counter()  # bytes by peer
        self.received: Counter[str] = Counter()
        self.carried: dict[int, Carried] = {}  # by the number of a run, until somebody takes it
        self._limit = limit
        self._wires: dict[tuple[int, str], RunWire] = {}  # by route and sender
        self._heard: Counter[str] = Counter()  # bytes of a peer since its runs were weighed

    def add(self, wire: RunWire) -> None:
        self._wires.update(dict.fromkeys(wire.keys, wire))

    def remove(self, wire: RunWire) -> None:
        for key in wire.keys:
            if self._wires.get(key) is wire:
                del self._wires[key]

    def deliver(self, sender: str, frame: bytes) -> None:
        self.received[sender] += len(frame) + sum(stream_framing(len(frame)))
        try:
            header, _ = unpack(frame)
        except MalformedMessage:
            self.refused["MalformedMessage"] += 1
            return
        wire = self._wires.get((header.route, sender))
        if wire is None or wire.ended:
            self.refused["WrongRun"] += 1
            return
        wire.carried.received[sender] += len(frame) + sum(stream_framing(len(frame)))
        self._heard[sender] += len(frame) + OVERHEAD
        if self._heard[sender] > min(WEIGHED_EVERY, self._limit // 8):
            self._weigh(sender, len(frame))
        if not wire.ended:
            wire.deliver(sender, frame)

    def _weigh(self, sender: str, more: int) -> None:
        """End the run of a peer that keeps most, if with this many bytes more all its runs keep too much.

        The daemons' own talk has a smaller room of its own.
        """
        del self._heard[sender]
        kept = {wire: wire.waiting() for wire in self._with(sender) if not wire.ended}
        for wire in [wire for wire, waiting in kept.items() if waiting > wire.room]:
            self.refused["OversizedMessage"] += 1
            wire.end(
                OversizedMessage(f"{sender} lets {kept.pop(wire)} bytes lie unread, {wire.room} are allowed")
            )
        total = sum(kept.values()) + more
        if kept and total > self._limit:
            self.refused["OversizedMessage"] += 1
            max(kept, key=kept.__getitem__).end(
                OversizedMessage(
                    f"{sender} lets {total} bytes lie unread in all its runs here, over limits.waiting_mb = "
                    f"{self._limit / 2**20:g}"
                )
            )

    def lost(self, peer: str, error: ColonnadeError) -> None:
        for wire in self._with(peer):
            wire.lost(peer, error)

    def restored(self, peer: str) -> None:
        for wire in self._with(peer):
            wire.restored(peer)

    def _with(self, peer: str) -> list[RunWire]:
        return [wire for (_, sender), wire in self._wires.items() if sender == peer]


class RunWire:
    """The `Wire` of one run: it sends over the standing lines, and receives only this run's frames."""

    lossless = False
    intact = True
    retry_after: float | None = None

    def __init__(self, runs: RunWires, lines: Mapping[str, DaemonLine], routes: Routes) -> None:
        self.keys = [(routes.of[peer], peer) for peer in lines]
        self._runs = runs
        self._lines = lines
        self._gone: set[str] = set()
        self.ended = False
        self.carried = runs.carried.setdefault(routes.run, Carried())
        self.weigh(lambda: 0, lambda error: None)
        runs.add(self)

    framing = staticmethod(stream_framing)

    def attach(self, deliver: Deliver, lost: Lost, restored: Restored) -> None:
        self.deliver, self._lost, self.restored = deliver, lost, restored

    def weigh(
        self, waiting: Callable[[], int], fail: Callable[[ColonnadeError], None], room: float = inf
    ) -> None:
        """Say how many bytes are kept because of the peers, and how to end the run if they are too many."""
        self.waiting, self._fail, self.room = waiting, fail, room

    def end(self, error: ColonnadeError) -> None:
        """End the run: nothing more of it is heard."""
        self.ended = True
        self._fail(error)

    def lost(self, peer: str, error: ColonnadeError) -> None:
        self._gone.add(peer)  # a line that begins again knows nothing of this run
        self._lost(peer, error)

    def send(self, to: str, frame: bytes) -> Awaitable[None] | None:
        wire = self._lines[to].wire
        if wire is None or to in self._gone:
            return None
        size = len(frame) + sum(stream_framing(len(frame)))
        self._runs.sent[to] += size
        self.carried.sent[to] += size
        return wire.send(to, frame)

    def catch_up(self) -> int:
        return LATER

    async def close(self) -> None:
        self._runs.remove(self)
