"""A password is in nothing that is written, printed or shown of a process, by whichever command."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow.parquet as pq
import pytest
from pyarrow import fs
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
HELD = """from pathlib import Path
from keyring.backends.fail import Keyring

class Held(Keyring):
    def get_password(self, service, username):
        if (service, username) == ("risk-db", "bank"):
            return Path(__file__).with_name("password").read_text().strip()
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


def commands(table: str, wrong: str, *, more: Sequence[tuple[list[str], int]] = ()) -> None:
    """From a table to a page and scores, with what fails on the way; in the folder of this process."""
    for words, code in (
        (["new", table, "--label", "bad", "--parties", "3"], 0),
        (["--debug", "new", wrong, "--label", "bad", "--out", "other.toml"], 2),
        (["run", "job.toml", "--check"], 0),
        (["run", "job.toml", "--report", "--timeline", "--world", "network"], 0),
        (["report", "runs/job", "--out", "page.html"], 0),
        (["predict", "runs/job", table, "--out", "scores.csv"], 0),
        (["predict", "runs/job", wrong], 2),
        *more,
    ):
        done = subprocess.run([sys.executable, "-m", "colonnade", *words], capture_output=True, text=True)
        assert done.returncode == code, done.stderr
        told(done.stdout, done.stderr)
    assert Path("runs/job/result.json").is_file()
    assert hits(Path()) == []


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with the password, and a folder beside it to work in."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    (tmp_path / "password").write_text(PASSWORD + "\n", "utf-8")
    return tmp_path / "password"


def test_in_the_environment(postgres: Server, kept: Path) -> None:
    more = [
        (["new", f"postgresql://bank:{PASSWORD}@127.0.0.1/risk#t", "--out", "other.toml"], 2),
        (["predict", "runs/job", postgres.address("customers"), "--out", postgres.address("secrets")], 2),
    ]
    commands(postgres.address("customers"), postgres.address("none"), more=more)


@pytest.mark.parametrize("database", ["postgres", "mariadb"])
def test_in_a_file(
    database: str, kept: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DB_PASSWORD")
    server: Server = request.getfixturevalue(database)
    user = f"bank:{{file:{kept}}}"
    commands(server.address("customers", user=user), server.address("none", user=user))


def test_in_a_keyring(postgres: Server, kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the package that speaks to the keyring of a platform, which is here a module beside the file."""
    pytest.importorskip("keyring")
    monkeypatch.delenv("DB_PASSWORD")
    (kept.parent / "held.py").write_text(HELD, "utf-8")
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join(filter(None, [str(kept.parent), os.getenv("PYTHONPATH")]))
    )
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "held.Held")
    user = "bank:{keyring:risk-db/bank}"
    commands(postgres.address("customers", user=user), postgres.address("none", user=user))


def test_of_a_store(s3: str, customers: Any, kept: Path) -> None:
    store, _ = fs.FileSystem.from_uri(f"s3://shop?{s3}")
    pq.write_table(customers, "shop/secret-customers.parquet", filesystem=store)
    name = "s3://shop/secret-customers.parquet"
    keys = f"s3://someone:{PASSWORD}@shop/secret-customers.parquet?{s3}"
    commands(f"{name}?{s3}", f"s3://shop/none.parquet?{s3}", more=[(["new", keys, "--out", "other.toml"], 2)])


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
