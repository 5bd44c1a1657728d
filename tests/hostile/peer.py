"""A run in which one party's messages are altered on their way out, on a virtual clock.

`played` returns how every party ended. Whoever waits for what never comes ends after its deadline, which on a
virtual clock takes no time; if nothing could happen any more the loop itself says so.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from tests.hostile.altering import Altered, altered

from colonnade.errors import ColonnadeError
from colonnade.messages import Message, decode
from colonnade.net.clock import RealClock, VirtualClock, run_virtual
from colonnade.net.endpoint import Endpoint
from colonnade.net.frame import DATA, pack, unpack
from colonnade.net.local import LocalHub
from colonnade.net.network import Deliver, Lost, Restored, Wire
from colonnade.net.simulated import SimulatedHub
from colonnade.run.party import first_cause

DEADLINE = 30.0
BRIEF = 0.4
LONGEST = 3600.0  # virtual seconds of a run that hangs

Program = Callable[[Endpoint], Awaitable[Any]]
"""What one party does on its network; the same for all but for what it holds."""


@dataclass
class Attack:
    """Which message is altered: the `place`-th of a kind; None: none, they are only counted."""

    rng: np.random.Generator
    kind: str = ""
    place: int = -1
    seen: Counter[str] = field(default_factory=Counter)
    done: Altered | None = None

    def of(self, message: Message) -> Altered | None:
        name = type(message).__name__
        self.seen[name] += 1
        if name != self.kind or self.seen[name] - 1 != self.place:
            return None
        self.done = altered(self.rng, message)
        return self.done


class HostileWire:
    """The wire of a party that sends something else than its program says."""

    lossless: bool = True
    intact: bool = True
    retry_after: float | None = None

    def __init__(self, wire: Wire, attack: Attack) -> None:
        self._wire, self._attack = wire, attack
        self._numbers = Counter[str]()
        self._held: dict[str, tuple[Any, bytes]] = {}
        self._silent = False

    def framing(self, size: int) -> tuple[int, int]:
        return self._wire.framing(size)

    def attach(self, deliver: Deliver, lost: Lost, restored: Restored) -> None:
        def heard(sender: str, frame: bytes) -> None:
            header, payload = unpack(frame)
            # others acknowledge what was really sent, of which this party's own program knows nothing
            deliver(sender, pack(header._replace(acknowledged=0), bytes(payload), checked=False))

        self._wire.attach(heard, lost, restored)

    def send(self, to: str, frame: bytes) -> Awaitable[None] | None:
        header, payload = unpack(frame)
        if header.kind != DATA:
            return self._wire.send(to, frame)
        if self._silent:
            return None
        found = self._attack.of(decode(payload))
        payloads = [bytes(payload)] if found is None else found.payloads
        if found is not None:
            self._silent = found.silent
            if found.later:
                self._held[to] = header, bytes(payload)
        elif to in self._held:
            payloads.append(self._held.pop(to)[1])
        for each in payloads:
            self._numbers[to] += 1
            self._wire.send(to, pack(header._replace(sequence=self._numbers[to]), each, checked=False))
        return None

    def catch_up(self) -> int:
        return 0

    async def close(self) -> None:
        await self._wire.close()


def played(
    programs: Mapping[str, Program],
    evil: str,
    attack: Attack,
    *,
    virtual: bool = True,
    brief: float = BRIEF,
) -> dict[str, Any]:
    """Run every party's program; returns what each gave, or the error that it ended with.

    Programs that use threads need a real clock, and then a deadline takes its time.
    """

    async def together() -> dict[str, Any]:
        hub, names = SimulatedHub() if virtual else LocalHub(), tuple(sorted(programs))
        nets = {}
        for name in names:
            plain: Wire = hub.wire(name)
            wire: Wire = HostileWire(plain, attack) if name == evil else plain
            clock, deadline = (VirtualClock(), DEADLINE) if virtual else (RealClock(), brief)
            nets[name] = Endpoint(name, names, wire, clock, run=1, deadline=deadline)
        tasks = {name: asyncio.ensure_future(programs[name](nets[name])) for name in names}
        await asyncio.wait(tasks.values(), timeout=LONGEST if virtual else 20 + 10 * brief)
        for task in tasks.values():
            task.cancel()
        ends = await asyncio.gather(*tasks.values(), return_exceptions=True)
        return {
            name: first_cause(end) if isinstance(end, BaseException) else end
            for name, end in zip(tasks, ends, strict=True)
        }

    return (run_virtual if virtual else asyncio.run)(together())


def judged(ends: Mapping[str, Any], evil: str, attack: Attack, same: Callable[[str, Any], bool]) -> list[str]:
    """What is wrong with how honest parties ended; `same` says whether a result is that of a clean run."""
    wrong, found = [], attack.done
    if found is None:
        return ["the message that was to be altered was never sent"]
    for name, end in ends.items():
        if name == evil:
            continue
        if isinstance(end, BaseException):
            if not isinstance(end, ColonnadeError):
                wrong.append(f"{name} ended with {type(end).__name__}: {end}")
            elif found.plain and evil not in str(end):
                wrong.append(f"{name}'s error names nobody: {type(end).__name__}: {end}")
        elif found.plain and not same(name, end):
            wrong.append(f"{name} has another result and says nothing")
    return wrong
