"""A consortium for tests: companies with folders, certificates, settings, and daemons to start."""

from __future__ import annotations

import csv
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from colonnade.net.stream.authority import issue, make_authority
from colonnade.net.stream.port import free_ports

SOURCE = Path(__file__).parents[2] / "src"


@dataclass
class Consortium:
    """Companies on this machine, each with a folder of its own."""

    root: Path
    names: Sequence[str]
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)  # where a party's package lies, if not here

    def __post_init__(self) -> None:
        authority = self.root / "authority"
        make_authority(authority)
        for name in self.names:
            issue(authority, name)
        self.ports = dict(zip(self.names, free_ports(len(self.names)), strict=True))
        for name in self.names:
            folder = self.folder(name) / "certificates"
            folder.mkdir(parents=True)
            for file in ["ca.crt", f"{name}.key", *(f"{each}.crt" for each in self.names)]:
                shutil.copy2(authority / file, folder / file)

    def folder(self, name: str) -> Path:
        return self.root / name

    def config(self, name: str) -> Path:
        return self.folder(name) / "party.toml"

    def settle(self, name: str, data: str, policy: str = "", more: str = "") -> Path:
        """Write a party's settings: the sections [data.*], what goes into [policy], and anything else."""
        peers = "\n".join(f'{peer} = "127.0.0.1:{self.ports[peer]}"' for peer in self.names if peer != name)
        leaks = '"labels", "scores", "two-parties", "similarity", "outputs", "embeddings", "nodes"'
        accept = f"accept = [{leaks}]\nmin_rows = 20"
        text = f"""name = "{name}"
listen = "127.0.0.1:{self.ports[name]}"
reconnect_s = 3.0
{more.split("[")[0]}
[peers]
{peers}
{data}
[policy]
{policy or accept}
"""
        rest = more[len(more.split("[")[0]) :]
        self.config(name).write_text(text + rest)
        return self.config(name)

    def start(self, name: str) -> None:
        with (self.folder(name) / "log.txt").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [sys.executable, "-m", "colonnade", "party", "-c", str(self.config(name))],
                stderr=log,
                stdout=log,
                env=self._environment(name),
            )

    def run(self, name: str, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command of this party in its own folder."""
        return subprocess.run(
            [sys.executable, "-m", "colonnade", *words],
            cwd=self.folder(name),
            env=self._environment(name),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def _environment(self, name: str) -> dict[str, str]:
        source = self.sources.get(name, str(SOURCE))
        return {**os.environ, "PYTHONPATH": source, "OPENBLAS_NUM_THREADS": "1"}

    def log(self, name: str) -> str:
        return (self.folder(name) / "log.txt").read_text(errors="replace")

    def wait_connected(self, seconds: float = 120.0) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if all(
                all(f"{peer} is connected" in self.log(name) for peer in self.names if peer != name)
                for name in self.processes
            ):
                return
            time.sleep(0.1)
        raise AssertionError({name: self.log(name)[-500:] for name in self.processes})

    def stop(self) -> None:
        for process in self.processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in self.processes.values():
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def write_csv(
    path: Path, ids: Sequence[Any], columns: Mapping[str, Sequence[Any]], id_name: str = "id"
) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        write = csv.writer(file).writerow
        write([id_name, *columns])
        for k, name in enumerate(ids):
            write([name, *(values[k] for values in columns.values())])


def people(count: int, seed: int = 0) -> tuple[list[str], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Ids, four columns and a label that depends on all of them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, 4))
    y = np.where(X @ np.array([1.0, -1.0, 0.7, 0.5]) + 0.3 * rng.normal(size=count) > 0, "yes", "no")
    return [f"C{k:05}" for k in range(count)], X, y
