"""A rehearsal: a plan is run on made-up rows over a simulated line, to see what the real run will cost.

Bytes, rounds and waiting are those of the very program that will run, so no algorithm is described a second
time. Few passes over few rows are rehearsed, two sizes of each; what grows with rows, with passes and with
both follows from the differences. Nobody's data is needed but its size.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from time import process_time, thread_time
from typing import Any, NamedTuple

import numpy as np
from msgspec import structs

from colonnade.arrays import Floats
from colonnade.conversations.align import FEW, AlignTerms, Method, align
from colonnade.data.table import INTERCEPT, Table
from colonnade.job.plan import Plan
from colonnade.losses import LOSSES
from colonnade.net.clock import RealClock, VirtualClock, run_virtual
from colonnade.net.endpoint import Endpoint
from colonnade.net.local import LocalHub
from colonnade.net.network import Wire
from colonnade.net.simulated import Link, SimulatedHub
from colonnade.result import Moment
from colonnade.run.coalitions import train
from colonnade.run.inprocess import apart, gather_parties
from colonnade.run.party import Party, Work
from colonnade.run.registry import CONVERSATIONS
from colonnade.secure.keys import InProcessIdentity

IDS = 2000
WARM = 200
TRIPS = 6  # round trips of an alignment, with keys and sizes
RUN = 16
PATIENCE_S = 1e6  # of the virtual clock


class TripLine(NamedTuple):
    """What lies between two parties: how long a word and its answer take, and how much passes."""

    round_trip_s: float
    mbps: float


class Taken(NamedTuple):
    """What a run takes: passes, rounds, bytes that all send together, seconds of waiting and of work."""

    passes: float
    rounds: float
    sent: float
    waiting_s: float
    computing_s: float

    def plus(self, other: Taken) -> Taken:
        """Return both together."""
        return Taken(*(one + more for one, more in zip(self, other, strict=True)))


@dataclass(frozen=True)
class Given:
    """What is known of the parties: their columns, and of one of them the first rows, where these matter."""

    columns: Mapping[str, int]
    party: str = ""
    table: Table | None = None


def rehearse(plan: Plan[Any], given: Given, rows: int, tests: int, line: TripLine) -> Taken:
    """Return what all passes of a plan over this number of rows take, from the first key to the end."""
    share, asked = tests / rows, CONVERSATIONS[plan.conversation].rehearsal
    lengths = (plan.pace.epochs,) if asked.passes is None else _two(plan.pace.epochs, asked.passes)
    plan = _on(plan, line, to_its_end=asked.passes is None)
    _run(_of(plan, 1), given, min(rows, WARM), 1)  # what is imported late is no part of a run
    seen = {
        (n, passes): _run(_of(plan, passes), given, n, max(1, round(n * share)))
        for n, passes in product(_two(rows, asked.rows), lengths)
    }
    return Taken(*(_extended(seen, field, rows, plan.pace.epochs) for field in range(len(Taken._fields))))


def passes_until_settled(plan: Plan[Any], given: Given, rows: int) -> int:
    """Return how many passes a run makes that ends by itself once the loss stops falling."""
    made = _run(_on(plan, TripLine(0.0, math.inf), to_its_end=True), given, rows, 1).passes
    return round(made) or plan.pace.epochs


def _two(whole: int, most: int) -> tuple[int, ...]:
    """Return the sizes to rehearse: the whole, if it is small, or two of which one is half of the other."""
    return (whole,) if whole <= most else (most // 2, most)


def _extended(seen: Mapping[tuple[int, int], Taken], field: int, rows: int, passes: int) -> float:
    """Return a measure at the full size: linear in rows, in passes, and in their product."""
    by_rows: dict[int, dict[int, float]] = {}
    for (n, epochs), taken in seen.items():
        by_rows.setdefault(epochs, {})[n] = taken[field]
    return max(0.0, _line_through({e: _line_through(found, rows) for e, found in by_rows.items()}, passes))


def _line_through(found: Mapping[int, float], at: int) -> float:
    """Return what a line through one or two points has at a place.

    >>> _line_through({2: 5.0}, 9), _line_through({2: 5.0, 4: 6.0}, 8)
    (5.0, 8.0)
    """
    if len(found) == 1:
        return next(iter(found.values()))
    (a, low), (b, high) = sorted(found.items())
    return low + (high - low) * (at - a) / (b - a)


def _on(plan: Plan[Any], line: TripLine, *, to_its_end: bool) -> Plan[Any]:
    """Return a plan on a line, on whose clock computing costs nothing."""
    network = structs.replace(
        plan.network,
        latency_ms=line.round_trip_s * 500,
        bandwidth_mbps=line.mbps,
        ns_per_value=0.0,
        us_per_call=0.0,
    )
    pace = plan.pace if to_its_end else structs.replace(plan.pace, tolerance=0.0)
    return structs.replace(
        plan,
        world="simulated",
        network=network,
        pace=pace,
        checkpoints=None,
        stands_for=plan.pace.epochs,
    )


def _of(plan: Plan[Any], passes: int) -> Plan[Any]:
    """Return a plan of this number of passes."""
    return structs.replace(plan, pace=structs.replace(plan.pace, epochs=passes))


def _run(plan: Plan[Any], given: Given, rows: int, tests: int) -> Taken:
    """Return what a plan takes on made-up rows."""
    rng = np.random.default_rng(plan.seed)
    common = rng.standard_normal((rows + tests, 2 + sum(given.columns.values()) // 4))
    whole = _people(plan, given.columns, common, rng)
    labels = _labels(plan, 1.5 * common[:, 0] + rng.standard_normal(rows + tests), rng)
    if given.table is not None and given.table.y is not None:
        labels = np.resize(given.table.y, rows + tests)
    tables: dict[str, tuple[Table, Table]] = {}
    for party, X in whole.items():
        made = Table(party, _named(plan, party, X), X, labels if party in plan.label_holders else None)
        if given.table is not None and party == given.party:
            made = replace(given.table.take(np.arange(rows + tests) % given.table.rows), ids=None)
        tables[party] = made.take(np.arange(rows)), made.take(np.arange(rows, rows + tests))

    measured = [0]

    async def play(party: Party) -> int:
        net = party.nets[0]

        def progress(moment: Moment) -> None:
            measured.append(moment.epoch)

        work = Work(plan, *tables[net.me], columns=given.columns, progress=progress)
        return (await train(party, work, net)).rounds

    network = plan.network
    hub = SimulatedHub(Link(network.latency_ms / 1e3, (network.bandwidth_mbps or math.inf) * 1e6))
    clocks = {party: VirtualClock(1.0, math.inf, 1) for party in plan.parties}

    async def timed() -> Taken:
        began = thread_time()
        played = await _together(plan.parties, hub.wire, clocks.__getitem__, play)
        waiting = max(clock.now() for clock in clocks.values())
        return Taken(max(measured), played.rounds, played.sent, waiting, thread_time() - began)

    return apart(run_virtual, lambda _: timed())


def _people(
    plan: Plan[Any], columns: Mapping[str, int], common: Floats, rng: np.random.Generator
) -> dict[str, Floats]:
    """Return columns of all parties, by half from what is common to them, as those of people are."""
    found = {}
    for party in plan.parties:
        weights = rng.standard_normal((common.shape[1], columns[party])) / math.sqrt(common.shape[1])
        found[party] = (common @ weights + rng.standard_normal((len(common), columns[party]))) / math.sqrt(2)
    return found


def _named(plan: Plan[Any], party: str, X: Floats) -> tuple[str, ...]:
    """Return names of columns; the last one of the evaluator, where it has several, becomes that of ones."""
    names = tuple(f"c{k}" for k in range(X.shape[1]))
    if party != plan.evaluator or len(names) < 2:
        return names
    X[:, -1] = 1.0
    return (*names[:-1], INTERCEPT)


def _labels(plan: Plan[Any], z: Floats, rng: np.random.Generator) -> Floats:
    """Return labels of the kind that the plan's loss is for, which follow from scores by half."""
    loss = LOSSES[plan.objective.loss]
    if loss.task == "multiclass":
        return rng.integers(0, plan.objective.classes, len(z)).astype(np.float64)
    if loss.task == "binary":
        return np.where(z > 0, 1.0, -1.0)
    if loss.link == "log":
        return np.asarray(1.0 + rng.poisson(np.exp(0.3 * z)), np.float64)
    return z


def rehearse_alignment(parties: Mapping[str, int], method: Method, line: TripLine) -> Taken:
    """Return what finding the common rows takes, where all ids that parties bring are common."""
    most = max(parties.values())
    # transfers are for many ids alone, and quick
    larger = 2 * FEW if method == "ot" and min(parties.values()) >= FEW else IDS
    sizes = _two(most, larger)
    seen = {(n, 1): _aligned(tuple(parties), n, method, line) for n in sizes}
    return Taken(*(_extended(seen, field, most, 1) for field in range(len(Taken._fields))))


def _aligned(parties: tuple[str, ...], size: int, method: Method, line: TripLine) -> Taken:
    """Return what it takes to compare this number of made-up ids; threads compute, so on the real clock."""
    ids = np.random.default_rng(size).integers(0, 256, (size, 32), dtype=np.uint8)
    hub, clock = LocalHub(), RealClock()

    async def play(party: Party) -> int:
        net = party.nets[0]
        await align(net, ids, await party.join(net, "rehearsal"), AlignTerms(method=method))
        await net.finish()
        return 0

    began = process_time()
    played = apart(asyncio.run, lambda _: _together(parties, hub.wire, lambda _: clock, play))
    # what is sent to one party, or by it, goes through its line
    busiest = max(max(net.meter.bytes(), net.meter.received_bytes) for net in played.nets)
    waiting = TRIPS * line.round_trip_s + busiest * 8 / (line.mbps * 1e6)
    return Taken(0, 0, played.sent, waiting, process_time() - began)


@dataclass(frozen=True)
class _Played:
    """What was seen of a rehearsal."""

    rounds: int
    nets: list[Endpoint]

    @property
    def sent(self) -> int:
        """All bytes that were sent, also to measure."""
        return sum(net.meter.bytes() + net.meter.bytes(evaluation=True) for net in self.nets)


async def _together(
    parties: tuple[str, ...],
    wire: Callable[[str], Wire],
    clock: Callable[[str], RealClock | VirtualClock],
    play: Callable[[Party], Awaitable[int]],
) -> _Played:
    """Let all parties play in this thread; `play` returns how many rounds there were."""
    names = tuple(sorted(parties))
    identities = InProcessIdentity.for_all(names)
    nets = {
        name: Endpoint(name, names, wire(name), clock(name), run=RUN, deadline=PATIENCE_S) for name in names
    }

    async def one(name: str) -> int:
        async with Party(identities[name], (nets[name],)) as party:
            return await play(party)

    rounds = await gather_parties({name: one(name) for name in names})
    return _Played(max(rounds.values()), list(nets.values()))
