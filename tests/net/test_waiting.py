"""Deadlines: silence counts, being busy oneself does not."""

from __future__ import annotations

import asyncio
import time

import pytest

from colonnade.errors import DeadlineExceeded
from colonnade.net.waiting import BLOCKED, Waits


def test_time_in_which_this_process_could_not_listen_is_not_the_peers_silence() -> None:
    async def scenario() -> None:
        waits = Waits("a", deadline=0.2)
        waiting = asyncio.ensure_future(waits.until("news", {"b"}, "news"))
        await asyncio.sleep(0)
        time.sleep(0.2 + 1.1 * BLOCKED)  # noqa: ASYNC251  the loop itself is blocked, as by a long product
        await asyncio.sleep(0.05)
        assert not waiting.done()
        waits.release("news", "b")
        await waiting

    asyncio.run(scenario())


def test_silence_is_named_after_the_deadline() -> None:
    async def scenario() -> None:
        waits = Waits("a", deadline=0.1)
        with pytest.raises(DeadlineExceeded, match=r"a waited 0\.1 s for news from b"):
            await waits.until("news", {"b"}, "news")
        with pytest.raises(DeadlineExceeded, match=r"a waited 0\.3 s for news from any peer"):
            await waits.until("news", {""}, "news", deadlines=3)

    asyncio.run(scenario())
