"""A run on machines that fail: links that lose frames, disks that tear, fill up and forget, processes that
die and come back, clocks that jump. All on a virtual clock; one seed reproduces everything.

A run is a chain of sessions. In a session some machines die at some moment; the others end with an error that
says so. Then everybody comes back with what is on its disk, and the next session goes on from there, as
`colonnade run --resume` does. After a few sessions nothing fails any more, so a run has to end: with the
weights of an uninterrupted run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from colonnade.errors import ColonnadeError, ShareError
from colonnade.net.clock import VirtualClock, run_virtual
from colonnade.net.endpoint import Endpoint
from colonnade.net.simulated import Faults, Link, Partition, SimulatedHub
from colonnade.run.coalitions import train
from colonnade.run.party import Kept, Party, Share, Work, first_cause
from colonnade.run.world import Launch, run_id
from colonnade.secure.keys import InProcessIdentity

LONGEST_S = 1e6  # virtual seconds of a session that hangs
DEADLINE_S = 20.0


class Died(Exception):
    """The machine of a party dies while it writes."""


@dataclass
class SimulatedDisk:
    """A disk of a simulated machine. Probabilities are for a write.

    `full`: there is no room. `forgets`: it says that all is on disk and it is not; what was written since is
    lost, or torn, when the machine dies. `dies`: the machine dies in the middle, and a part of the draft
    stays.
    """

    rng: np.random.Generator
    full: float = 0.0
    forgets: float = 0.0
    dies: float = 0.0
    files: dict[Path, bytes] = field(default_factory=dict)
    unsynced: dict[Path, bytes | None] = field(default_factory=dict)  # what was there before
    dead: bool = False
    events: list[str] = field(default_factory=list)

    def replace(self, path: Path, content: bytes) -> None:
        self._alive()
        full, forgets, dies = self.rng.random(3)
        if full < self.full:
            self.events.append("full")
            raise ShareError(f"{path}: cannot be written: No space left on device")
        if dies < self.dies:
            self.events.append("died while writing")
            self.files[path.with_suffix(".part")] = content[: int(self.rng.integers(len(content)))]
            self.crash()
            raise Died
        if forgets < self.forgets:
            self.unsynced.setdefault(path, self.files.get(path))
        else:
            self.unsynced.pop(path, None)
        self.files[path] = content

    def read(self, path: Path) -> bytes:
        self._alive()
        if path not in self.files:
            raise ShareError(f"{path}: cannot be read: no such file")
        return self.files[path]

    def names(self, folder: Path) -> list[str]:
        self._alive()
        return sorted(path.name for path in self.files if path.parent == folder)

    def remove(self, path: Path) -> None:
        self._alive()
        self.files.pop(path, None)

    def crash(self) -> None:
        """Crash the machine: what was not brought to disk is as it was before, or torn."""
        self.dead = True
        for path, before in self.unsynced.items():
            content = self.files.get(path)
            if content is not None and self.rng.random() < 0.5:
                self.events.append("torn")
                self.files[path] = content[: int(self.rng.integers(len(content)))]
            elif before is None:
                self.events.append("lost")
                self.files.pop(path, None)
            else:
                self.files[path] = before
        self.unsynced = {}

    def _alive(self) -> None:
        if self.dead:
            raise Died


class JumpingClock(VirtualClock):
    """A party's clock, which somebody sets while the run goes on."""

    def __init__(self, speed: float, at: float, by: float) -> None:
        super().__init__(speed)
        self._at, self._by = at, by

    def now(self) -> float:
        real = super().now()
        return real + self._by if real >= self._at else real


@dataclass(frozen=True)
class Trouble:
    """What goes wrong in one session."""

    links: Faults = field(default_factory=Faults)
    kills: Mapping[str, float] = field(default_factory=dict)  # party -> when its process dies
    silent: bool = False  # nobody is told of a death: it shows by its silence
    jumps: Mapping[str, tuple[float, float]] = field(default_factory=dict)  # party -> when, by how much

    @staticmethod
    def drawn(rng: np.random.Generator, parties: tuple[str, ...], seconds: float) -> Trouble:
        """A session's faults; an uninterrupted run takes so many seconds."""
        some = [party for party in parties if rng.random() < 0.4]
        kills = {party: float(rng.uniform(0, 1.2 * seconds)) for party in some}
        drop, duplicate, corrupt, delay = rng.choice([0.0, 0.02, 0.1], size=4).tolist()
        links = Faults(drop, duplicate, corrupt, delay, float(rng.uniform(0, 2)))
        if rng.random() < 0.15:
            start = float(rng.uniform(0, seconds))
            side = frozenset(rng.choice(parties, 1).tolist())
            links = Faults(partitions=(Partition(start, start + float(rng.uniform(0, 30)), side),))
        jumps = {}
        if rng.random() < 0.3:
            jumps[str(rng.choice(parties))] = (float(rng.uniform(0, seconds)), float(rng.normal(0, 1e4)))
        return Trouble(links, kills, bool(rng.random() < 0.3), jumps)


@dataclass
class Ended:
    """How a session ended for every party: with a share, an error, or its death."""

    shares: dict[str, Share] = field(default_factory=dict)
    errors: dict[str, BaseException] = field(default_factory=dict)
    dead: set[str] = field(default_factory=set)


def session(order: Launch, disks: Mapping[str, SimulatedDisk], trouble: Trouble, seed: int) -> Ended:
    """Run all parties once, from what is on their disks, while things go wrong."""
    return run_virtual(asyncio.wait_for(_session(order, disks, trouble, seed), LONGEST_S))


async def _session(order: Launch, disks: Mapping[str, SimulatedDisk], trouble: Trouble, seed: int) -> Ended:
    plan, data = order.plan, order.data
    names = tuple(sorted(data))
    link = Link(plan.network.latency_ms / 1e3)
    hub, ideal = SimulatedHub(link, trouble.links, seed), SimulatedHub()
    identities, ended = InProcessIdentity.for_all(names), Ended()
    tasks: dict[str, asyncio.Task[Share]] = {}

    async def program(name: str) -> Share:
        clock = JumpingClock(plan.speeds[name], *trouble.jumps.get(name, (0.0, 0.0)))
        run = run_id(plan)
        net = Endpoint(name, names, hub.wire(name), clock, run=run, deadline=DEADLINE_S)
        beside = Endpoint(name, names, ideal.wire(name), clock, run=run, deadline=DEADLINE_S)
        prepared = data[name].prepare()
        kept = Kept(Path(name), resume=True, disk=disks[name])
        work = Work(plan, prepared.train, prepared.test, kept=kept)
        async with Party(identities[name], (net, beside)) as party:
            return await train(party, work, net, beside)

    def kill(name: str) -> None:
        if tasks[name].done() or name in ended.dead:
            return
        ended.dead.add(name)
        disks[name].crash()
        for each in (hub, ideal):
            each.crash(name, silent=trouble.silent)
        tasks[name].cancel()

    async def life(name: str) -> None:
        tasks[name] = asyncio.ensure_future(program(name))
        try:
            ended.shares[name] = await tasks[name]
        except BaseException as error:
            cause = first_cause(error)
            if isinstance(cause, Died):
                ended.dead.add(name)
                for each in (hub, ideal):
                    each.crash(name, silent=trouble.silent)
            elif name not in ended.dead:
                ended.errors[name] = cause

    loop = asyncio.get_running_loop()
    for name, at in trouble.kills.items():
        loop.call_at(at, kill, name)
    await asyncio.gather(*(life(name) for name in names))
    return ended


def is_named(error: BaseException) -> bool:
    """Whether an error says by its kind and its words what happened."""
    return isinstance(error, ColonnadeError) and bool(str(error))
