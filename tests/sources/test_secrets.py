"""A password is in nothing that is written, printed or shown of a process, by whichever command."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest
from tests.deploy.companies import COLUMNS
from tests.deploy.consortium import Consortium, people, write_csv
from tests.servers import PASSWORD, Server

SPELT = [PASSWORD.encode(), quote(PASSWORD, safe="").encode(), PASSWORD.split("/")[1].encode()]
JOB = """name = "repaid"
algorithm = "lbfgs"
[parties]
bank = {data = "customers", label = true}
shop = {data = "customers"}
telecom = {data = "customers"}
[secure]
labels = "clear"
"""


def hits(folder: Path) -> list[str]:
    """The files in which the password is."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [str(path) for path in files if any(each in path.read_bytes() for each in SPELT)]


def told(*outputs: str) -> None:
    for output in outputs:
        assert not any(each in output.encode() for each in SPELT), output


def arguments() -> bytes:
    """What the process list shows of every process of this machine."""
    found = b""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += path.read_bytes()
        except OSError:  # it has ended
            continue
    return found


def test_on_one_machine(postgres: Server, tmp_path: Path) -> None:
    table, wrong = postgres.address("customers"), postgres.address("none")
    for words, code in (
        (["new", table, "--label", "bad", "--parties", "3"], 0),
        (["--debug", "new", wrong, "--label", "bad", "--out", "other.toml"], 2),
        (["new", f"postgresql://bank:{PASSWORD}@127.0.0.1/risk#t", "--out", "other.toml"], 2),
        (["run", "job.toml", "--check"], 0),
        (["run", "job.toml", "--report", "--timeline", "--world", "network"], 0),
        (["report", "runs/job", "--out", "page.html"], 0),
        (["predict", "runs/job", table, "--out", "scores.csv"], 0),
        (["predict", "runs/job", table, "--out", postgres.address("secrets")], 2),
        (["predict", "runs/job", wrong], 2),
    ):
        command = [sys.executable, "-m", "colonnade", *words]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == code, done.stderr
        told(done.stdout, done.stderr)
    assert (tmp_path / "runs" / "job" / "result.json").is_file()
    assert hits(tmp_path) == []


@pytest.mark.timeout(300)
def test_between_companies(postgres: Server, tmp_path: Path) -> None:
    ids, X, y = people(300)
    values = ", ".join(f"('{ids[i]}', {X[i, 0]}, {X[i, 1]}, '{y[i]}')" for i in range(300))
    postgres.sql("create table people (id text, income float8, age float8, repaid text)")
    postgres.sql(f"insert into people values {values}; grant select on people to bank")
    names = ("bank", "shop", "telecom")
    consortium = Consortium(tmp_path, names)
    for name in names[1:]:
        held = {c: [repr(float(X[i, j])) for i in range(300)] for c, j in COLUMNS[name].items()}
        write_csv(consortium.folder(name) / "customers.csv", ids, held)
        consortium.settle(name, '[data.customers]\nfile = "customers.csv"\nid = "id"\n')
    uri, _, table = postgres.address("people").partition("#")
    consortium.settle(
        "bank", f'[data.customers]\nuri = "{uri}"\ntable = "{table}"\nid = "id"\nlabel = "repaid"\n'
    )
    write_csv(consortium.folder("bank") / "new.csv", ids[:50], {})
    (consortium.folder("bank") / "job.toml").write_text(JOB, "utf-8")
    try:
        checked = consortium.run("bank", "party", "--check")
        assert checked.returncode == 0, checked.stderr
        assert "PostgreSQL expects" in checked.stdout
        told(checked.stdout)
        for name in names:
            consortium.start(name)
        consortium.wait_connected()
        for words in (
            ["train", "job.toml"],
            ["predict", "repaid", "new.csv"],
            ["party", "--status"],
        ):
            done = consortium.run("bank", *words)
            assert done.returncode == 0, done.stderr
            told(done.stdout, done.stderr)
        assert not any(each in arguments() for each in SPELT)
        # a changed value is noticed by the daemon
        postgres.sql("update people set age = age + 1 where id = 'C00007'")
        assert consortium.run("bank", "train", "job.toml").returncode == 0
        status = consortium.run("bank", "party", "--status").stdout
        assert "data.customers: has changed since run" in status
        told(*(consortium.log(name) for name in names))
    finally:
        consortium.stop()
        postgres.sql("drop table people")
    assert list((consortium.folder("bank") / "runs").rglob("*"))
    assert hits(tmp_path) == []
