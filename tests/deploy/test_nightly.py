"""A nightly job end to end, as its script runs it: a database, two people, a gate, scores, a journal.

The bank's rows lie in a database. Its script proposes the job and waits for no terminal; two people of the
shop approve it, once for many nights. The model takes the place of the one in use if it is better. Scores go
back into the database, and everything is in both journals, which are exported and verified.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.deploy.consortium import Consortium, people, write_csv
from tests.patience import PATIENCE_S

from colonnade.client import DaemonClient
from colonnade.net.stream.port import free_ports

pytest.importorskip("aiohttp")
pytest.importorskip("adbc_driver_sqlite", reason="pip install 'colonnade[sqlite]'")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(shutil.which("jq") is None, reason="the script of the example needs jq"),
]

SCRIPT = Path(__file__).parents[2] / "examples" / "deploy" / "nightly" / "nightly.sh"
ROWS, APPLICANTS = 1400, 40
JOB = """name = "credit"
algorithm = "lbfgs"
purpose = "credit scoring of applicants"
contract = "2026/17"
contact = "anna@bank.example"
expires = "2099-12-31"
runs_of_a_job = 3
[parties]
bank = { data = "customers", label = true }
shop = { data = "customers" }
[align]
changed = "accept"
[secure]
labels = "blind"
"""
AT_BANK = """[data.customers]
uri = "sqlite:crm.db"
table = "customers"
id = "id"
label = "repaid"
[data.applicants]
uri = "sqlite:crm.db"
table = "applicants"
id = "id"
"""
AT_SHOP = """[data.customers]
file = "customers.csv"
id = "id"
[data.applicants]
file = "applicants.csv"
id = "id"
"""
POLICY = """min_rows = 20
approval = "ask"
approvals = 2
changed = "accept"
purpose = ["credit scoring of applicants"]
contract = ["2026/17"]
"""


def fill(root: Path, customers: int) -> None:
    """Write the bank's database with this many customers, and the shop's files."""
    ids, X, y = people(ROWS + APPLICANTS)
    known = range(customers)
    asked = range(ROWS, ROWS + APPLICANTS)
    with sqlite3.connect(root / "bank" / "crm.db") as database:
        database.execute("drop table if exists customers")
        database.execute("drop table if exists applicants")
        database.execute("create table customers (id text, income real, age real, repaid text)")
        database.execute("create table applicants (id text, income real, age real)")
        rows = [(ids[i], X[i, 0], X[i, 1], y[i]) for i in known]
        database.executemany("insert into customers values (?, ?, ?, ?)", rows)
        database.executemany(
            "insert into applicants values (?, ?, ?)", [(ids[i], X[i, 0], X[i, 1]) for i in asked]
        )
    database.close()
    for name, chosen in (("customers", known), ("applicants", asked)):
        held = {column: [repr(float(X[i, k])) for i in chosen] for column, k in (("visits", 2), ("calls", 3))}
        write_csv(root / "shop" / f"{name}.csv", [ids[i] for i in chosen], held)


def companies(root: Path) -> tuple[Consortium, dict[str, DaemonClient]]:
    """Two daemons, and two people of the shop who may approve."""
    consortium = Consortium(root, ("bank", "shop"))
    (port,) = free_ports(1)
    more = f'[control]\nlisten = "127.0.0.1:{port}"\n'
    clients = {}
    for name in ("ada", "ben"):
        token = f"a-token-of-{name}-that-is-long"
        (root / "shop" / name).write_text(token)
        (root / "shop" / name).chmod(0o600)
        more += f'[people.{name}]\ntoken_file = "{name}"\nroles = ["approver"]\n'
        clients[name] = DaemonClient(f"http://127.0.0.1:{port}", token=token)
    consortium.settle("bank", AT_BANK, 'min_rows = 20\nchanged = "accept"')
    consortium.settle("shop", AT_SHOP, POLICY, more)
    (root / "bank" / "credit.toml").write_text(JOB)
    fill(root, ROWS - 100)
    return consortium, clients


def night(consortium: Consortium) -> subprocess.Popen[str]:
    """Start the script of the example, with the commands of this environment."""
    folder = consortium.root / "bin"
    folder.mkdir(exist_ok=True)
    command = folder / "colonnade"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m colonnade "$@"\n')
    command.chmod(0o755)
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    environment = {**consortium._environment("bank"), "PATH": path}
    return subprocess.Popen(
        ["/bin/sh", str(SCRIPT), str(consortium.folder("bank"))],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def scores(root: Path) -> dict[str, float]:
    """The scores that are in the database by now."""
    with sqlite3.connect(root / "bank" / "crm.db") as database:
        found = dict(database.execute("select id, probability from scores"))
    database.close()
    return found


def approved(clients: dict[str, DaemonClient], night: subprocess.Popen[str]) -> dict[str, Any]:
    """Wait until the proposal is there, and let both people approve it."""
    waits: list[dict[str, Any]] = []
    for _ in range(int(PATIENCE_S / 0.2)):
        if waits := clients["ada"].get("proposals"):
            break
        assert night.poll() is None, night.communicate()[0]
        time.sleep(0.2)
    (waiting,) = waits
    for name in ("ada", "ben"):
        clients[name].approve(waiting["run"], waiting["digest"])
    return waiting


def test_every_night_from_a_database_to_scores_in_it(tmp_path: Path) -> None:
    consortium, clients = companies(tmp_path)
    try:
        for name in ("bank", "shop"):
            consortium.start(name)
        consortium.wait_connected()
        first = night(consortium)
        seen = approved(clients, first)
        said, _ = first.communicate(timeout=200)
        assert first.returncode == 0, said
        assert (seen["purpose"], seen["needs"], seen["runs_of_a_job"]) == (
            *("credit scoring of applicants", 2, 3),
        )
        once = scores(tmp_path)
        assert len(once) == APPLICANTS
        fill(tmp_path, ROWS)  # 100 customers more by the next night, and nobody is asked
        second = night(consortium)
        said, _ = second.communicate(timeout=200)
        assert second.returncode == 0, said
        assert len(scores(tmp_path)) == APPLICANTS
        gates = [json.loads(file.read_text())["gate"] for file in (tmp_path / "bank").glob("????????.json")]
        assert any("no model was in use" in gate for gate in gates)
        assert any("beside" in gate for gate in gates)
        check_journals(consortium, gates)
        check_scores(tmp_path, once)
    finally:
        consortium.stop()


def check_journals(consortium: Consortium, gates: list[str]) -> None:
    """Both journals verify, and say who decided what."""
    for name in ("bank", "shop"):
        done = consortium.run(name, "journal", "verify")
        assert done.returncode == 0, done.stderr + done.stdout
    exported = consortium.run("shop", "journal", "export")
    lines = [json.loads(line) for line in exported.stdout.splitlines()]
    decisions = [each for each in lines if each.get("type") == "decision"]
    assert [(each["what"], each["who"]) for each in decisions][:3] == [
        ("approved", "ada (token)"),
        ("approved", "ben (token)"),
        ("accepted", f"approval of run {decisions[0]['run']}"),
    ]
    ended = [each for each in lines if each.get("type") == "ended" and each.get("kind", "train") == "train"]
    assert [each["state"] for each in ended] == ["done", "done"]
    mine = consortium.run("bank", "journal", "export").stdout
    whats = [json.loads(line).get("what") for line in mine.splitlines()]
    assert whats.count("proposed") == 2
    assert sum(what in ("promoted", "kept") for what in whats) == 2 == len(gates)


def check_scores(root: Path, found: dict[str, float]) -> None:
    """The scores are better than chance at telling who would repay: the label was drawn from all columns."""
    ids, X, _ = people(ROWS + APPLICANTS)
    truth = X @ np.array([1.0, -1.0, 0.7, 0.5]) > 0
    place = {name: k for k, name in enumerate(ids)}
    right = np.mean([(chance > 0.5) == truth[place[name]] for name, chance in found.items()])
    assert right > 0.85
    with (root / "shop" / "applicants.csv").open() as file:
        assert {row["id"] for row in csv.DictReader(file)} == set(found)
