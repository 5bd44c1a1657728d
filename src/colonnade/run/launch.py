"""The three worlds a set of parties can be started in: the same party program in each.

Local and simulated parties share this process; network parties are processes of their own
(`colonnade.run.processes`).
"""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from time import thread_time
from typing import Any, TypeVar

from threadpoolctl import threadpool_limits

from colonnade.errors import Aborted
from colonnade.job import FaultPlan, Job
from colonnade.net.clock import RealClock, VirtualClock, run_virtual
from colonnade.net.endpoint import Endpoint
from colonnade.net.inprocess.local import LocalHub
from colonnade.net.inprocess.simulated import Faults, Link, Partition, SimulatedHub
from colonnade.net.network import Clock, Wire
from colonnade.result import Moment
from colonnade.run.party import Assignment, Party, Share, first_cause
from colonnade.secure.keys import InProcessIdentity

T = TypeVar("T")
Progress = Callable[[Moment], None]


WireTap = Callable[[str, Wire], Wire]
"""Puts something between a party and its wire, e.g. to write down what it says and hears."""


def untapped(party: str, wire: Wire) -> Wire:
    return wire


def run_id(job: Job) -> int:
    """A number that frames of this job carry and frames of another do not."""
    return int.from_bytes(hashlib.sha256(job.digest().encode()).digest()[:4], "little")


def run_local(
    assignments: dict[str, Assignment], progress: Progress, tap: WireTap = untapped
) -> dict[str, Share]:
    """All parties in this process on the real clock."""
    hub = LocalHub()

    def program(heard: Progress) -> Coroutine[Any, Any, dict[str, Share]]:
        clock = RealClock()  # one for all: a pause of one party is a pause of the process
        return _together(
            assignments, lambda me: tap(me, hub.wire(me)), lambda _: clock, evaluation=None, progress=heard
        )

    return _apart(asyncio.run, program, progress)


def run_simulated(
    assignments: dict[str, Assignment], progress: Progress, tap: WireTap = untapped
) -> dict[str, Share]:
    """All parties in this process on a virtual clock."""
    job = next(iter(assignments.values())).job
    net = job.network
    hub = SimulatedHub(
        Link(net.latency_ms / 1e3, (net.bandwidth_mbps or float("inf")) * 1e6),
        _faults(net.faults),
        seed=job.seed,
    )
    parties = sorted(assignments)
    speeds = dict(zip(assignments, net.speeds or [1.0] * len(parties), strict=True))

    def clock(party: str) -> VirtualClock:
        return VirtualClock(speeds[party], job.train.threads)

    # measurement must not cost virtual time, so it has an ideal network of its own
    ideal = SimulatedHub()

    def program(heard: Progress) -> Coroutine[Any, Any, dict[str, Share]]:
        return _together(
            assignments, lambda me: tap(me, hub.wire(me)), clock, evaluation=ideal.wire, progress=heard
        )

    return _apart(run_virtual, program, progress)


async def _together(
    assignments: dict[str, Assignment],
    wire: Callable[[str], Wire],
    clock: Callable[[str], Clock],
    *,
    evaluation: Callable[[str], Wire] | None,
    progress: Progress,
) -> dict[str, Share]:
    names = tuple(sorted(assignments))
    identities = InProcessIdentity.for_all(names)
    job = next(iter(assignments.values())).job
    deadline = job.network.deadline_s

    def endpoint(party: str, line: Callable[[str], Wire], time: Clock) -> Endpoint:
        return Endpoint(party, names, line(party), time, run=run_id(job), deadline=deadline)

    parties = {}
    for party, assignment in assignments.items():
        time = clock(party)
        parties[party] = Party(
            endpoint(party, wire, time),
            identities[party],
            assignment,
            endpoint(party, evaluation, time) if evaluation else None,
            progress=progress,
        )
    began = thread_time()
    try:
        async with asyncio.TaskGroup() as group:
            tasks = {party: group.create_task(program.run()) for party, program in parties.items()}
    except BaseExceptionGroup as errors:
        raise first_cause(errors) from errors
    finally:
        for program in parties.values():
            await program.close()
    shares = {party: task.result() for party, task in tasks.items()}
    for share in shares.values():
        # one thread did everybody's work; nothing tells whose was how much
        share.cpu_seconds = (thread_time() - began) / len(shares)
    return shares


def _apart(
    run: Callable[[Coroutine[Any, Any, T]], T],
    program: Callable[[Progress], Coroutine[Any, Any, T]],
    progress: Progress,
) -> T:
    """Run on a thread of its own, so that it also works where a loop already runs (a notebook).

    An interrupt ends the wait for the thread at once, and what runs there at its next evaluation.
    """
    outcome: Future[T] = Future()
    given_up = threading.Event()

    def heard(moment: Moment) -> None:
        if given_up.is_set():
            raise Aborted("stopped by the user")
        progress(moment)

    def alone() -> None:
        try:
            # small products are faster on one core than handed to a pool of them
            with threadpool_limits(1):
                outcome.set_result(run(program(heard)))
        except BaseException as error:  # raised again where the result is awaited
            outcome.set_exception(error)

    threading.Thread(target=alone, name="federation", daemon=True).start()
    try:
        return outcome.result()
    except BaseException:
        given_up.set()
        raise


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
