"""All parties in this process: on the real clock (`local`), or on a virtual one (`simulated`)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from time import thread_time
from typing import Any, TypeVar

from colonnade.conversations.context import NO_MODELS
from colonnade.errors import Aborted
from colonnade.job import FaultPlan
from colonnade.models.threads import single_threaded
from colonnade.net.clock import KERNEL, RealClock, VirtualClock, run_virtual
from colonnade.net.endpoint import Endpoint
from colonnade.net.local import LocalHub
from colonnade.net.network import Wire
from colonnade.net.recorder import Recorder, recorded
from colonnade.net.simulated import Faults, Handling, Link, Partition, SimulatedHub
from colonnade.result import Moment
from colonnade.run import garbage
from colonnade.run.coalitions import train
from colonnade.run.party import Party, Progress, Share, Work, first_cause
from colonnade.run.world import Launch, kept_at, run_id
from colonnade.secure.keys import InProcessIdentity

T = TypeVar("T")
Wires = Callable[[str], Wire]


def run_local(order: Launch) -> dict[str, Share]:
    """Run all parties in this process on the real clock."""
    order = order.ready()  # before the clock starts
    hub = LocalHub()

    def program(heard: Progress) -> Coroutine[Any, Any, dict[str, Share]]:
        clock = RealClock()  # one for all parties: they share a process, so a pause of one is a pause of all
        return _together(replace(order, progress=heard), hub.wire, lambda _: clock)

    return apart(asyncio.run, program, order.progress)


def run_simulated(order: Launch) -> dict[str, Share]:
    """Run all parties in this process on a virtual clock."""
    order = order.ready()
    plan, net = order.plan, order.plan.network
    link = Link(net.latency_ms / 1e3, (net.bandwidth_mbps or float("inf")) * 1e6)
    costs = (net.us_per_message / 1e6, net.ns_per_byte / 1e9)
    piece = KERNEL if any(costs) else float("inf")
    clocks = {party: VirtualClock(speed, piece, net.processors) for party, speed in plan.speeds.items()}
    handling = Handling(clocks, *costs) if any(costs) else None
    hub = SimulatedHub(link, _faults(net.faults), seed=plan.seed, handling=handling)
    # measuring must not cost virtual time, so it has a network of its own without latency or faults
    ideal = SimulatedHub()

    def program(heard: Progress) -> Coroutine[Any, Any, dict[str, Share]]:
        return _together(replace(order, progress=heard), hub.wire, clocks.__getitem__, measuring=ideal.wire)

    return apart(run_virtual, program, order.progress)


async def _together(
    order: Launch,
    wire: Wires,
    clock: Callable[[str], RealClock | VirtualClock],
    *,
    measuring: Wires | None = None,
) -> dict[str, Share]:
    """Run every party as a task of one event loop; `measuring` makes wires for measurements apart."""
    identities = InProcessIdentity.for_all(tuple(sorted(order.data)))
    run = run_id(order.plan)
    places = [_place(order, run, name, wire(name), clock(name), measuring) for name in order.data]
    began = thread_time()
    columns = {party: data.prepare().train.width for party, data in order.data.items()}
    digest = order.plan.digest()
    shares = await gather_parties(
        {
            place.net.me: _take_part(order, digest, identities[place.net.me], place, columns)
            for place in places
        }
    )
    for share in shares.values():
        # one thread did the work of all parties, and its time cannot be told apart
        share.cpu_seconds = (thread_time() - began) / len(shares)
    return shares


@dataclass(frozen=True)
class _Place:
    """A party's ends of the networks for training and, where that is apart, measuring; its recorder."""

    net: Endpoint
    measuring: Endpoint | None
    recorder: Recorder | None


def _place(
    order: Launch, run: int, name: str, wire: Wire, clock: RealClock | VirtualClock, measuring: Wires | None
) -> _Place:
    """Make a party's ends of the networks."""
    network, names = order.plan.network, tuple(sorted(order.data))
    wire = order.tap(name, wire)
    recorder = Recorder(clock) if order.timeline else None
    if recorder is not None:
        wire = recorder.tap(wire)
    net = Endpoint(
        name, names, wire, clock, run=run, deadline=network.deadline_s, broadcast=network.broadcast
    )
    beside = None
    if measuring is not None:
        beside = Endpoint(name, names, measuring(name), clock, run=run, deadline=network.deadline_s)
    return _Place(net, beside, recorder)


async def _take_part(
    order: Launch, digest: str, identity: InProcessIdentity, place: _Place, columns: Mapping[str, int]
) -> Share:
    """Return one party's part in the run."""
    net, beside, recorder = place.net, place.measuring, place.recorder
    prepared = order.data[net.me].prepare()
    work = Work(
        order.plan,
        prepared.train,
        prepared.test,
        order.target_loss,
        order.models.get(net.me, NO_MODELS),
        order.progress,
        digest,
        kept=kept_at(order.out, net.me, resume=order.resume),
        memory=order.memory,
        engine=order.engine,
        columns=columns,
        objects=bool(order.models),
        start=order.start_of(net.me),
    )
    nets = (net,) if beside is None else (net, beside)
    async with Party(identity, nets, overhear=partial(order.overhear, net.me)) as party:
        # on a virtual clock it is the clock that hears of work, and steps take no time
        steps = None if net.clock.virtual else recorder
        share = await recorded(steps, train(party, work, net, beside))
    if recorder is not None:
        share.timeline = recorder.finish(share.seconds)
    share.preparation = prepared.plain()
    return share


async def gather_parties(programs: Mapping[str, Coroutine[Any, Any, T]]) -> dict[str, T]:
    """Run every party's program as a task of this loop; raises the first real cause if one fails."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = {name: group.create_task(program) for name, program in programs.items()}
    except BaseExceptionGroup as errors:
        raise first_cause(errors) from errors
    return {name: task.result() for name, task in tasks.items()}


def apart(
    run: Callable[[Coroutine[Any, Any, T]], T],
    program: Callable[[Progress], Coroutine[Any, Any, T]],
    progress: Progress = lambda moment: None,
) -> T:
    """Run a program on a thread of its own, so that it also works where a loop already runs (a notebook).

    An interrupt ends the wait for the thread at once; the program itself stops at its next evaluation.
    """
    outcome: Future[T] = Future()
    given_up = threading.Event()

    def heard(moment: Moment) -> object:
        if given_up.is_set():
            raise Aborted("stopped by the user")
        return progress(moment)

    def alone() -> None:
        try:
            with single_threaded(), garbage.looked_for_seldom():
                found = run(program(heard))
        except BaseException as error:  # raised again where the result is awaited
            outcome.set_exception(error)
        else:
            outcome.set_result(found)

    thread = threading.Thread(target=alone, name="federation", daemon=True)
    thread.start()
    try:
        return outcome.result()
    finally:
        if outcome.done():  # or the interpreter could end while the thread is in a library, which aborts it
            thread.join()
        else:
            given_up.set()


def _faults(plan: FaultPlan) -> Faults:
    return Faults(
        drop=plan.drop,
        duplicate=plan.duplicate,
        corrupt=plan.corrupt,
        delay=plan.delay,
        delay_s=plan.delay_s,
        partitions=tuple(
            Partition(cut["start"], cut["end"], frozenset(cut["side"])) for cut in plan.partitions
        ),
        crash=plan.crash,
    )
