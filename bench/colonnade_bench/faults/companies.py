"""Three companies on this machine whose daemons can be killed: folders, settings, processes, shares."""

from __future__ import annotations

import asyncio
import csv
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from colonnade.arrays import Arrays
from colonnade.demo.daemons import wait_connected
from colonnade.deploy.books.journal import Interruption, read_journal
from colonnade.deploy.daemon import commands
from colonnade.deploy.models import stored_shares
from colonnade.deploy.settings import Settings, read_settings
from colonnade.deploy.terms.terms import Terms
from colonnade.errors import ColonnadeError, ShareError
from colonnade.net.stream.authority import issue, make_authority
from colonnade.net.stream.port import free_ports
from colonnade.run.processes import stop_all

NAMES = ("bank", "shop", "telecom")
ROWS = 300
LONGEST_S = 300.0  # until a run is taken for one that hangs
_SETTINGS = """\
name = "{name}"
listen = "127.0.0.1:{port}"
reconnect_s = 5.0
[peers]
{peers}
[data.customers]
file = "customers.csv"
id = "id"
{label}
[data.labelled]
file = "labelled.csv"
id = "id"
label = "repaid"
[policy]
accept = ["labels", "scores", "two-parties", "similarity", "outputs", "embeddings", "nodes"]
min_rows = 20
[limits]
comparisons_a_day = 1000000
id_sets_a_day = 1000000
trees_exact = true
"""


@dataclass
class Companies:
    """Daemons as processes of this machine: `with Companies(folder) as companies`."""

    folder: Path
    settings: dict[str, Settings] = field(default_factory=dict)
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    refused: str = ""  # why the bank ended what was proposed last

    def __enter__(self) -> Self:
        """Write every company's files, certificates and settings, and start all daemons."""
        authority = self.folder / "authority"
        make_authority(authority)
        for name in NAMES:
            issue(authority, name)
        ports = dict(zip(NAMES, free_ports(len(NAMES)), strict=True))
        for number, name in enumerate(NAMES):
            mine = self.folder / name
            (mine / "certificates").mkdir(parents=True)
            for file in ["ca.crt", f"{name}.key", *(f"{peer}.crt" for peer in NAMES)]:
                shutil.copy2(authority / file, mine / "certificates" / file)
            peers = "\n".join(f'{peer} = "127.0.0.1:{ports[peer]}"' for peer in NAMES if peer != name)
            label = "" if number else 'label = "repaid"'
            text = _SETTINGS.format(name=name, port=ports[name], peers=peers, label=label)
            (mine / "party.toml").write_text(text, encoding="utf-8")
            _write_rows(mine / "customers.csv", number, labelled=not number)
            _write_rows(mine / "labelled.csv", number, labelled=True)
            self.settings[name] = read_settings(mine / "party.toml")
        self.start(*NAMES)
        wait_connected(self.settings)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        stop_all(list(self.processes.values()))

    # -- processes ----------------------------------------------------------------------------------

    def start(self, *names: str) -> None:
        """Start daemons, whose logs go on where they were."""
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        for name in names:
            command = [
                sys.executable,
                "-m",
                "colonnade",
                "party",
                "-c",
                str(self.folder / name / "party.toml"),
            ]
            with (self.folder / name / "log.txt").open("ab") as log:
                self.processes[name] = subprocess.Popen(command, stdout=log, stderr=log, env=environment)  # noqa: S603

    def kill(self, *names: str) -> None:
        """Kill -9 daemons; the processes of their trainings end with them."""
        for name in names:
            self.processes[name].kill()
        for name in names:
            self.processes[name].wait()

    def worker(self, name: str) -> int:
        """The process in which a company trains now; 0 if there is none."""
        daemon = self.processes[name].pid
        with suppress(OSError):
            for child in Path(f"/proc/{daemon}/task/{daemon}/children").read_text().split():
                if b"deploy.programs.worker" in Path(f"/proc/{child}/cmdline").read_bytes():
                    return int(child)
        return 0

    def kill_worker(self, name: str) -> bool:
        """Kill -9 the process in which a company trains; False if there is none."""
        if not (worker := self.worker(name)):
            return False
        with suppress(OSError):
            os.kill(worker, signal.SIGKILL)
            return True
        return False

    # -- trainings ----------------------------------------------------------------------------------

    def propose(self, terms: Terms) -> threading.Thread:
        """Let the bank propose a job, in a thread that follows it until it is over or the daemon dies."""

        async def follow() -> None:
            async for said in commands.ask(self.settings["bank"], commands.TrainRequest(terms)):
                self.refused = (isinstance(said, commands.FinalReply) and said.error) or ""

        def thread() -> None:
            with suppress(ColonnadeError, OSError):
                asyncio.run(follow())

        follower = threading.Thread(target=thread, daemon=True)
        follower.start()
        return follower

    def files(self, name: str, pattern: str) -> list[Path]:
        """What a company keeps on disk."""
        return list(self.settings[name].state.glob(pattern))

    def all_have(self, pattern: str) -> bool:
        """Whether every company has such a file."""
        return all(self.files(name, pattern) for name in NAMES)

    def save(self, to: Path) -> None:
        """Copy what all companies keep on disk; their daemons must not run."""
        for name in NAMES:
            shutil.copytree(self.settings[name].state, to / name, ignore=shutil.ignore_patterns("*.sock"))

    def restore(self, saved: Path) -> None:
        """Kill all daemons, let every company have on disk what was saved, and start them."""
        self.kill(*NAMES)
        for name in NAMES:
            shutil.rmtree(self.settings[name].state)
            shutil.copytree(saved / name, self.settings[name].state)
        self.start(*NAMES)

    def over(self) -> bool:
        """Whether no company has a run that is not over."""
        return not any(self.files(name, "unfinished/*/run.json") for name in NAMES)

    def weights(self, model: str) -> dict[str, Arrays]:
        """Every company's share of a model, of those that have one."""
        found = {}
        for name in NAMES:
            with suppress(ShareError):
                found[name] = stored_shares.load(self.settings[name].state / "models", model).arrays
        return found

    def cuts(self) -> list[str]:
        """Why runs were cut off, as the companies' journals say it."""
        written = [
            each
            for name in NAMES
            if (path := self.settings[name].state / "journal.jsonl").exists()
            for each in read_journal(path)[0]
        ]
        return [each.reason for each in written if isinstance(each, Interruption) and each.what == "cut off"]

    def last_words(self) -> str:
        """What the bank was answered, and the ends of all logs: why a run is not over."""
        logs = {name: (self.folder / name / "log.txt").read_text(errors="replace") for name in NAMES}
        ends = "; ".join(f"{name}: {' | '.join(log.splitlines()[-3:])}" for name, log in logs.items())
        return f"{self.refused}; {ends}" if self.refused else ends


def wait_for(true: Callable[[], bool], seconds: float = LONGEST_S, *, look_s: float = 0.02) -> bool:
    """Look again and again until something is so; False if it is not so in time."""
    until = time.monotonic() + seconds
    while not true():
        if time.monotonic() > until:
            return False
        time.sleep(look_s)
    return True


def _write_rows(path: Path, company: int, *, labelled: bool) -> None:
    """Two columns of everybody that a company knows, and perhaps what the columns of all decide."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((ROWS, 2 * len(NAMES)))
    y = X @ rng.standard_normal(X.shape[1]) + 0.3 * rng.standard_normal(ROWS) > 0
    known = np.random.default_rng([1, company]).permutation(ROWS)[: ROWS - 20]
    with path.open("w", newline="", encoding="utf-8") as file:
        write = csv.writer(file).writerow
        write(["id", "a", "b", *(["repaid"] if labelled else [])])
        for k in known:
            own = X[k, 2 * company : 2 * company + 2].tolist()
            write([f"C{k:05}", *own, *(["yes" if y[k] else "no"] if labelled else [])])
