"""Starts all parties of a plan in the world that it names: everybody's data in, everybody's share out."""

from __future__ import annotations

from colonnade.run.inprocess import run_local, run_simulated
from colonnade.run.mpi import run_mpi
from colonnade.run.party import Share
from colonnade.run.processes import run_processes
from colonnade.run.world import Launch, World, forget

WORLDS: dict[str, World] = {
    "local": run_local,
    "simulated": run_simulated,
    "network": run_processes,
    "mpi": run_mpi,
}

IN_PROCESS = ("local", "simulated")  # worlds whose parties share this process, and its memory


def launch(order: Launch) -> dict[str, Share]:
    """Run all parties of a plan in the plan's world."""
    shares = WORLDS[order.plan.world](order)
    forget(order.out, order.plan.parties)
    return shares
