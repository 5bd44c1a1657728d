"""Four daemons for as long as one likes, with everything at once: do they stay as they were?

    colonnade bench soak --minutes 60

The departments of `colonnade demo` train again and again and score rows all the while; now and then one of
them is ended, by force every second time, and started again; and strangers dial every port: they say nothing,
or garbage, or come with a certificate that nobody knows. Every half minute the memory, open files, threads
and processes of every daemon are written to soak.json, and how the honest were served: trainings, scores, and
how long the status took to come. What a restart cuts is counted apart from what fails for another reason,
and every such reason is told.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from colonnade.demo.daemons import wait_connected
from colonnade.demo.departments import HOLDER, MEASURES, lay_out
from colonnade.deploy.daemon import commands
from colonnade.deploy.settings import Settings, read_settings
from colonnade.deploy.terms.contract import read_terms
from colonnade.deploy.terms.terms import Terms
from colonnade.errors import ColonnadeError, PeerUnreachable
from colonnade.run.processes import stop_all
from colonnade_bench.deploy.strangers import stranger, unknown

SAMPLE_S = 30.0
RESTART_S = 180.0
STRANGERS_A_SECOND = 20
PATIENCE = 10
LIMITS = """
[limits]
comparisons_a_day = 1000000
id_sets_a_day = 1000000
scored_ids_a_day = 100000000
proposals_an_hour = 1000000
"""


@dataclass
class Soak:
    """The daemons, and what the honest and the others got of them."""

    settings: dict[str, Settings]
    terms: Terms
    say: Callable[[str], None]
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)  # of what failed though all daemons stood
    latencies: list[float] = field(default_factory=list)
    samples: list[dict[str, Any]] = field(default_factory=list)
    away: str = ""  # who is being restarted

    def start(self, party: str) -> None:
        """Start a daemon, whose log goes on where it was."""
        each = self.settings[party]
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "colonnade", "party", "--config", str(each.path("party.toml"))]
        with each.path("log.txt").open("ab") as log:
            self.processes[party] = subprocess.Popen(command, stdout=log, stderr=log, env=environment)  # noqa: S603

    # -- the honest ---------------------------------------------------------------------------------

    async def train(self) -> None:
        """Train, and train again."""
        while True:
            while self.away:  # noqa: ASYNC110  as its operator would
                await asyncio.sleep(0.5)
            await self._counted("training", HOLDER, commands.TrainRequest(self.terms))
            await asyncio.sleep(2.0)

    async def score(self, ids: list[str]) -> None:
        """Score rows with the latest model."""
        rng = np.random.default_rng(0)
        while True:
            some = rng.choice(ids, 10, replace=False).tolist()
            await self._counted("score", HOLDER, commands.PredictRequest(self.terms.name, [some], "new"))
            await asyncio.sleep(1.0)

    async def status(self) -> None:
        """Ask the label holder's daemon how it is, ten times a second, and see how long that takes."""
        while True:
            began = time.perf_counter()
            if await self._counted("status", HOLDER, commands.StatusRequest()):
                self.latencies.append(time.perf_counter() - began)
            await asyncio.sleep(0.1)

    async def _counted(self, what: str, party: str, request: commands.Request) -> bool:
        """Ask, and count how it ended; what fails while nobody is away, or was meanwhile, needs a reason."""
        away, restarts = self.away, self.counts["restarts"]
        reason: str | None = "nothing was answered"
        try:
            async for message in commands.ask(self.settings[party], request):
                if isinstance(message, commands.FinalReply):
                    reason = message.error
        except (ColonnadeError, OSError) as error:
            reason = f"{type(error).__name__}: {error}"
            await asyncio.sleep(0.5)
        if reason is None:
            self.counts[f"{what} done"] += 1
        elif away or self.away or restarts != self.counts["restarts"]:
            self.counts[f"{what} cut by a restart"] += 1
        elif what == "score" and not self.counts["training done"]:
            self.counts["score before there was a model"] += 1
        else:
            self.counts[f"{what} failed"] += 1
            self.reasons[f"{what}: {reason}"] += 1
        return reason is None

    # -- the others ---------------------------------------------------------------------------------

    async def restart(self) -> None:
        """End one of the other daemons now and then, every second time by force, and start it again."""
        others = [party for party in MEASURES if party != HOLDER]
        for number in range(2**30):
            await asyncio.sleep(RESTART_S)
            self.away = party = others[number % len(others)]
            self.counts["restarts"] += 1
            self.processes[party].send_signal(signal.SIGKILL if number % 2 else signal.SIGTERM)
            await asyncio.to_thread(self.processes[party].wait)
            self.start(party)
            await asyncio.to_thread(self.connected)
            self.away = ""

    def connected(self) -> None:
        """Wait until every daemon has a line with every other; a busy machine takes minutes for that."""
        for _ in range(PATIENCE - 1):
            with contextlib.suppress(PeerUnreachable):
                wait_connected(self.settings)
                return
        wait_connected(self.settings)

    async def strangers(self, contexts: list[ssl.SSLContext]) -> None:
        """Dial every port: hold the line, send garbage, or show a certificate that nobody knows."""
        rng, held = np.random.default_rng(1), list[socket.socket]()
        while True:
            await asyncio.sleep(1 / STRANGERS_A_SECOND)
            party = list(MEASURES)[int(rng.integers(len(MEASURES)))]
            host, port = self.settings[party].listen.rsplit(":", 1)
            with contextlib.suppress(OSError):
                await asyncio.to_thread(stranger, (host, int(port)), int(rng.integers(3)), contexts, held)
                self.counts["strangers"] += 1
            while len(held) > 200:
                held.pop(0).close()

    # -- what they take -----------------------------------------------------------------------------

    async def sample(self, began: float, file: Path) -> None:
        """Write down what every daemon takes, every half minute."""
        while True:
            await asyncio.sleep(SAMPLE_S)
            self.take(time.monotonic() - began)
            self.write(file)

    def write(self, file: Path) -> None:
        """Write all that was seen so far."""
        p50, p99, worst = (float(q) * 1e3 for q in np.percentile(self.latencies or [0.0], [50, 99, 100]))
        found = {
            "minutes": round(self.samples[-1]["seconds"] / 60, 1),
            "counts": dict(self.counts),
            "reasons": dict(self.reasons),
            "status_ms": {"p50": round(p50, 2), "p99": round(p99, 2), "max": round(worst, 1)},
            "samples": self.samples,
        }
        file.write_text(json.dumps(found, indent=1))

    def take(self, seconds: float) -> None:
        """Write down what every daemon takes now."""
        taken = {party: usage(process.pid) for party, process in self.processes.items()}
        self.samples.append({"seconds": round(seconds), "daemons": taken, "counts": dict(self.counts)})
        words = " | ".join(
            f"{party} {one['mb']:.0f} MB {one['files']} files {one['threads']} threads"
            for party, one in taken.items()
            if one
        )
        recent = np.percentile(self.latencies[-300:] or [0.0], [50, 99]) * 1e3
        self.say(
            f"{seconds / 60:5.1f} min: {words}; status p50 {recent[0]:.1f} ms, p99 {recent[1]:.1f} ms; "
            f"{self.counts['training done']} trainings, {self.counts['score done']} scores, "
            f"{self.counts['strangers']} strangers, {self.counts['restarts']} restarts"
        )


def usage(pid: int) -> dict[str, float]:
    """The resident memory, open files, threads and children of a process; nothing if it is gone."""
    with contextlib.suppress(OSError, KeyError):  # gone, or about to be
        status = Path(f"/proc/{pid}/status").read_text()
        lines = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return {
            "mb": int(lines["VmRSS"].split()[0]) / 1024,
            "files": len(list(Path(f"/proc/{pid}/fd").iterdir())),
            "threads": int(lines["Threads"]),
            "children": len(children),
        }
    return {}


@contextlib.contextmanager
def standing(soak: Soak) -> Iterator[None]:
    """All daemons, connected, and stopped in the end."""
    try:
        for party in soak.settings:
            soak.start(party)
        soak.connected()
        yield
    finally:
        stop_all(list(soak.processes.values()))


async def _all_at_once(soak: Soak, minutes: float, ids: list[str], file: Path) -> None:
    began, context = time.monotonic(), unknown(file.parent / "strangers")
    work = [
        soak.train(),
        soak.score(ids),
        soak.status(),
        soak.restart(),
        soak.strangers([context]),
        soak.sample(began, file),
    ]
    tasks = [asyncio.ensure_future(each) for each in work]
    done, _ = await asyncio.wait(tasks, timeout=60 * minutes, return_when=asyncio.FIRST_EXCEPTION)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    soak.take(time.monotonic() - began)
    soak.write(file)
    for task in done:
        task.result()


def run(quick: bool, out: Path, say: Callable[[str], None], *, minutes: float = 60.0) -> list[Path]:
    """Run the daemons for so many minutes; writes what was seen to soak.json."""
    minutes = min(minutes, 2.0) if quick else minutes
    lay_out(out)
    settings = {}
    for party in MEASURES:
        file = out / "parties" / party / "party.toml"
        file.write_text(file.read_text() + LIMITS)
        settings[party] = read_settings(file)
    new = (out / "parties" / HOLDER / "new.csv").read_text().splitlines()[1:]
    soak = Soak(settings, read_terms(out / "job.toml"), say)
    file = out / "soak.json"
    with standing(soak):
        asyncio.run(_all_at_once(soak, minutes, [line.split(",")[0] for line in new], file))
    say(f"{json.dumps(dict(soak.counts))}; {json.dumps(dict(soak.reasons))}")
    return [file]
