"""What computing costs: virtual time in the simulated world, the pause `network.work_ms` in a real one."""

from __future__ import annotations

from colonnade.job import Net
from colonnade.net.network import Clock


async def charge(clock: Clock, network: Net, values: float) -> None:
    """Let the time pass that a kernel takes which touches this many stored numbers."""
    await clock.work(network.us_per_call * 1e-6 + values * network.ns_per_value * 1e-9)
