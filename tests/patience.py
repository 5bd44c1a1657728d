"""Waiting for what a test wants to see, however busy the machine is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

PATIENCE_S = 60.0
"""What does not come in this time never comes; a shorter wait would measure the machine."""


async def until(true: Callable[[], bool]) -> None:
    """Wait until something is true."""
    async with asyncio.timeout(PATIENCE_S):
        while not true():  # noqa: ASYNC110  what is waited for has no event of its own
            await asyncio.sleep(0.02)
