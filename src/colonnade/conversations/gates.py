"""Checkpoints: at a gate every party stores what rounds have changed, and a run can go on from there.

A conversation hands over the objects that its rounds change (`keep`), whose classes declare what of them that
is (`state`), and says when it stands at a gate (`reached`): a place that every party comes to after the same
rounds, with nothing of them under way. There

1. every party takes a picture of its state, before it tells anybody that it is there: nobody is beyond the
   gate while pictures are taken, so nothing of what follows can be in one;
2. all tell all that they are there, which of their pictures is on disk, and the evaluator which gate is next;
3. every party writes its picture to its disk and goes on. It tells of the next gate once that is done.

So when a picture is written, everybody has the one before, or says that it has not: a party keeps the newest
that all have, and its own newest. A party that cannot write goes on, and says so in its log.

A run that goes on (`open`) is a new session: new keys, new masks, the same names for the same rounds. The
parties agree on the newest gate that all have from one session (shares of blind runs, and all that depends on
which message came first, fit together only within one); `keep` then puts back what was kept. `position` is
where the conversation goes on. On a virtual clock all leave a gate at one agreed time, and go on from it at
that time: then what is asynchronous happens in the same order again.
"""

from __future__ import annotations

import asyncio
import logging
import math
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from colonnade.arrays import Numbers
from colonnade.errors import CheckpointError, ProtocolError, ShareError
from colonnade.messages import Announce, Topic, tag_of
from colonnade.net.endpoint import Endpoint
from colonnade.net.expect import floats, whole
from colonnade.plain import fill, pack, unpack
from colonnade.records import Records
from colonnade.state import values_of

log = logging.getLogger("colonnade")

INTERVAL_S = 15.0
"""Seconds between two checkpoints, where the job does not say how many epochs."""
DEAREST = 0.02  # of the time between two checkpoints: what one may take
GROWTH = 8  # how many times further off the next gate may be than the last was
_OWN = "noise"  # the name of what `secret` notes
_FLOATS = "secret"  # the same in version 0.2.0, whose noise was made of it in another way
NOTHING: Mapping[str, Any] = {}
_SETTLED_S = 0.01  # of virtual time, and some latencies: until all that was sent has arrived


@dataclass
class Gates:
    """One party's checkpoints in one run; without `records` there are none.

    `every`: after this many epochs there is a gate, or as often as is worth it.
    """

    net: Endpoint
    evaluator: str
    records: Records | None = None
    every: int | Literal["auto"] = "auto"
    latency_s: float = 0.0
    position: int = 0  # where the run went on from: a gate, or 0
    upcoming: int = 0  # the next gate; 0: none
    unit: int = 1  # what one epoch is, as the conversation counts
    _kept: dict[str, tuple[Any, str]] = field(default_factory=dict)
    _put_back: dict[str, Any] = field(default_factory=dict)
    _pace: _Pace = field(init=False)

    def __post_init__(self) -> None:
        self._pace = _Pace(self.every)
        self._writing: asyncio.Future[None] | None = None
        self._stored = self._common = self._session = 0
        self._time = 0.0  # at which all leave the gate, where time is virtual

    async def open(self) -> None:
        """Agree on the newest gate that all have, and go on from there."""
        if self.records is None:
            return
        found = self.records.gates()
        tag = tag_of(Topic.GATE, 0)
        own = np.array([[0, secrets.randbits(52)], *found], dtype=np.int64)
        await self.net.broadcast(Announce(tag, own))
        heard = await self.net.gather(Announce, tag, values=whole(None, 2))
        told = {**{party: message.values for party, message in heard.items()}, self.net.me: own}
        if empty := [party for party, pairs in told.items() if not len(pairs)]:
            raise ProtocolError(f"{empty[0]} does not say which session this is")
        self._session = int(told[self.evaluator][0, 1])
        common = set.intersection(*({tuple(pair) for pair in pairs[1:].tolist()} for pairs in told.values()))
        if not common:
            self.records.clear()
            return
        gate = int(max(common)[0])
        stored = self.records.read(gate)
        self.position = self._stored = self._common = gate
        self.upcoming, self._time, self._put_back = (
            stored["upcoming"],
            stored["time"],
            unpack(stored["state"]),
        )
        self._pace = stored["pace"]
        self.net.meter.add(stored["books"])
        self.net.clock.set(stored["clock"])
        self._pace.begin(gate, self.net.clock.now())

    def keep(self, thing: object, *names: str, name: str = "", older: Mapping[str, Any] = NOTHING) -> None:
        """Let what rounds change of an object be part of every picture; a run that goes on has it back.

        Its class declares what that is (`state`); with `names` only these of it, where the others are not
        made yet. In a picture an object has the name of its class, where there are not several of it.
        `older` are the values of what pictures of 0.2 lack, in a run that goes on from one.
        """
        if self.records is None:
            return
        for path, holder, last in values_of(thing, *names):
            known = f"{name or type(thing).__name__}.{path}"
            self._kept[known] = holder, last
            if self.position:
                if known not in self._put_back and path not in older:
                    raise CheckpointError(f"the checkpoint at gate {self.position} has no {known}")
                _put(holder, last, self._put_back.get(known, older.get(path)))

    def note(self, name: str, content: bytes) -> None:
        """Have something on disk before what follows from it; whenever the run goes on it is `noted`.

        ShareError if the disk fails: then nothing may follow from it.
        """
        if self.records is not None:
            self.records.note(name, content)

    def noted(self, name: str) -> bytes | None:
        """Return what was noted under this name, in any session of the run."""
        return None if self.records is None else self.records.noted(name)

    def secret(self) -> bytes:
        """Return a random key of this party's own, the same whenever the run goes on."""
        if self.noted(_FLOATS) is not None:
            raise CheckpointError(
                "this run began with Colonnade 0.2, whose noise was another, and to go on would tell labels "
                "twice; end it with that version, or start again without --resume"
            )
        found = self.noted(_OWN)
        if found is None:
            if self.position:
                raise CheckpointError("the secret of this run is lost; start again without --resume")
            found = secrets.token_bytes(32)
            self.note(_OWN, found)
        return found

    def begin(self, unit: int) -> int:
        """Say what one epoch is, once everything is kept; returns the first gate, 0 where there is none."""
        self.unit = unit
        if self.records is not None and not self.position:
            self.upcoming = unit if self.every == "auto" else unit * self.every
            self._pace.begin(0, self.net.clock.now())
        return self.upcoming

    def due(self, position: int) -> bool:
        """Return whether there is a gate here."""
        return self.records is not None and self.position < position == self.upcoming

    async def reached(self, position: int, *, ending: bool = False) -> None:
        """Stand at a gate with everybody; the state is stored unless the run is about to end."""
        if self.records is None:
            return
        await self.settle()
        begun = time.perf_counter()
        picture = pack({known: getattr(holder, name) for known, (holder, name) in self._kept.items()})
        taken = time.perf_counter() - begun
        clock, words = self.net.clock, [0.0, 0.0]
        if self.net.me == self.evaluator:
            following, store = self._pace.decide(position, self.unit, clock.now())
            words = [following, float(store and not ending)]
        # of virtual time all parties have one, independent of their clocks; of real time nobody is told
        words += [self._stored, asyncio.get_running_loop().time() if clock.virtual else 0.0]
        tag = tag_of(Topic.GATE, position)
        await self.net.broadcast(Announce(tag, np.array(words)))
        told = {party: message.values for party, message in (await self._words(tag)).items()}
        _check(told)
        told[self.net.me] = np.array(words)
        self.upcoming, store = int(told[self.evaluator][0]), bool(told[self.evaluator][1])
        self._common = int(min(values[2] for values in told.values()))
        self._time = float(max(values[3] for values in told.values())) + 4 * self.latency_s + _SETTLED_S
        if store:
            await self._store(position, picture, taken)
        await self.realign()

    async def _words(self, tag: int) -> dict[str, Announce]:
        """Return what every peer says at a gate."""
        return await self.net.gather(Announce, tag, values=floats(4, low=0))

    async def realign(self) -> None:
        """Leave the gate at the agreed time, on a virtual clock."""
        if self.net.clock.virtual and self.records is not None:
            apart = 1e-6 * self.net.parties.index(self.net.me)  # nobody at the same instant as another
            await asyncio.sleep(max(0.0, self._time + apart - asyncio.get_running_loop().time()))

    async def settle(self) -> None:
        """Wait until what is being written is on disk."""
        if self._writing is not None:
            await asyncio.wait([self._writing])  # the task that waits may be cancelled, the writing not
            written, self._writing = self._writing, None
            written.result()

    async def _store(self, position: int, picture: bytes, taken: float) -> None:
        """Store a picture of the state, which took so long to take."""
        state = {
            "upcoming": self.upcoming,
            "time": self._time,
            "pace": self._pace,
            "clock": self.net.clock.now(),
            "books": self.net.meter.books(),
            "state": picture,
        }
        if self.net.clock.virtual:
            self._write(position, state, taken)
        else:  # training goes on meanwhile
            self._writing = asyncio.ensure_future(asyncio.to_thread(self._write, position, state, taken))

    def _write(self, position: int, state: dict[str, Any], taken: float) -> None:
        if self.records is None:
            return
        begun = time.perf_counter()
        try:
            self.records.write(position, self._session, pack(state), {self._common})
            self._stored = position
        except ShareError as error:
            log.warning("no checkpoint at gate %d: %s", position, error)
        if not self.net.clock.virtual:
            self._pace.cost = taken + time.perf_counter() - begun


def _put(holder: Any, name: str, new: Any) -> None:
    """Set an attribute to a value that was kept; what is frozen has its arrays filled."""
    old = getattr(holder, name)
    value = fill(old, new)
    if value is old:
        return
    params = getattr(holder, "__dataclass_params__", None)
    if params is not None and params.frozen:
        np.copyto(old, value)
    else:
        setattr(holder, name, value)


def _check(told: dict[str, Numbers]) -> None:
    """Refuse what is no word of a party at a gate."""
    for party, words in told.items():
        if words.shape != (4,) or words.dtype != np.float64 or not np.isfinite(words).all():
            raise ProtocolError(f"{party} sent {words.shape} {words.dtype} values at a gate; 4 were due")


@dataclass
class _Pace:
    """When the next gate is worth it, as the evaluator sees it."""

    every: int | Literal["auto"]
    cost: float = 0.0  # seconds that the last checkpoint took
    last: int = 0  # gate
    since: float = 0.0  # when it was
    stored: float = 0.0  # when the state was last stored

    def begin(self, position: int, now: float) -> None:
        """Count from here."""
        self.last, self.since, self.stored = position, now, now

    def decide(self, position: int, unit: int, now: float) -> tuple[int, bool]:
        """Return the next gate, and whether the state is stored at this one."""
        if self.every != "auto":
            return position + unit * self.every, True
        interval = max(INTERVAL_S, self.cost / DEAREST)
        epochs = (position - self.last) / unit
        seconds = max(now - self.since, 1e-9) / epochs  # of an epoch
        ahead = max(1, min(math.floor(interval / seconds), GROWTH * math.ceil(epochs)))
        store = now - self.stored >= 0.5 * interval
        self.last, self.since = position, now
        if store:
            self.stored = now
        return position + unit * ahead, store
