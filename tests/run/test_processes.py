"""The network world with real processes: what a killed party, a wrong certificate or garbage does to it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pytest
from msgspec import structs
from tests.patience import PATIENCE_S

from colonnade.data.prepare.party_data import PartyData
from colonnade.errors import DataError, PeerLost
from colonnade.job import Job, job_from
from colonnade.net.stream.authority import issue
from colonnade.run.federate import federate, prepare
from colonnade.run.fork_server import Running
from colonnade.run.processes import collect, lay_out, start, stop_all, wait
from colonnade.run.resolve import compose
from colonnade.run.world import Launch

DEADLINE = 10.0
Begin = Callable[[], dict[str, Running]]


def job(deadline_s: float = DEADLINE, **train: object) -> Job:
    return job_from(
        {
            "algorithm": "vfb2-sgd",
            "world": "network",
            "data": {"train": "breast-cancer", "parties": 3, "active": 1, "scale": "zscore"},
            "train": {"epochs": 3, "batch": 32, "step": 0.1, **train},
            "network": {"deadline_s": deadline_s},
        }
    )


def ordered(job: Job) -> Launch:
    return prepare(compose(job))[1]


class Watched:
    """A process that ends when it is told to; to ask it again and again whether it has fails the test."""

    pid = 0
    stdin: IO[bytes] | None = None
    stdout: IO[bytes] | None = None

    def __init__(self) -> None:
        self._ended, self._code = threading.Event(), 0

    def end(self, code: int) -> None:
        self._code = code
        self._ended.set()

    def wait(self, timeout: float | None = None) -> int:
        self._ended.wait(timeout)
        return self._code

    def poll(self) -> int | None:
        pytest.fail("asked whether it has ended, where one can wait for that")

    def terminate(self) -> None: ...

    def kill(self) -> None: ...


def test_processes_are_waited_for_and_not_asked() -> None:
    watched = {name: Watched() for name in ("ant", "bee", "cat")}
    waiting = threading.Thread(target=wait, args=(watched, PATIENCE_S))
    waiting.start()
    watched["bee"].end(0)
    watched["ant"].end(3)
    waiting.join(0.05)
    assert waiting.is_alive()  # the others may yet notice that one has failed
    watched["cat"].end(1)
    waiting.join(PATIENCE_S / 2)
    assert not waiting.is_alive()


def test_who_does_not_notice_that_another_has_failed_is_waited_for_a_while() -> None:
    watched = {"ant": Watched(), "bee": Watched()}
    watched["bee"].end(3)
    wait(watched, 0.01)  # would not end, as ant does not
    watched["ant"].end(0)


def test_a_killed_party_is_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its peers may wait for it much longer: nobody has told them that it will not come back."""
    monkeypatch.setattr("colonnade.run.processes.KILLED_S", 0.01)
    watched = {"ant": Watched(), "bee": Watched()}
    watched["bee"].end(-signal.SIGKILL)
    wait(watched, 10 * PATIENCE_S)  # would not end, as ant does not
    watched["ant"].end(0)


@contextmanager
def parties(job: Job, out: Path) -> Iterator[tuple[dict[str, Path], Begin]]:
    """The folders of all parties, and what starts them; in the end they are stopped."""
    folders = lay_out(ordered(job), out, out / "authority")
    running: dict[str, Running] = {}

    def begin() -> dict[str, Running]:
        running.update({name: start(folder) for name, folder in folders.items()})
        return running

    try:
        yield folders, begin
    finally:
        stop_all(list(running.values()))
        for process in running.values():
            if process.stdout is not None:
                process.stdout.close()


def codes_of(running: dict[str, Running]) -> dict[str, int]:
    """The exit codes of all parties, when they have ended."""
    return {name: process.wait(timeout=90) for name, process in running.items()}


def let_train(running: dict[str, Running]) -> None:
    """Wait until all train: the label holder tells of the first epoch."""
    told = running["party-0"].stdout
    assert told is not None
    assert told.readline()


def errors(folders: dict[str, Path]) -> dict[str, str]:
    """The error that each party left in its folder."""
    left = {}
    for name, folder in folders.items():
        if (folder / "error.json").exists():
            left[name] = json.loads((folder / "error.json").read_text())["error"]
    return left


def test_every_party_is_a_process_that_holds_its_own_columns_alone(tmp_path: Path) -> None:
    run = federate(job(), out=tmp_path)
    assert run.result.metrics["test_accuracy"] > 0.9
    columns = {}
    for folder in sorted((tmp_path / "parties").iterdir()):
        columns[folder.name] = set(json.loads((folder / "data" / "party.json").read_text())["columns"])
        assert (folder / "data" / "train.labels.npy").exists() is (folder.name in run.result.active)
        keys = sorted(key.name for key in (folder / "certificates").glob("*.key"))
        assert keys == [f"{folder.name}.key"]
    assert len(list(tmp_path.rglob("*.key"))) == 3  # nobody keeps a copy, nor the authority's
    assert sum(len(names) for names in columns.values()) == len(set().union(*columns.values())) == 30


def test_a_killed_party_ends_every_other_with_a_named_error_in_time(tmp_path: Path) -> None:
    with parties(job(epochs=100_000), tmp_path) as (folders, begin):
        running = begin()
        let_train(running)
        os.kill(running["party-2"].pid, signal.SIGKILL)
        killed = time.monotonic()
        codes = codes_of(running)
        assert time.monotonic() - killed < 3 * DEADLINE + 40
        assert codes["party-2"] == -signal.SIGKILL
        assert set(errors(folders)) == {"party-0", "party-1"}
        assert set(errors(folders).values()) <= {"PeerLost", "Aborted", "Interrupted"}


def test_a_certificate_that_is_not_the_pinned_one_is_refused_at_both_ends(tmp_path: Path) -> None:
    with parties(job(deadline_s=5.0), tmp_path) as (folders, begin):
        again = tmp_path / "again"
        again.mkdir()
        for name in ("ca.crt", "ca.key"):
            shutil.copy2(tmp_path / "authority" / name, again / name)
        issue(again, "party-1")  # the same authority and name, but not the certificate the peers know
        for name in ("party-1.crt", "party-1.key"):
            shutil.copy2(again / name, folders["party-1"] / "certificates" / name)
        codes = codes_of(begin())
        assert all(code != 0 for code in codes.values())
        left = errors(folders)
        assert set(left) == set(folders)
        assert list(left.values()).count("CertificateError") >= 2
        assert set(left.values()) <= {
            "CertificateError",
            "PeerUnreachable",
            "Aborted",
            "Interrupted",
            "PeerLost",
        }


def test_a_stranger_and_its_garbage_do_not_disturb_a_run(tmp_path: Path) -> None:
    with parties(job(epochs=60), tmp_path) as (folders, begin):
        told = json.loads((folders["party-2"] / "instructions.json").read_text())
        host, port = told["addresses"]["party-2"]
        stop = threading.Event()

        def pester() -> None:
            while not stop.is_set():
                try:
                    with socket.create_connection((host, port), timeout=1) as line:
                        line.sendall(os.urandom(200))
                except OSError:
                    pass
                stop.wait(0.05)

        stranger = threading.Thread(target=pester)
        stranger.start()
        try:
            codes = codes_of(begin())
        finally:
            stop.set()
            stranger.join()
        assert codes == dict.fromkeys(folders, 0)
        assert errors(folders) == {}


@pytest.mark.parametrize("key", ["run", "job"])
def test_a_party_of_another_run_or_job_is_refused_by_name(tmp_path: Path, key: str) -> None:
    with parties(job(deadline_s=5.0), tmp_path) as (folders, begin):
        told = json.loads((folders["party-1"] / "instructions.json").read_text())
        if key == "run":
            told["run"] = (told["run"] + 1) % 2**32
        else:
            told["plan"]["objective"]["l2"] = 0.5
        (folders["party-1"] / "instructions.json").write_text(json.dumps(told))
        codes = codes_of(begin())
        assert all(code != 0 for code in codes.values())
        assert set(errors(folders)) == set(folders)
        expected = {
            "run": {"DeadlineExceeded", "Aborted", "Interrupted", "PeerLost"},
            "job": {"JobError", "Aborted", "Interrupted", "PeerLost"},
        }
        assert set(errors(folders).values()) <= expected[key]


def test_a_party_ends_when_whoever_started_it_is_gone(tmp_path: Path) -> None:
    with parties(job(epochs=100_000), tmp_path) as (folders, begin):
        running = begin()
        let_train(running)
        for process in running.values():
            assert process.stdin is not None
            process.stdin.close()  # what happens when the starting process dies
        assert set(codes_of(running).values()) == {1}
        assert set(errors(folders).values()) <= {"Aborted", "Interrupted", "PeerLost"}


def test_without_the_comparison_nobody_but_a_party_prepares_its_columns(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def never(self: PartyData) -> None:
        raise AssertionError(f"the columns of {self.party} were prepared outside its own process")

    monkeypatch.setattr(PartyData, "prepare", never)
    done = federate(structs.replace(job(), compare=False), out=tmp_path)
    assert done.result.pooled == {}
    assert done.result.metrics["test_accuracy"] > 0.9
    with pytest.raises(AssertionError, match="prepared outside its own process"):
        federate(job(), out=tmp_path)


@dataclass
class Ended:
    """A process that has ended with this code, or has not."""

    code: int | None
    pid: int = 0
    stdin: IO[bytes] | None = None
    stdout: IO[bytes] | None = None

    def poll(self) -> int | None:
        return self.code

    def wait(self, timeout: float | None = None) -> int:
        raise NotImplementedError

    def terminate(self) -> None:
        raise NotImplementedError

    def kill(self) -> None:
        raise NotImplementedError


def test_the_party_that_died_is_named_and_not_one_that_still_runs_or_lost_it(tmp_path: Path) -> None:
    folders = {name: tmp_path / name for name in ("bank", "shop", "telco")}
    for folder in folders.values():
        folder.mkdir()
        (folder / "log.txt").touch()
    (folders["bank"] / "error.json").write_text('{"error": "PeerLost", "text": "bank lost telco"}')
    ended = {"bank": Ended(1), "shop": Ended(None), "telco": Ended(-9)}
    with pytest.raises(PeerLost, match="telco's process was killed by SIGKILL"):
        collect(folders, ended, lambda folder: None)


def test_a_disk_without_room_for_the_parties_is_named_and_nothing_of_them_stays(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def no_room(path: Path, values: object, **options: object) -> None:
        path.write_bytes(b"half")
        raise OSError("31636 requested and 496 written")

    monkeypatch.setattr("colonnade.data.split.store.np.save", no_room)
    with pytest.raises(DataError, match=rf"{tmp_path}/parties: cannot be written: .* is the disk full\?"):
        lay_out(ordered(job()), tmp_path, tmp_path / "authority")
    assert not (tmp_path / "parties").exists()


def test_a_disk_too_full_for_a_party_s_last_words_is_the_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "bank"
    folder.mkdir()
    (folder / "log.txt").touch()
    whole = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: whole._replace(free=0))
    with pytest.raises(DataError, match=f"{folder}: the disk is full"):
        collect({"bank": folder}, {"bank": Ended(1)}, lambda folder: None)
