"""Scores of a session are the sums of the parties' parts; nothing out of turn or out of range is answered."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pytest

from colonnade.arrays import Floats, Rows
from colonnade.conversations.predict import UNDER_WAY, Session, SummedPart
from colonnade.errors import ColonnadeError, ProtocolError
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
            scorer = part if isinstance(part, SummedPart) else SummedPart(part)
            return Session(net, MaskedSum(net, pairs), NAMES[0], scorer)

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


@dataclass(frozen=True, eq=False)
class Slow(SummedPart):
    """Parts that take a while to compute, and how many requests were under way at once."""

    most: list[int] = field(default_factory=lambda: [0, 0])

    async def score(self, session: Session, rows: Rows) -> Floats | None:
        tag = session.next_tag()
        self.most[0] += 1
        self.most[1] = max(self.most)
        await asyncio.sleep(0.02)
        self.most[0] -= 1
        if session.net.me == session.asker:
            return await session.secure.collect(self.part[rows], tag=tag)
        await session.secure.give(self.part[rows], root=session.asker, tag=tag)
        return None


@dataclass(frozen=True, eq=False)
class OneByOne(Slow):
    overlaps: ClassVar[bool] = False


@pytest.mark.parametrize(("kind", "most"), [(Slow, UNDER_WAY), (OneByOne, 1)])
def test_requests_overlap_where_the_model_allows_it(kind: type[Slow], most: int) -> None:
    rng, count = np.random.default_rng(1), 3 * UNDER_WAY
    parts = [kind(rng.normal(size=50)) for _ in NAMES]

    async def ask(session: Session) -> list[Any]:
        return await asyncio.gather(*(session.ask(np.array([place, 0])) for place in range(count)))

    found, *answered = together(parts, ask)
    total = np.sum([each.part for each in parts], axis=0)
    np.testing.assert_allclose(found, [[total[place], total[0]] for place in range(count)], atol=1e-6)
    assert answered == [2 * count, 2 * count]
    assert [each.most[1] for each in parts[1:]] == [most, most]  # who answers keeps a bound of its own


def test_a_request_that_fails_beside_others_ends_the_session() -> None:
    parts = [Slow(np.zeros(50)), Slow(np.zeros(50)), Slow(np.full(50, np.nan))]

    async def ask(session: Session) -> list[Any]:
        return await asyncio.gather(*(session.ask(np.array([place])) for place in range(4)))

    with pytest.raises(ColonnadeError):
        together(parts, ask)
