"""Trainings between daemons that are cut off go on to the same weights, or end by an error that names the absent."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.deploy.companies import job, lay_out, running, settled, until
from tests.deploy.consortium import Consortium

from colonnade.deploy import shares, unfinished
from colonnade.deploy.daemon import Daemon
from colonnade.deploy.journal import Interruption, read_journal
from colonnade.deploy.settings import read_settings
from colonnade.errors import ColonnadeError

TERMS: dict[str, Any] = {
    "algorithm": "vfb-saga",
    "train": {"epochs": 12, "batch": 16, "step": 0.1, "l2": 1e-3},
    "checkpoint": {"every": "epoch", "wait_s": 30.0},
}


def weights(daemons: dict[str, Daemon], model: str) -> dict[str, np.ndarray[Any, Any]]:
    return {name: shares.load(d.serving.models, model).arrays["w"] for name, d in daemons.items()}


def interruptions(daemon: Daemon) -> list[str]:
    written, _ = read_journal(daemon.settings.state / "journal.jsonl")
    return [each.what for each in written if isinstance(each, Interruption)]


def has_gates(daemon: Daemon, run: int) -> bool:
    return any(unfinished.folder_of(daemon.settings, run).glob("checkpoints/*.gate"))


async def anew(consortium: Consortium, daemons: dict[str, Daemon], name: str) -> None:
    """Start a daemon again that was closed."""
    daemons[name] = Daemon(read_settings(consortium.config(name)), apart=daemons[name].apart)
    await daemons[name].open()


@pytest.mark.parametrize("away", ["shop", "bank"])
def test_a_daemon_that_comes_back_goes_on_to_the_same_weights(tmp_path: Path, away: str) -> None:
    consortium = lay_out(tmp_path)

    async def main() -> None:
        async with running(consortium) as daemons:
            expected = weights(daemons, (await daemons["bank"].train(job(**TERMS))).model)
            going = asyncio.ensure_future(daemons["bank"].train(job(**TERMS)))
            await until(lambda: bool(daemons[away].runs), 10)
            (run,) = daemons[away].runs
            await until(lambda: has_gates(daemons[away], run), 10)
            await daemons[away].close()
            await until(lambda: daemons["telecom"].runs[run].state == "waiting", 10)
            assert daemons["telecom"].runs[run].shown.startswith("waiting for")
            await anew(consortium, daemons, away)
            for daemon in daemons.values():
                await settled(daemon, 30)
            if away == "shop":
                assert (await going).run == f"{run:08x}"
            else:
                with pytest.raises(ColonnadeError):
                    await going  # whoever waits at a daemon that ends is told so
            found = weights(daemons, f"repaid-{run:08x}")
            assert all(np.array_equal(found[name], expected[name]) for name in found)
            assert interruptions(daemons["telecom"]) == ["cut off", "gone on"]
            # the common rows were found once in each run
            assert all(len(daemon.journal.comparisons) == 4 for daemon in daemons.values())
            assert not list((daemons["shop"].settings.state / "unfinished").iterdir())

    asyncio.run(main())
