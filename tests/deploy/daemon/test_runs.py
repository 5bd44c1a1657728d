"""Trainings that no command waits for: begun, listed, waited for by others, refused."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.deploy.companies import ADA, job, lay_out, settle, settled, together
from tests.patience import until

from colonnade.deploy.daemon import commands, operators, verbs
from colonnade.deploy.daemon.daemon import Daemon
from colonnade.errors import JobError, Refused


def act(daemon: Daemon, request: Any) -> Any:
    """Do what a command asks."""
    return verbs.act(daemon, request, lambda event: None, ADA)


def test_a_detached_training_goes_on_and_is_waited_for_by_who_may_go_away(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path)

    async def program(daemons: dict[str, Daemon]) -> tuple[Any, Any, list[Any]]:
        bank = daemons["bank"]
        begun = await act(bank, commands.TrainRequest(job(), detach=True))
        gone = asyncio.ensure_future(act(bank, commands.WaitRequest(begun.run)))
        await asyncio.sleep(0)
        gone.cancel()
        found = await act(bank, commands.WaitRequest(begun.run))
        for daemon in daemons.values():
            await settled(daemon)
        again = await act(bank, commands.WaitRequest(begun.run))
        assert again == found
        with pytest.raises(JobError, match="no run 12345670 is known here"):
            await act(bank, commands.WaitRequest("12345670"))
        return begun, found, await act(bank, commands.RunsRequest())

    begun, found, listed = together(consortium, program)
    assert (begun.proposer, begun.state) == ("bank", "proposed")
    assert found["model"] == f"repaid-{begun.run}"
    assert found["metrics"]["test_auc"] > 0.7
    assert [(run.run, run.state) for run in listed] == [(begun.run, "done")]


def test_a_detached_training_waits_for_an_operator_who_refuses(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path)
    settle(consortium, "shop", 'accept = ["labels", "scores"]\nmin_rows = 20\napproval = "ask"')

    async def program(daemons: dict[str, Daemon]) -> str:
        bank, shop = daemons["bank"], daemons["shop"]
        begun = await act(bank, commands.TrainRequest(job(), detach=True))
        await until(lambda: bool(shop.approvals.held))
        waiting = asyncio.ensure_future(act(bank, commands.WaitRequest(begun.run)))
        await operators.refuse(shop, begun.run, ADA, "not before June")
        with pytest.raises(Refused) as told:
            await waiting
        return str(told.value)

    assert "not before June" in together(consortium, program)


def test_a_job_that_this_party_itself_refuses_is_refused_at_once(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path)
    settle(consortium, "bank", "train = false")

    async def program(daemons: dict[str, Daemon]) -> None:
        with pytest.raises(Refused, match="may not propose training here"):
            await act(daemons["bank"], commands.TrainRequest(job(), detach=True))

    together(consortium, program)
