"""Deadlines: silence counts, being busy oneself does not."""

from __future__ import annotations

import asyncio
import time
from functools import partial

import pytest

from colonnade.errors import DeadlineExceeded
from colonnade.messages import Seal
from colonnade.net.clock import RealClock
from colonnade.net.endpoint import Endpoint
from colonnade.net.local import LocalHub
from colonnade.net.waiting import BLOCKED, PATIENCE, Waits


def test_time_in_which_this_process_could_not_listen_is_not_the_peers_silence() -> None:
    async def scenario() -> None:
        waits = Waits("a", deadline=0.2)
        waiting = asyncio.ensure_future(waits.until("news", {"b"}, "news"))
        await asyncio.sleep(0)
        time.sleep(0.2 + 1.1 * BLOCKED)  # noqa: ASYNC251  the loop itself is blocked, as by a long product
        await asyncio.sleep(0)  # what is due is done now
        await asyncio.sleep(0)
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


def test_a_party_that_computes_is_waited_for_and_one_that_is_silent_is_not() -> None:
    async def scenario() -> None:
        hub, pair = LocalHub(), ("a", "b")
        a, b = (Endpoint(me, pair, hub.wire(me), RealClock(), run=1, deadline=1.0) for me in pair)
        waiting = asyncio.ensure_future(a.recv(Seal, "b"))
        await b.aside(partial(time.sleep, 2.5))
        await b.send("a", Seal(b"done"))
        assert (await waiting).digest == b"done"
        with pytest.raises(DeadlineExceeded, match="for Seal from b"):
            await a.recv(Seal, "b")  # it is silent again

    asyncio.run(scenario())


def test_signs_of_life_alone_do_not_keep_anybody_waiting_for_ever() -> None:
    async def scenario() -> None:
        waits = Waits("a", deadline=0.02)
        waiting = asyncio.ensure_future(waits.until("news", {"b"}, "news"))
        for _ in range(3 * PATIENCE):
            await asyncio.sleep(0.01)
            waits.extend("b")
        with pytest.raises(DeadlineExceeded, match="for news from b"):
            await waiting

    asyncio.run(scenario())
