"""Parties that start by forking: they are processes of their own, and end as any process does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from colonnade.run import fork_server
from colonnade.run.fork_server import ForkServer
from colonnade.run.registry import CONVERSATIONS, ROWS

pytestmark = pytest.mark.skipif(not fork_server.SUPPORTED, reason="parties start by forking on Linux alone")

PARTY = """
import os, sys
from pathlib import Path

def main(folder: Path) -> int:
    print(os.getcwd(), os.environ["COLONNADE_SAID"], flush=True)
    print("an odd party", file=sys.stderr)
    sys.stdin.read()
    return int((folder / "code").read_text())
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkServer]:
    """A fork server that finds the odd party's module."""
    folder = tmp_path_factory.mktemp("modules")
    (folder / "odd_party.py").write_text(PARTY)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(folder), *sys.path]))
        started = ForkServer()
    yield started
    started.close()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The party's folder, where the request is made from."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLONNADE_SAID", "hello")
    return tmp_path


def start(home: ForkServer, folder: Path, code: str) -> fork_server.Forked:
    (folder / "code").write_text(code)
    return home.start("odd_party", folder, folder / "log.txt")


def test_a_party_is_a_process_of_its_own_with_its_own_streams(home: ForkServer, folder: Path) -> None:
    party = start(home, folder, "3")
    assert party.stdin is not None
    assert party.stdout is not None
    assert party.pid not in (os.getpid(), home.process.pid)
    assert party.stdout.readline().decode().split() == [str(folder), "hello"]
    assert party.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        party.wait(0.01)
    party.stdin.close()
    assert party.wait(10) == 3
    assert (folder / "log.txt").read_text() == "an odd party\n"
    party.stdout.close()


def test_paths_are_those_of_whoever_asks(home: ForkServer, folder: Path) -> None:
    party = start(home, Path(), "0")  # relative to a folder in which the fork server was not started
    assert party.stdin is not None
    assert party.stdout is not None
    party.stdin.close()
    assert party.wait(60) == 0
    assert (folder / "log.txt").read_text() == "an odd party\n"
    party.stdout.close()


def test_one_that_fails_says_why_and_one_that_is_ended_has_the_signal(home: ForkServer, folder: Path) -> None:
    failed, ended = start(home, folder, "not a number"), start(home, folder, "0")
    for party in (failed, ended):
        assert party.stdout is not None
        party.stdout.readline()
    ended.terminate()
    assert ended.wait(10) == -signal.SIGTERM
    assert failed.poll() is None
    assert failed.stdin is not None
    (folder / "code").write_text("not a number")
    failed.stdin.close()
    assert failed.wait(10) == 1
    assert "not a number" in (folder / "log.txt").read_text()
    failed.kill()  # it has ended: nothing happens
    for party in (failed, ended):
        for stream in (party.stdin, party.stdout):
            if stream is not None:
                stream.close()


def test_a_fork_server_ends_with_whoever_started_it(tmp_path: Path) -> None:
    program = (
        "import os; from colonnade.run import fork_server\n"
        "print(fork_server.warm().process.pid, flush=True); os._exit(0)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    gone = int(done.stdout)
    for _ in range(500):
        if not Path(f"/proc/{gone}").exists() or "(python" not in Path(f"/proc/{gone}/stat").read_text():
            return
        time.sleep(0.02)
    raise AssertionError("the fork server is still there")


def test_every_row_of_the_table_is_the_conversation_of_its_name() -> None:
    assert {name: CONVERSATIONS[name].name for name in ROWS} == {name: name for name in ROWS}
    with pytest.raises(KeyError):
        CONVERSATIONS["whisper"]
