"""What is wanted of a training beyond its end holds after restarts: a gate for its model, and a time."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.deploy.companies import ADA, connected, job, lay_out, running, settled
from tests.deploy.negotiate.test_approvals import ASK, waiting
from tests.deploy.negotiate.test_waiting import files, operator_is_asked, started_again
from tests.deploy.runs.test_resuming import TERMS, has_gates
from tests.patience import until

from colonnade.deploy.daemon import operators, verbs
from colonnade.deploy.daemon.aims import Aim
from colonnade.deploy.daemon.commands import TrainRequest, WaitRequest
from colonnade.deploy.daemon.daemon import Daemon
from colonnade.deploy.daemon.views import RunView
from colonnade.deploy.models.gate import Gate
from colonnade.deploy.terms.terms import Terms
from colonnade.errors import ColonnadeError, DeadlineExceeded, GoesOn


async def begin(bank: Daemon, terms: Terms, **wanted: Any) -> str:
    """Propose a training that no command waits for; returns its number."""
    begun = await verbs.act(bank, TrainRequest(terms, detach=True, **wanted), lambda event: None, ADA)
    assert isinstance(begun, RunView)
    return begun.run


async def result(bank: Daemon, run: str, timeout: float | None = None) -> Any:
    """Wait for a training as `runs wait` does."""
    return await verbs.act(bank, WaitRequest(run, timeout), lambda event: None, ADA)


def test_a_gate_outlives_the_proposer_while_operators_are_asked(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path, shop=ASK)

    async def main() -> None:
        async with running(consortium) as daemons:
            run = await begin(daemons["bank"], job(), gate=Gate("auc"))
            await until(lambda: bool(files(tmp_path, "bank/runs/proposed")))
            bank = await started_again(daemons, "bank")
            await connected(daemons)
            await until(lambda: operator_is_asked(bank))
            await operators.approve(daemons["shop"], run, ADA)
            assert (await result(bank, run))["gate"].startswith(f"promoted by {ADA}")
            assert bank.serving.promoted("repaid") == f"repaid-{run}"
            assert not files(tmp_path, "bank/runs/aims")

    asyncio.run(main())


def test_a_gate_outlives_the_proposer_while_it_trains(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path)
    terms = job(**{**TERMS, "checkpoint": {"every": "epoch", "wait_s": 60.0}})

    async def main() -> None:
        async with running(consortium) as daemons:
            run = await begin(daemons["bank"], terms, gate=Gate("auc"))
            await until(lambda: has_gates(daemons["bank"], int(run, 16)))
            bank = await started_again(daemons, "bank")
            assert (await result(bank, run))["gate"].startswith(f"promoted by {ADA}")
            for daemon in daemons.values():
                await settled(daemon)

    asyncio.run(main())


def test_a_model_is_put_to_use_that_was_stored_just_before_the_end(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path)

    async def main() -> None:
        async with running(consortium) as daemons:
            run = await begin(daemons["bank"], job())
            await result(daemons["bank"], run)
            aim = Aim(run=run, name="repaid", who=ADA, gate=Gate("auc"))
            aim.write(daemons["bank"].settings.state)
            bank = await started_again(daemons, "bank")
            await until(lambda: bank.serving.promoted("repaid") == f"repaid-{run}")

    asyncio.run(main())


def test_a_time_outlives_the_proposer(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path, shop=ASK)

    async def main() -> None:
        async with running(consortium) as daemons:
            run = await begin(daemons["bank"], job(), timeout=3.0)
            await waiting(daemons["shop"])
            await until(lambda: bool(files(tmp_path, "bank/runs/proposed")))
            bank = await started_again(daemons, "bank")
            with pytest.raises(DeadlineExceeded, match="repaid was not over within 3 s, and was ended"):
                await result(bank, run)
            await until(lambda: not daemons["shop"].approvals.held)
            assert not files(tmp_path, "bank/runs/proposed")

    asyncio.run(main())


def test_whoever_waits_is_told_how_a_run_ended_also_after_a_restart(tmp_path: Path) -> None:
    """Away is 4, so that a script tries again; that the run still goes on is another error with that code."""
    consortium = lay_out(tmp_path)

    async def main() -> None:
        async with running(consortium) as daemons:
            terms = job(**{**TERMS, "checkpoint": {"every": "epoch", "wait_s": 1.0}})
            run = await begin(daemons["bank"], terms)
            with pytest.raises(GoesOn, match="it goes on"):
                await result(daemons["bank"], run, timeout=0.01)
            await until(lambda: has_gates(daemons["shop"], int(run, 16)))
            await daemons["shop"].close()
            for _ in range(2):
                with pytest.raises(ColonnadeError) as told:
                    await result(daemons["bank"], run)
                assert told.value.exit_code == 4, told.value
                assert not isinstance(told.value, GoesOn)
                await started_again(daemons, "bank")

    asyncio.run(main())
