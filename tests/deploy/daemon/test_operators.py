"""Operators at a terminal, with real daemons: proposals that wait, and which model a service answers with."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from tests.deploy.companies import lay_out, settle
from tests.deploy.consortium import SOURCE, Consortium
from tests.deploy.joined import ids_of

from colonnade.net.stream.port import free_ports

pytest.importorskip("aiohttp")
pytestmark = pytest.mark.timeout(300)  # processes, each of which begins with its imports

TOKEN = "a-token-of-some-length"  # noqa: S105
PAIR = ("bank", "shop")
JOB = """name = "repaid"
algorithm = "vfb2-svrg"
seed = {seed}
[parties]
bank = {{ data = "customers", label = true }}
shop = {{ data = "customers" }}
[train]
epochs = 6
batch = 32
[secure]
labels = "clear"
"""
ASK = 'accept = ["labels", "scores", "two-parties"]\napproval = "ask"\napproval_s = 60\n'


@pytest.fixture
def companies(tmp_path: Path) -> Iterator[tuple[Consortium, str]]:
    """Two daemons: the shop asks its operator, the bank serves scores at the address."""
    consortium = lay_out(tmp_path, PAIR, shop=ASK)
    (port,) = free_ports(1)
    token = tmp_path / "bank" / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    serve = f'[serve]\nlisten = "127.0.0.1:{port}"\nmodel = "repaid"\n'
    serve += 'data = "applicants"\ntoken_file = "token"\n'
    settle(consortium, "bank", more=serve)
    try:
        for name in PAIR:
            consortium.start(name)
        consortium.wait_connected()
        yield consortium, f"http://127.0.0.1:{port}"
    finally:
        consortium.stop()


def eventually(found: Callable[[], Any], seconds: float = 60.0) -> Any:
    """What is found in the end, asked again until it is true."""
    until = time.monotonic() + seconds
    while not (value := found()):
        assert time.monotonic() < until
        time.sleep(0.3)
    return value


def propose(consortium: Consortium, seed: int) -> subprocess.Popen[str]:
    folder = consortium.folder("bank")
    (folder / f"job-{seed}.toml").write_text(JOB.format(seed=seed))
    return subprocess.Popen(
        [sys.executable, "-m", "colonnade", "train", f"job-{seed}.toml", "--json"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(SOURCE), "OPENBLAS_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def waiting(consortium: Consortium) -> dict[str, Any]:
    """The proposal that waits at the shop, as its operator is shown it."""

    def listed() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(consortium.run("shop", "proposals", "list", "--json").stdout)
        return found

    (only,) = eventually(listed)
    return dict(only)


def approved(consortium: Consortium, seed: int) -> str:
    """Propose at the bank, approve at the shop; returns the model."""
    proposer = propose(consortium, seed)
    proposal = waiting(consortium)
    assert (proposal["proposer"], proposal["job"]) == ("bank", "repaid")
    assert "two-parties" in proposal["leaks"]
    shown = consortium.run("shop", "proposals", "show", proposal["run"]).stdout
    assert shown.count("refused after") == 1
    done = consortium.run("shop", "proposals", "approve", proposal["run"])
    assert done.stdout.startswith("approved: repaid"), done.stderr
    out, said = proposer.communicate(timeout=60)
    assert proposer.returncode == 0, said
    model: str = json.loads(out)["model"]
    return model


def test_proposals_and_promotions_by_command(companies: tuple[Consortium, str]) -> None:
    consortium, url = companies
    first = approved(consortium, 1)
    refused = propose(consortium, 2)
    number = waiting(consortium)["run"]
    assert consortium.run("shop", "proposals", "refuse", number, "--reason", "not in May").returncode == 0
    _, said = refused.communicate(timeout=60)
    assert (refused.returncode != 0, "its operator declined: not in May" in said) == (True, True)
    assert "no proposal waits" in consortium.run("shop", "proposals", "list").stdout

    ids = ids_of(consortium.folder("bank") / "applicants.csv", "id")[:5]

    def answered_by() -> tuple[str, list[float]] | None:
        try:
            body = Request(  # noqa: S310  our own address
                f"{url}/v1/score",
                json.dumps({"ids": ids}).encode(),
                {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"},
            )
            with urlopen(body, timeout=60) as answer:  # noqa: S310
                found = json.load(answer)
        except OSError as error:
            if isinstance(error, HTTPError):
                error.close()
            return None  # no session yet
        return found["model"], [row["score"] for row in found["scores"]]

    def answers_with(model: str) -> list[float]:
        found = eventually(lambda: (said := answered_by()) is not None and said[0] == model and said)
        scores: list[float] = found[1]
        return scores

    before = answers_with(first)
    second = approved(consortium, 3)
    assert answers_with(first) == pytest.approx(before)  # a newer model does not take over
    assert consortium.run("bank", "models", "promote", second).stdout.startswith("promoted")
    assert answers_with(second) != pytest.approx(before, abs=1e-6)
    assert consortium.run("bank", "models", "rollback").stdout.startswith("rolled back")
    assert answers_with(first) == pytest.approx(before)
