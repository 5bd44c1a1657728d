"""Trainings in processes of their own: the same result, limits that hold, and a daemon that goes on."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest
from tests.deploy.companies import comparisons, job, lay_out, running, settle, settled
from tests.patience import until

from colonnade.deploy.daemon.daemon import Daemon
from colonnade.deploy.models import stored_shares
from colonnade.deploy.process.worker_process import WorkerSession
from colonnade.errors import ColonnadeError


def workers(daemon: Daemon) -> list[int]:
    """The processes of a daemon's runs."""
    sessions = [run.session for run in daemon.runs.values()]
    return [s._process.pid for s in sessions if isinstance(s, WorkerSession) and s._process is not None]


async def until_training(daemon: Daemon) -> None:
    await until(lambda: any(run.session.told for run in daemon.runs.values()))


def test_a_training_apart_is_the_same_training_and_a_killed_one_ends_by_name(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path)
    terms = job(train={"epochs": 3, "batch": 32, "l2": 1e-3})

    async def main() -> None:
        async with running(consortium, apart=True) as daemons:
            events: list[str] = []
            manifest = await daemons["bank"].train(terms, lambda event: events.append(event.what))
            assert {"aligned", "training"} <= set(events)
            assert manifest.metrics["objective"] < 0.69
            held = [stored_shares.load(daemon.serving.models, manifest.model) for daemon in daemons.values()]
            assert all(np.isfinite(share.arrays["w"]).all() for share in held)
            for daemon in daemons.values():
                await settled(daemon)
            # comparisons are in the daemons' journals, though their processes made them
            assert all(comparisons(daemon) == 2 for daemon in daemons.values())

            long = job(train={"epochs": 5000, "batch": 8, "l2": 1e-3})
            going = asyncio.ensure_future(daemons["bank"].train(long))
            await until_training(daemons["shop"])
            (pid,) = workers(daemons["shop"])
            os.kill(pid, signal.SIGKILL)
            with pytest.raises(ColonnadeError, match="shop"):
                await going
            for daemon in daemons.values():
                await settled(daemon)
            assert "ended with signal 9" in daemons["shop"].journal.latest[-1]
            assert all(len(daemon.peers.controls) == 2 for daemon in daemons.values())

    asyncio.run(main())


def test_a_process_that_ends_without_a_word_is_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its status says that all was well, and there is no model: that is an error, which names the run."""
    consortium = lay_out(tmp_path, ("bank", "shop"))
    monkeypatch.setattr("colonnade.deploy.process.worker_process.sys.executable", shutil.which("true"))

    async def main() -> str:
        async with running(consortium, apart=True) as daemons:
            with pytest.raises(ColonnadeError) as told:
                await daemons["bank"].train(job(("bank", "shop")))
            for daemon in daemons.values():
                await settled(daemon)
            assert all(len(daemon.peers.controls) == 1 for daemon in daemons.values())
            return str(told.value) + "; ".join(daemons["shop"].journal.latest)

    told = asyncio.run(main())
    assert "ended with status 0; its limits are" in told


@pytest.mark.slow
@pytest.mark.parametrize("limit", ["run_memory_mb = 60", "run_cpu_s = 2"])
def test_a_process_over_its_limit_ends_the_run_and_not_the_daemon(tmp_path: Path, limit: str) -> None:
    consortium = lay_out(tmp_path)
    settle(consortium, "shop", "", f"[limits]\n{limit}\n")
    long = job(train={"epochs": 5000, "batch": 8, "l2": 1e-3, "tolerance": 0.0})

    async def main() -> None:
        async with running(consortium, apart=True) as daemons:
            with pytest.raises(ColonnadeError, match="shop"):
                await daemons["bank"].train(long)
            await settled(daemons["shop"])
            told = "; ".join(daemons["shop"].journal.latest)
            assert f"limits.{limit}" in told, told
            assert daemons["shop"].peers.controls.keys() == {"bank", "telecom"}

    asyncio.run(main())
