"""What label holders show others of losses: as often as was declared, and not once more."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.deploy.companies import job

from colonnade.deploy.runs.run import Followed
from colonnade.deploy.runs.runs import Runs
from colonnade.deploy.session.booking import most_losses
from colonnade.messages import Progress
from colonnade.result import Moment


def moment(epoch: int, loss: float) -> Moment:
    return Moment(seconds=1.0, virtual_seconds=None, epoch=epoch, rounds=epoch, bytes=0, loss=loss)


@pytest.mark.parametrize(("epochs", "every", "most"), [(6, 1, 8), (6, 4, 4), (6, 0.5, 14), (6, 0, 2)])
def test_no_loss_more_is_shown_than_is_declared(epochs: int, every: float, most: int) -> None:
    terms = job(train={"epochs": epochs, "evaluate_every": every}, use={"loss_seen_by": "all"})
    assert most_losses(terms) == most
    sent: list[float | None] = []

    async def send(peer: str, said: Progress) -> None:
        sent.append(said.loss)

    def spawn(work: Coroutine[Any, Any, None]) -> None:
        asyncio.run(work)

    session = SimpleNamespace(peers=("shop",))
    run = SimpleNamespace(trains=terms, followed=Followed(), session=session, id=1, number="00000001")
    runs = SimpleNamespace(peers=SimpleNamespace(send=send), spawn=spawn)
    for turn in range(2):  # a session that goes on measures the same again
        for number in range(most):
            Runs.report(cast(Runs, runs), cast(Any, run), moment(number % epochs, 1.0 + number))
        assert len(sent) == (turn + 1) * most
        assert None not in sent
    Runs.report(cast(Runs, runs), cast(Any, run), moment(epochs, 0.5))
    assert sent[-1] is None
