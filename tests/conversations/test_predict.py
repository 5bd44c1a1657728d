"""Scores of a session are the sums of the parties' parts; nothing out of turn or out of range is answered."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import pytest

from colonnade.conversations.predict import Session, SummedPart
from colonnade.errors import ProtocolError
from colonnade.messages import Score
from colonnade.net.clock import RealClock
from colonnade.net.endpoint import Endpoint
from colonnade.net.local import LocalHub
from colonnade.secure.masked import MaskedSum

NAMES = ("ant", "bee", "cat")
Asker = Callable[[Session], Awaitable[Any]]


def together(parts: list[Any], ask: Asker) -> list[Any]:
    """Run a session in which the first party asks; returns what it got, and how many rows others answered."""

    async def main() -> list[Any]:
        hub = LocalHub()
        nets = [Endpoint(me, NAMES, hub.wire(me), RealClock(), run=1, deadline=60) for me in NAMES]

        def session(net: Endpoint, part: Any) -> Session:
            pairs = {
                peer: hashlib.sha256(repr(sorted((net.me, peer))).encode()).digest() for peer in net.peers
            }
            return Session(net, MaskedSum(net, pairs), NAMES[0], SummedPart(part))

        async def first() -> Any:
            mine = session(nets[0], parts[0])
            found = await ask(mine)
            await mine.end()
            return found

        others = [session(net, part).answer() for net, part in zip(nets[1:], parts[1:], strict=True)]
        try:
            return await asyncio.gather(first(), *others)
        finally:
            for net in nets:
                await net.close()

    return asyncio.run(main())


@pytest.mark.parametrize("shape", [(50,), (50, 3)])
def test_scores_are_sums_of_parts(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    parts = [rng.normal(size=shape) for _ in NAMES]

    async def ask(session: Session) -> list[Any]:
        requests = [np.array([3]), np.array([7, 7, 49, 0]), np.arange(50)]
        return [(rows, await session.ask(rows)) for rows in requests]

    found, *asked = together(parts, ask)
    for rows, scores in found:
        assert np.allclose(scores, sum(parts)[rows], atol=1e-8)  # type: ignore[index]
    assert asked == [55, 55]


def test_a_row_that_is_not_common_ends_the_session() -> None:
    parts = [np.zeros(80), np.zeros(50), np.zeros(50)]

    async def ask(session: Session) -> Any:
        return await session.ask(np.array([60]))

    with pytest.raises(ProtocolError, match="ant sent Score 0 with rows of values"):
        together(parts, ask)


def test_a_request_out_of_turn_ends_the_session() -> None:
    parts = [np.zeros(50)] * 3

    async def ask(session: Session) -> None:
        await session.net.broadcast(Score(5, np.array([1])))

    with pytest.raises(ProtocolError, match="asks out of turn"):
        together(parts, ask)
