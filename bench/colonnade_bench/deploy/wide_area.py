"""What must stay hidden, over a wide area: `python -m colonnade_bench.deploy.wide_area --ms 0 10 20`.

Every job is trained between three daemons at each one-way delay; a row says what it took. The lines are those
of `delay_line`, or real ones: with `--hosts w1=10.77.0.1 w2=10.77.0.2 w3=10.77.0.3` the daemons run in these
network namespaces, and `--line "COMMAND {ms} {mbps}"` is run before each delay. In the end it says what to
choose: of the jobs that hide the same, the quickest whose AUC is not more than 0.01 below the best.
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
CLEAR, HIDDEN = {"labels": "clear"}, {"labels": "blind"}
ALL_HIDDEN = {**HIDDEN, "scores": "hidden"}
AS_GOOD = 0.01  # how much of the AUC a quicker job may cost
TREES = {"epochs": 100}
JOBS: dict[str, tuple[str, dict[str, Any]]] = {
    "vfb2-svrg, hidden, one batch at a time": ("vfb2-svrg", {"secure": HIDDEN, "train": {"ahead": 1}}),
    "vfb2-svrg, hidden, as it comes": ("vfb2-svrg", {"secure": HIDDEN}),
    "vfb2-svrg, hidden, batch 1024, 2 ahead": (
        "vfb2-svrg",
        {"secure": HIDDEN, "train": {"batch": 1024, "ahead": 2}},
    ),
    "lbfgs, hidden": ("lbfgs", {"secure": HIDDEN}),
    "lbfgs, hidden with all scores": ("lbfgs", {"secure": ALL_HIDDEN}),
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
                "hidden": _hidden(sections["secure"]),
                "rows": len(rows.y),
                "one_way_ms": ms,
                "round_trip_ms": round(companies.round_trip_ms(), 1),
                "seconds": round(done["seconds"], 1),
                "rounds": done["rounds"],
                "MB": round(sum(sent_in(companies, each, done["run"]) for each in NAMES) / 1e6, 1),
                "test_auc": round(done["metrics"]["test_auc"], 4),
                "load": round(load, 1),
            }


def _hidden(secure: dict[str, str]) -> str:
    """Return what no other company sees of the label holder's, in words."""
    if secure["labels"] == "clear":
        return "nothing"
    return "labels and scores" if "scores" in secure else "labels"


def chosen(found: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield which job to choose of those that hide the same, for each delay and number of rows."""
    for hidden, ms, rows in dict.fromkeys(
        (each["hidden"], each["one_way_ms"], each["rows"]) for each in found
    ):
        same = [
            each for each in found if (each["hidden"], each["one_way_ms"], each["rows"]) == (hidden, ms, rows)
        ]
        best = max(each["test_auc"] for each in same)
        quickest = min(
            (each for each in same if each["test_auc"] >= best - AS_GOOD),
            key=lambda each: float(each["seconds"]),
        )
        yield {
            "hidden": hidden,
            "one_way_ms": ms,
            "rows": rows,
            "choose": quickest["job"],
            "seconds": quickest["seconds"],
            "of": len(same),
        }


def main() -> None:
    """Print a row for every job and delay."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ms", type=float, nargs="+", default=[0.0, 10.0, 20.0], help="one way")
    parser.add_argument("--mbps", type=float, default=100.0)
    parser.add_argument("--rows", type=int, nargs="+", default=[24_000])
    parser.add_argument("--columns", type=int, default=57)
    parser.add_argument("--only", nargs="+", default=[""], metavar="TEXT", help="jobs whose names have it")
    parser.add_argument("--hosts", nargs="*", default=[], metavar="NAMESPACE=ADDRESS")
    parser.add_argument("--line", default="", help="sets the delay between the hosts")
    given = parser.parse_args()
    hosts = dict(zip(NAMES, (Host(*each.split("=")) for each in given.hosts), strict=False))
    jobs = {name: job for name, job in JOBS.items() if any(each in name for each in given.only)}
    found = []
    for count in given.rows:
        rows = made_up(count, given.columns)
        for ms in given.ms:
            if given.line:
                subprocess.run(shlex.split(given.line.format(ms=ms, mbps=given.mbps)), check=True)  # noqa: S603
            for row in measured(jobs, rows, ms, given.mbps, hosts):
                print(json.dumps(row), flush=True)
                found.append(row)
    for row in chosen(found):
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
