"""What must stay hidden, over a wide area: `python -m colonnade_bench.deploy.wide_area --ms 0 10 20`.

Every job is trained between three daemons at each one-way delay; a row says what it took. The lines are those
of `delay_line`, or real ones: with `--hosts w1=10.77.0.1 w2=10.77.0.2 w3=10.77.0.3` the daemons run in these
network namespaces, and `--line "COMMAND {ms} {mbps}"` is run before each delay.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from colonnade.deploy.daemon import commands
from colonnade_bench.deploy.distant import Distant, Host, Rows, made_up
from colonnade_bench.deploy.estimates import sent_in

NAMES = ("bank", "shop", "telecom")
HIDDEN, CLEAR = {"labels": "blind"}, {"labels": "clear"}
TREES = {"epochs": 100}
JOBS: dict[str, tuple[str, dict[str, Any]]] = {
    "vfb2-svrg, hidden, one batch at a time": ("vfb2-svrg", {"secure": HIDDEN, "train": {"ahead": 1}}),
    "vfb2-svrg, hidden, as it comes": ("vfb2-svrg", {"secure": HIDDEN}),
    "vfb2-svrg, hidden, batch 1024, 2 ahead": (
        "vfb2-svrg",
        {"secure": HIDDEN, "train": {"batch": 1024, "ahead": 2}},
    ),
    "lbfgs, hidden": ("lbfgs", {"secure": HIDDEN}),
    "lbfgs, clear": ("lbfgs", {"secure": CLEAR}),
    "100 trees, clear": ("secureboost", {"secure": CLEAR, "train": TREES}),
    "100 trees, hidden": ("secureboost", {"secure": HIDDEN, "train": TREES}),
}


def measured(
    jobs: dict[str, tuple[str, dict[str, Any]]],
    rows: Rows,
    ms: float,
    mbps: float,
    hosts: dict[str, Host],
) -> Iterator[dict[str, Any]]:
    """Yield a row for each of these jobs over lines with this delay."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Distant(Path(folder), NAMES, rows, ms, mbps, hosts=hosts) as companies,
    ):
        companies.wait_measured()
        for name, (algorithm, sections) in jobs.items():
            load = os.getloadavg()[0]
            done = companies.ask(commands.TrainRequest(companies.terms(algorithm, **sections)))
            yield {
                "job": name,
                "round_trip_ms": round(companies.round_trip_ms(), 1),
                "seconds": round(done["seconds"], 1),
                "rounds": done["rounds"],
                "MB": round(sum(sent_in(companies, each, done["run"]) for each in NAMES) / 1e6, 1),
                "test_auc": round(done["metrics"]["test_auc"], 4),
                "load": round(load, 1),
            }


def main() -> None:
    """Print a row for every job and delay."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ms", type=float, nargs="+", default=[0.0, 10.0, 20.0], help="one way")
    parser.add_argument("--mbps", type=float, default=100.0)
    parser.add_argument("--rows", type=int, default=24_000)
    parser.add_argument("--columns", type=int, default=57)
    parser.add_argument("--only", default="")
    parser.add_argument("--hosts", nargs="*", default=[], metavar="NAMESPACE=ADDRESS")
    parser.add_argument("--line", default="", help="sets the delay between the hosts")
    given = parser.parse_args()
    hosts = dict(zip(NAMES, (Host(*each.split("=")) for each in given.hosts), strict=False))
    rows = made_up(given.rows, given.columns)
    jobs = {name: job for name, job in JOBS.items() if given.only in name}
    for ms in given.ms:
        if given.line:
            subprocess.run(shlex.split(given.line.format(ms=ms, mbps=given.mbps)), check=True)  # noqa: S603
        for row in measured(jobs, rows, ms, given.mbps, hosts):
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
