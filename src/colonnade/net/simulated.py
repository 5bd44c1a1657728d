"""The simulated world: all parties in one process on a virtual clock.

The event loop's time jumps to the next event, so a run over a slow network takes no longer than its
arithmetic, and the same seed gives the same events in the same order on any machine. Faults (drop,
duplicate, corrupt, delay, partition, crash) come from a seeded generator or a fixed plan, never from real
time.

Every party has one network card, which sends and receives at the same time, each at the link's bandwidth and
one frame after another: what a party sends, to any other, leaves in the order in which it was sent, and what
reaches it, from any other, is taken in in the order in which it began to arrive. Between two cards lies the
latency. So a frame alone on its way takes latency + size / bandwidth; q - 1 frames of the same size to one
party, or from one, take q - 1 times as long through its card, and the latency once.

Where messages cost computing (`Handling`), a frame leaves when its sender's processor is done with it, and is
delivered when its receiver's is.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from colonnade.errors import PeerLost
from colonnade.net.clock import VirtualClock
from colonnade.net.framing import stream_framing
from colonnade.net.network import Deliver, Lost, Restored


@dataclass(frozen=True)
class Partition:
    """No frame passes between the two sides from `start` to `end`."""

    start: float
    end: float
    side: frozenset[str]

    def cuts(self, now: float, a: str, b: str) -> bool:
        return self.start <= now < self.end and (a in self.side) != (b in self.side)


@dataclass(frozen=True)
class Faults:
    """What goes wrong. Probabilities are per frame."""

    drop: float = 0.0
    duplicate: float = 0.0
    corrupt: float = 0.0
    delay: float = 0.0
    delay_s: float = 1.0
    partitions: tuple[Partition, ...] = ()
    crash: dict[str, float] = field(default_factory=dict)

    def any(self) -> bool:
        return self != Faults()


@dataclass(frozen=True)
class Link:
    """How long a frame takes from one party to another: between two cards, and through either of them."""

    latency_s: float = 0.0
    bandwidth_bps: float = float("inf")


@dataclass(frozen=True)
class Handling:
    """What a message costs the processors of the parties that send and receive it, each of them."""

    clocks: Mapping[str, VirtualClock]
    per_message: float = 0.0  # seconds
    per_byte: float = 0.0

    def done(self, party: str, size: int) -> float:
        """Return when the party will have handled a message of this size that it begins with now."""
        return self.clocks[party].handle(self.per_message + size * self.per_byte)


class Load(NamedTuple):
    """A frame on its way, its bytes with all that is around it, and how long it takes through a card."""

    frame: bytes
    size: int
    seconds: float


class SimulatedHub:
    """Connects the wires of all parties, and decides when a frame arrives and what goes wrong with it."""

    def __init__(
        self,
        link: Link | None = None,
        faults: Faults | None = None,
        seed: int = 0,
        handling: Handling | None = None,
    ) -> None:
        self.link = link or Link()
        self.faults = faults or Faults()
        self.handling = handling
        self.deliver: dict[str, Deliver] = {}
        self.lost: dict[str, Lost] = {}
        self._rng = np.random.default_rng([seed, 0x6E6574])
        self._sending: defaultdict[str, float] = defaultdict(float)  # until when a party's card is busy
        self._receiving: defaultdict[str, float] = defaultdict(float)
        self._crashed: set[str] = set()
        self._in_flight: defaultdict[tuple[str, str], deque[Load]] = defaultdict(deque)

    def wire(self, party: str) -> SimulatedWire:
        return SimulatedWire(self, party)

    def crash(self, party: str, *, silent: bool = False) -> None:
        """Let a party's machine die: nothing from it or to it passes any more, and the peers notice.

        Of a silent death they are not told, and notice that nothing comes.
        """
        if party in self._crashed:
            return
        self._crashed.add(party)
        for peer, lost in self.lost.items():
            if peer != party and not silent:
                lost(party, PeerLost(f"{party} went away and did not come back"))

    def carry(self, sender: str, to: str, frame: bytes, framing: int) -> None:
        """Schedule the arrival of a frame, unless a fault swallows it."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        faults = self.faults
        copies = 1
        extra = 0.0
        if sender in self._crashed or to in self._crashed:
            return
        if faults.any():
            if any(partition.cuts(now, sender, to) for partition in faults.partitions):
                return
            chance = self._rng.random(4)
            if chance[0] < faults.drop:
                return
            copies += int(chance[1] < faults.duplicate)
            if chance[2] < faults.corrupt:
                frame = self._flip(frame)
            if chance[3] < faults.delay:
                extra = faults.delay_s
        size = len(frame) + framing
        load = Load(frame, size, size * 8 / self.link.bandwidth_bps)
        ready = now if self.handling is None else self.handling.done(sender, size)
        start = max(ready, self._sending[sender])
        self._sending[sender] = start + load.seconds
        if not extra:
            self._in_flight[sender, to].extend([load] * copies)
        for _ in range(copies):
            reaches = start + self.link.latency_s + extra
            loop.call_at(reaches, self._take_in, sender, to, load if extra else None)

    def _take_in(self, sender: str, to: str, delayed: Load | None) -> None:
        """Let a frame that begins to arrive through the receiver's card."""
        # events of the same instant come in any order, but a line keeps its own: whichever of its events
        # comes first takes the frame that was sent first; a delayed frame travels on its own
        load = self._in_flight[sender, to].popleft() if delayed is None else delayed
        if not load.seconds:
            self._arrive(sender, to, load)
            return
        loop = asyncio.get_running_loop()
        self._receiving[to] = max(loop.time(), self._receiving[to]) + load.seconds
        loop.call_at(self._receiving[to], self._arrive, sender, to, load)

    def _arrive(self, sender: str, to: str, load: Load) -> None:
        """Let the receiver handle a frame that is here."""
        if self.handling is None or to in self._crashed:
            self._deliver(sender, to, load.frame)
            return
        done = self.handling.done(to, load.size)
        asyncio.get_running_loop().call_at(done, self._deliver, sender, to, load.frame)

    def _deliver(self, sender: str, to: str, frame: bytes) -> None:
        if to not in self._crashed:
            self.deliver[to](sender, frame)

    def _flip(self, frame: bytes) -> bytes:
        """Return the frame with one bit changed."""
        broken = bytearray(frame)
        broken[int(self._rng.integers(len(broken)))] ^= 1 << int(self._rng.integers(8))
        return bytes(broken)


class SimulatedWire:
    """A `Wire` over a `SimulatedHub`. Without faults nothing is lost or changed."""

    def __init__(self, hub: SimulatedHub, party: str) -> None:
        self._hub = hub
        self._party = party
        self.lossless = self.intact = not hub.faults.any()
        self.retry_after = None if self.lossless else 0.25 + 4 * hub.link.latency_s

    def framing(self, size: int) -> tuple[int, int]:
        return stream_framing(size)

    def attach(self, deliver: Deliver, lost: Lost, restored: Restored) -> None:
        self._hub.deliver[self._party] = deliver
        self._hub.lost[self._party] = lost
        at = self._hub.faults.crash.get(self._party)
        if at is not None:
            # an event of its own: peers that only wait must notice too
            asyncio.get_running_loop().call_at(at, self._hub.crash, self._party)

    def send(self, to: str, frame: bytes) -> None:
        self._hub.carry(self._party, to, frame, sum(self.framing(len(frame))))

    def catch_up(self) -> int:
        return 0  # what arrives on a virtual clock does so before anybody goes on

    async def close(self) -> None:
        self._hub.deliver[self._party] = lambda sender, frame: None
