"""Trainings between daemons that are cut off go on to the same weights, or end by the name of who is away."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.deploy.companies import comparisons, job, lay_out, running, settled
from tests.deploy.consortium import SOURCE, Consortium
from tests.patience import until

from colonnade.deploy.books import unfinished
from colonnade.deploy.books.journal import Interruption, read_journal
from colonnade.deploy.daemon.daemon import Daemon
from colonnade.deploy.models import stored_shares
from colonnade.deploy.settings import read_settings
from colonnade.deploy.terms.terms import Terms
from colonnade.errors import ColonnadeError
from colonnade.messages import CutOff, Echo, Message, Rejoin

TERMS: dict[str, Any] = {
    "algorithm": "vfb-saga",
    "train": {"epochs": 16, "batch": 16, "step": 0.1, "l2": 1e-3},
    "checkpoint": {"every": "epoch"},
}


def weights(daemons: dict[str, Daemon], model: str) -> dict[str, np.ndarray[Any, Any]]:
    stored = {
        name: stored_shares.load(daemon.serving.models, model).arrays for name, daemon in daemons.items()
    }
    return {f"{name}: {each}": array for name, arrays in stored.items() for each, array in arrays.items()}


def interruptions(daemon: Daemon) -> list[str]:
    written, _ = read_journal(daemon.settings.state / "journal.jsonl")
    return [each.what for each in written if isinstance(each, Interruption)]


def has_gates(daemon: Daemon, run: int) -> bool:
    return any(unfinished.folder_of(daemon.settings, run).glob("checkpoints/*.gate"))


async def cut_off(daemons: dict[str, Daemon], name: str, terms: Terms) -> tuple[asyncio.Future[Any], int]:
    """Begin a training at the bank and stop a daemon once it has a checkpoint; also says which run it is."""
    for daemon in daemons.values():
        await settled(daemon)
    going = asyncio.ensure_future(daemons["bank"].train(terms))
    await until(lambda: bool(daemons[name].runs))
    (run,) = daemons[name].runs
    await until(lambda: has_gates(daemons[name], run))
    await daemons[name].close()
    return going, run


async def anew(consortium: Consortium, daemons: dict[str, Daemon], name: str) -> None:
    """Start a daemon again that was closed."""
    daemons[name] = Daemon(read_settings(consortium.config(name)), apart=daemons[name].apart)
    await daemons[name].open()


TREES = {
    "algorithm": "secureboost",
    "train": {"epochs": 16},
    "trees": {"bits": 6},
    "secure": {"labels": "clear"},
}
NOISY = {
    "algorithm": "split",
    "train": {"epochs": 8, "batch": 64, "step": 0.1},
    "privacy": {"mechanism": "gradient", "epsilon": 4.0},
}


@pytest.mark.parametrize(
    ("away", "terms"),
    [
        ("shop", {}),
        pytest.param("bank", {}, marks=pytest.mark.slow),
        pytest.param("shop", TREES, marks=pytest.mark.slow),
        ("shop", NOISY),
    ],
)
def test_a_daemon_that_comes_back_goes_on_to_the_same_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, away: str, terms: dict[str, Any]
) -> None:
    monkeypatch.setattr("colonnade.conversations.gates.secrets.token_bytes", bytes)  # one key for both runs
    asked = job(**{**TERMS, **terms})
    consortium = lay_out(tmp_path)

    async def main() -> None:
        async with running(consortium) as daemons:
            whole = await daemons["bank"].train(asked)
            expected = weights(daemons, whole.model)
            going, run = await cut_off(daemons, away, asked)
            await until(lambda: daemons["telecom"].runs[run].state == "waiting")
            assert daemons["telecom"].runs[run].shown.startswith("waiting for")
            await anew(consortium, daemons, away)
            for daemon in daemons.values():
                await settled(daemon)
            if away == "shop":
                assert (await going).run == f"{run:08x}"
            else:
                with pytest.raises(ColonnadeError):
                    await going  # whoever waits at a daemon that ends is told so
            found = weights(daemons, f"repaid-{run:08x}")
            assert all(np.array_equal(found[name], expected[name]) for name in expected)
            spent = [each.epsilon for each in daemons["bank"].books.ledger.entries()]
            assert spent == [whole.epsilon, whole.epsilon]  # nothing was told twice
            assert interruptions(daemons["telecom"]) == ["cut off", "gone on"]
            # the common rows were found once in each run
            assert all(comparisons(daemon) == 4 for daemon in daemons.values())
            assert not list((daemons["shop"].settings.state / "unfinished").iterdir())
            # the books have both sessions: all that this daemon ever sent is in one run or the other
            both = daemons["telecom"].journal.runs
            assert [each.sessions for each in both] == [1, 2]
            assert [each.sessions for each in daemons[away].journal.runs] == [1, 2]
            for peer, sent in daemons["telecom"].mux.sent.items():
                booked = sum(sum(each.sent[peer].values()) for each in both)
                assert 0.97 * sent < booked < sent

    asyncio.run(main())


def test_a_daemon_that_is_being_stopped_says_of_no_run_that_it_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    consortium = lay_out(tmp_path)

    async def main() -> None:
        async with running(consortium) as daemons:
            shop, said = daemons["shop"], list[Message]()
            hang_up = shop.peers.close

            async def hear_more_and_hang_up() -> None:
                """What the bank says reaches the shop after it has left its runs and before its lines end."""
                assert not shop.runs
                (left,) = unfinished.read_all(shop.settings)
                with monkeypatch.context() as patch:
                    patch.setattr(shop.peers, "send", record)
                    await shop.books.resuming.cut_off("bank", CutOff(left.run, left.run, ""))
                    await shop.books.resuming.rejoin("bank", Rejoin(left.run, 16, left.terms.digest()))
                await hang_up()

            async def record(peer: str, message: Message) -> None:
                if not isinstance(message, Echo):  # round trips are measured all the time
                    said.append(message)

            monkeypatch.setattr(shop.peers, "close", hear_more_and_hang_up)
            going, run = await cut_off(daemons, "shop", job(**TERMS))
            assert said == []
            await anew(consortium, daemons, "shop")
            assert (await going).run == f"{run:08x}"

    asyncio.run(main())


@pytest.mark.parametrize("away", ["shop", "bank"])
def test_after_the_limit_every_live_party_ends_by_the_name_of_the_absent(tmp_path: Path, away: str) -> None:
    consortium = lay_out(tmp_path)
    terms = job(**{**TERMS, "checkpoint": {"every": "epoch", "wait_s": 1.0}})

    async def main() -> None:
        async with running(consortium) as daemons:
            going, run = await cut_off(daemons, away, terms)
            live = [daemon for name, daemon in daemons.items() if name != away]
            for daemon in live:
                await settled(daemon)
                assert f"{away} is away" in daemon.journal.runs[-1].reason
                assert "checkpoint.wait_s = 1 s" in daemon.journal.runs[-1].reason
                assert not unfinished.read_all(daemon.settings)
            with pytest.raises(ColonnadeError):
                await going
            # who comes back later hears that it is over
            await anew(consortium, daemons, away)
            await settled(daemons[away])
            assert f"(while {away} was away)" in daemons[away].journal.runs[-1].reason
            assert not unfinished.read_all(daemons[away].settings)
            assert run not in daemons[away].runs

    asyncio.run(main())


def test_other_data_than_before_does_not_go_on(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path)

    async def main() -> None:
        async with running(consortium) as daemons:
            going, _ = await cut_off(daemons, "shop", job(**TERMS))
            file = consortium.folder("shop") / "customers.csv"
            first, *rows = file.read_text().splitlines()
            pairs = [row.split(",") for row in rows]
            file.write_text("\n".join([first, *(f"{id_},{float(x) ** 2}" for id_, x in pairs)]) + "\n")
            await anew(consortium, daemons, "shop")
            with pytest.raises(ColonnadeError, match="shop"):
                await going
            for daemon in daemons.values():
                await settled(daemon)
            assert "is of other data than there is now" in daemons["shop"].journal.runs[-1].reason

    asyncio.run(main())


def test_a_share_that_the_others_have_kept_is_kept_by_who_was_killed_before_it_could(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path)

    async def main() -> None:
        async with running(consortium) as daemons:
            manifest = await daemons["bank"].train(job(**TERMS))
            await settled(daemons["shop"])
            await daemons["shop"].close()
            settings, models = daemons["shop"].settings, daemons["shop"].serving.models
            expected = stored_shares.load(models, manifest.model).arrays["w"]
            # as it was between writing the share and keeping it
            (models / manifest.model).rename(models / f".{manifest.model}.part")
            terms, run = manifest.terms, int(manifest.run, 16)
            unfinished.Unfinished(
                run=run, proposer="bank", terms=terms, minimum=20, timeline=False, began=time.time()
            ).write(settings)
            await anew(consortium, daemons, "shop")
            await settled(daemons["shop"])
            assert daemons["shop"].journal.runs[-1].state == "done"
            assert np.array_equal(stored_shares.load(models, manifest.model).arrays["w"], expected)

    asyncio.run(main())


@pytest.mark.slow
@pytest.mark.timeout(400)  # a dozen processes, each of which begins with its imports
def test_killed_processes_and_daemons_go_on_and_so_does_the_command(tmp_path: Path) -> None:
    consortium = lay_out(tmp_path)
    text = JOB.format(parties="".join(f'{n} = {{ data = "customers", label = {LABEL[n]} }}\n' for n in LABEL))
    (consortium.folder("bank") / "job.toml").write_text(text)
    try:
        for name in consortium.names:
            consortium.start(name)
        consortium.wait_connected()
        expected = trained(consortium, lambda: None)
        assert trained(consortium, partial(kill_worker, consortium, "telecom")) == expected
        assert trained(consortium, partial(kill_daemon, consortium, "bank")) == expected
        assert "cut off" in consortium.log("telecom")
    finally:
        consortium.stop()


LABEL = {"bank": "true", "shop": "false", "telecom": "false"}
JOB = """name = "repaid"
algorithm = "vfb-saga"
[parties]
{parties}
[train]
epochs = 60
batch = 8
step = 0.05
l2 = 1e-3
[secure]
labels = "clear"
[network]
deadline_s = 60
[checkpoint]
every = "epoch"
wait_s = 120
"""


def trained(consortium: Consortium, strike: Callable[[], None]) -> dict[str, str]:
    """Train by command, strike once all have a checkpoint, and return the digest of everybody's weights."""
    command = [sys.executable, "-m", "colonnade", "train", "job.toml", "--json"]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "OPENBLAS_NUM_THREADS": "1"}
    process = subprocess.Popen(
        command, cwd=consortium.folder("bank"), env=environment, stdout=subprocess.PIPE, text=True
    )
    try:
        gates = [f"{name}/runs/unfinished/*/checkpoints/*.gate" for name in consortium.names]
        while process.poll() is None and not all(any(consortium.root.glob(path)) for path in gates):
            time.sleep(0.01)
        strike()
        told, _ = process.communicate(timeout=120)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0
    model = json.loads(told)["model"]
    found = {}
    for name in consortium.names:
        models = consortium.folder(name) / "runs" / "models"
        until = time.monotonic() + 60
        while not (models / model).is_dir() and time.monotonic() < until:
            time.sleep(0.05)
        found[name] = hashlib.sha256(stored_shares.load(models, model).arrays["w"].tobytes()).hexdigest()
    return found


def kill_worker(consortium: Consortium, name: str) -> None:
    """Kill -9 the process of a training."""
    daemon = consortium.processes[name].pid
    for child in Path(f"/proc/{daemon}/task/{daemon}/children").read_text().split():
        os.kill(int(child), signal.SIGKILL)


def kill_daemon(consortium: Consortium, name: str) -> None:
    """Kill -9 a daemon, and start it again a second later."""
    consortium.processes[name].kill()
    consortium.processes[name].wait()
    time.sleep(1.0)
    consortium.start(name)
