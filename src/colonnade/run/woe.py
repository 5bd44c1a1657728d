"""Weighs the columns of all parties in any world: everybody's data in, everybody's weighed columns out."""

from __future__ import annotations

import asyncio
import hashlib
import tempfile
from collections.abc import Callable, Coroutine, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from colonnade.data.prepare.party_data import PartyData
from colonnade.disk import on_disk
from colonnade.net.clock import RealClock, VirtualClock, run_virtual
from colonnade.net.endpoint import Endpoint
from colonnade.net.local import LocalHub
from colonnade.net.network import Clock
from colonnade.net.simulated import Link, SimulatedHub
from colonnade.run.inprocess import Wires, apart, gather_parties
from colonnade.run.party import Party
from colonnade.run.processes import GRACE_S, collect, lay_out_parties, start, stop_all, wait
from colonnade.run.woe_party import Weighing, WeighingTerms, weigh
from colonnade.run.woe_process import OUTCOME, WeighingInstructions
from colonnade.secure.keys import InProcessIdentity

Data = Mapping[str, PartyData]


def weigh_all(terms: WeighingTerms, data: Data) -> dict[str, Weighing]:
    """Weigh everybody's columns in the world that the terms name."""
    match terms.world:
        case "local" | "mpi":  # the first rank has all columns anyway, and hands them out afterwards
            clock = RealClock()
            hub = LocalHub()
            return apart(asyncio.run, lambda _: _in_process(terms, data, hub.wire, lambda _: clock))
        case "simulated":
            net = terms.network
            link = Link(net.latency_ms / 1e3, (net.bandwidth_mbps or float("inf")) * 1e6)
            virtual = SimulatedHub(link, seed=terms.seed)
            return apart(
                run_virtual, lambda _: _in_process(terms, data, virtual.wire, lambda _: VirtualClock())
            )
        case "network":
            return _as_processes(terms, data)


def with_evidence(data: Data, weighed: Mapping[str, Weighing]) -> dict[str, PartyData]:
    """Return everybody's data, to be prepared as the weight of evidence of its columns."""
    return {
        party: replace(each, recipe=replace(each.recipe, woe=tuple(weighed[party].columns)))
        for party, each in data.items()
    }


def _run_id(terms: WeighingTerms) -> int:
    return int.from_bytes(hashlib.sha256(terms.digest().encode()).digest()[:4], "little")


async def _in_process(
    terms: WeighingTerms, data: Data, wire: Wires, clock: Callable[[str], Clock]
) -> dict[str, Weighing]:
    names = tuple(sorted(data))
    identities = InProcessIdentity.for_all(names)
    run, deadline = _run_id(terms), terms.network.deadline_s

    async def program(name: str, net: Endpoint) -> Weighing:
        async with Party(identities[name], (net,)) as party:
            own = data[name]
            return await weigh(party, net, own.train, own.recipe.categorical, terms)

    nets = {name: Endpoint(name, names, wire(name), clock(name), run=run, deadline=deadline) for name in data}
    programs: dict[str, Coroutine[Any, Any, Weighing]] = {n: program(n, net) for n, net in nets.items()}
    return await gather_parties(programs)


def _as_processes(terms: WeighingTerms, data: Data) -> dict[str, Weighing]:
    """Return what every party finds, each as a process with its own columns, key and certificate, over mutual
    TLS."""
    with ExitStack() as stack:
        out = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="colonnade-")))
        with tempfile.TemporaryDirectory(prefix="colonnade-authority-") as authority, on_disk(out):
            folders, addresses = lay_out_parties(data, out, Path(authority))
            for party, folder in folders.items():
                told = WeighingInstructions(party=party, terms=terms, run=_run_id(terms), addresses=addresses)
                (folder / "instructions.json").write_bytes(msgspec.json.encode(told))
        parties = {party: start(folder, "colonnade.run.woe_process") for party, folder in folders.items()}
        for process in parties.values():
            if process.stdout is not None:  # started with a pipe, which stays empty
                stack.enter_context(process.stdout)
        stack.callback(stop_all, list(parties.values()))
        wait(parties, terms.network.deadline_s + GRACE_S)
        return collect(
            folders, parties, lambda f: msgspec.json.decode((f / OUTCOME).read_bytes(), type=Weighing)
        )
