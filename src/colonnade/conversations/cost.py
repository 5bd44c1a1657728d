"""Lets time pass for computing: virtual time when simulated, the work of `network.work_ms` elsewhere."""

from __future__ import annotations

from colonnade.job import Net
from colonnade.net.network import Clock


async def charge(clock: Clock, network: Net, values: float) -> None:
    """Let the time pass that it takes to touch this many stored numbers."""
    await clock.work(network.us_per_call * 1e-6 + values * network.ns_per_value * 1e-9)
