"""Companies that are far from each other: daemons of this machine over lines with a delay (`delay_line`).

    with Distant(folder, names, columns, line=(10.0, 100.0)) as companies: ...

The first one holds the label. All have all rows; columns are dealt one after the other.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from colonnade.arrays import Floats
from colonnade.demo.daemons import START_S, ask, wait_connected
from colonnade.deploy.daemon import commands
from colonnade.deploy.settings import Settings, read_settings
from colonnade.deploy.terms.contract import terms_from
from colonnade.deploy.terms.terms import Terms
from colonnade.net.stream.authority import issue, make_authority
from colonnade.net.stream.port import free_ports
from colonnade.run.processes import stop_all

ACCEPT = ["labels", "scores", "two-parties", "similarity", "outputs", "embeddings", "nodes", "shares"]


class Host(NamedTuple):
    """A network namespace of this machine, and its address."""

    namespace: str
    address: str


class Rows(NamedTuple):
    """What the companies have together."""

    X: Floats
    y: Floats


def made_up(rows: int, columns: int, seed: int = 0) -> Rows:
    """Return rows whose columns have much in common, and labels that follow from them by half."""
    rng = np.random.default_rng(seed)
    common = rng.standard_normal((rows, max(2, columns // 4)))
    X = common @ rng.standard_normal((common.shape[1], columns)) / common.shape[1] ** 0.5
    X = X + rng.standard_normal((rows, columns))
    z = X @ rng.standard_normal(columns) / columns**0.5
    return Rows(X, np.where(z + rng.logistic(size=rows) > 0, 1.0, 0.0))


@dataclass
class Distant:
    """Daemons as processes, and the lines between them."""

    folder: Path
    names: tuple[str, ...]
    rows: Rows
    one_way_ms: float = 0.0
    mbps: float = 100.0
    policy: str = ""
    more: str = ""  # of every company's settings, after [policy]
    hosts: dict[str, Host] = field(default_factory=dict)  # where companies are, with lines of their own
    settings: dict[str, Settings] = field(default_factory=dict)
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    line: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        """Start lines and daemons of companies that are laid out."""
        count, (listens, dialled) = len(self.names), self.lay_out()
        if dialled is not listens:
            words = [f"{dialled[name]}:{listens[name]}" for name in self.names]
            command = [
                sys.executable,
                "-m",
                "colonnade_bench.deploy.delay_line",
                str(self.one_way_ms),
                str(self.mbps),
            ]
            self.line = subprocess.Popen([*command, *words])  # noqa: S603
        try:
            self.start(*self.names)
            wait_connected(self.settings, START_S + 6.0 * count)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def lay_out(self) -> tuple[dict[str, int], dict[str, int]]:
        """Write files, certificates and settings; returns where companies listen and are dialled."""
        authority = self.folder / "authority"
        make_authority(authority)
        for name in self.names:
            issue(authority, name)
        count = len(self.names)
        ports = free_ports(2 * count)
        listens, dialled = (
            dict(zip(self.names, ports, strict=False)),
            dict(zip(self.names, ports[count:], strict=True)),
        )
        delayed = self.one_way_ms > 0 and not self.hosts
        if not delayed:
            dialled = listens
        for number, name in enumerate(self.names):
            self._lay_out(number, name, listens, dialled)
        return listens, dialled

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        stop_all([*self.processes.values(), *([self.line] if self.line else [])])

    def _lay_out(self, number: int, name: str, listens: dict[str, int], dialled: dict[str, int]) -> None:
        mine = self.folder / name
        (mine / "certificates").mkdir(parents=True)
        for file in ["ca.crt", f"{name}.key", *(f"{peer}.crt" for peer in self.names)]:
            shutil.copy2(self.folder / "authority" / file, mine / "certificates" / file)
        share = np.array_split(np.arange(self.rows.X.shape[1]), len(self.names))[number]
        columns: dict[str, Any] = {"id": np.arange(len(self.rows.y))}
        columns |= {f"c{k}": self.rows.X[:, k] for k in share}
        if not number:
            columns["y"] = self.rows.y
        pq.write_table(pa.table(columns), mine / "rows.parquet")
        peers = "\n".join(
            f'{peer} = "{self._address(peer)}:{dialled[peer]}"' for peer in self.names if peer != name
        )
        label = "" if number else 'label = "y"'
        text = f"""name = "{name}"
listen = "{self._address(name)}:{listens[name]}"
line_mbps = {self.mbps:g}
[peers]
{peers}
[data.rows]
file = "rows.parquet"
id = "id"
{label}
[policy]
accept = {ACCEPT}
min_rows = 20
{self.policy}
[limits]
comparisons_a_day = 1000000
{self.more}
"""
        (mine / "party.toml").write_text(text, encoding="utf-8")
        self.settings[name] = read_settings(mine / "party.toml")

    def _address(self, name: str) -> str:
        return self.hosts[name].address if name in self.hosts else "127.0.0.1"

    def start(self, *names: str) -> None:
        """Start daemons."""
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        for name in names:
            inside = ["ip", "netns", "exec", self.hosts[name].namespace] if name in self.hosts else []
            command = [
                *inside,
                sys.executable,
                "-m",
                "colonnade",
                "party",
                "-c",
                str(self.folder / name / "party.toml"),
            ]
            with (self.folder / name / "log.txt").open("ab") as log:
                self.processes[name] = subprocess.Popen(command, stdout=log, stderr=log, env=environment)  # noqa: S603

    def terms(self, algorithm: str, name: str = "job", **sections: Any) -> Terms:
        """Return the terms of a job of all companies."""
        parties = {party: {"data": "rows", "label": not k} for k, party in enumerate(self.names)}
        return terms_from({"name": name, "algorithm": algorithm, "parties": parties, **sections})

    def ask(self, request: commands.Request, name: str = "") -> Any:
        """Return the answer of a company's daemon, the first one's if none is named."""
        return asyncio.run(ask(self.settings[name or self.names[0]], request, lambda event: None))

    def wait_measured(self) -> None:
        """Wait until the round trips are known as well as they ever are."""
        for _ in range(100):
            peers = self.ask(commands.StatusRequest())["peers"].values()
            if all(each["round_trip_ms"] is not None for each in peers):
                time.sleep(2.0)
                return
            time.sleep(0.1)

    def round_trip_ms(self) -> float:
        """Return the longest round trip that the first company's daemon has measured."""
        peers = self.ask(commands.StatusRequest())["peers"].values()
        return max(float(peer["round_trip_ms"]) for peer in peers)

    def cpu_seconds(self) -> float:
        """Return the processor time of all daemons so far, and of what they started that has ended."""
        ticks = 0
        for process in self.processes.values():
            words = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, words[11:15]))
        return ticks / os.sysconf("SC_CLK_TCK")

    def memory_mb(self) -> float:
        """Return the memory of all daemons and what they started, shared pages counted once."""
        total = 0
        for process in self.processes.values():
            for pid in [process.pid, *_children(process.pid)]:
                with suppress(OSError):
                    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
                    total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
        return total / 1024


def _children(pid: int) -> list[int]:
    with suppress(OSError):
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []
