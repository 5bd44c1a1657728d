"""A service whose sessions fail tries again ever later, and says so in one line."""

from __future__ import annotations

import asyncio
import logging
from types import SimpleNamespace
from typing import Any, cast

import pytest

from colonnade.deploy.daemon.daemon import Daemon
from colonnade.deploy.http.open_session import LONGEST_S, OpenSession
from colonnade.deploy.settings import Serve
from colonnade.errors import Refused

HERE = "colonnade.deploy.http.open_session"


def test_a_session_that_is_refused_is_tried_ever_more_rarely(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An hour of refusals is 19 trials instead of 3,600; after a session that worked it begins anew."""
    pauses: list[float] = []
    outcomes = iter([*["bank refused"] * 12, "", *["bank refused"] * 3])

    async def score(*given: Any, **more: Any) -> None:
        if (said := next(outcomes, None)) is None:
            raise asyncio.CancelledError
        if said:
            raise Refused(said)

    async def rest(self: OpenSession, pause: float) -> None:
        pauses.append(pause)

    async def nothing(self: OpenSession, model: str) -> None:
        """Watch no scores."""

    monkeypatch.setattr(OpenSession, "_rest", rest)
    monkeypatch.setattr(OpenSession, "_monitor", nothing)
    monkeypatch.setattr(f"{HERE}.operators.pin", lambda daemon, name: SimpleNamespace(model=name))
    monkeypatch.setattr(f"{HERE}.stored_shares.load", lambda models, model: None)
    serving = SimpleNamespace(models="models", listeners=[])
    daemon = SimpleNamespace(serving=serving, score=score, no_scores=None)
    caplog.set_level(logging.WARNING, "colonnade.party")

    async def served() -> None:
        session = OpenSession(cast(Daemon, daemon), Serve("127.0.0.1:1", "repaid"))
        with pytest.raises(asyncio.CancelledError):
            await session._keep()

    asyncio.run(served())
    doubled = [2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, *[LONGEST_S] * 4]
    assert pauses == [*doubled, 2.0, 4.0, 8.0]
    assert sum(doubled[:8]) + LONGEST_S * 10 > 3500
    assert daemon.no_scores == "bank refused"
    assert [each.getMessage() for each in caplog.records] == ["no session: bank refused"]
