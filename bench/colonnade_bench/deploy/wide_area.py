"""What must stay hidden, over a wide area: `python -m colonnade_bench.deploy.wide_area --ms 0 10 20`.

Every job is trained between three daemons at each one-way delay; a row says what it took. The lines are those
of `delay_line`, or real ones: with `--hosts w1=10.77.0.1 w2=10.77.0.2 w3=10.77.0.3` the daemons run in these
network namespaces, and `--line "COMMAND {ms} {mbps}"` is run before each delay. In the end it says what to
choose: the quickest of the linear models that hide the same; all end at the same loss.

With `--simulated` nothing is sent: every job is rehearsed over a line on a virtual clock, as for an estimate,
with a processor for each company. Other work on the machine counts for little there.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import shlex
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from colonnade.deploy.daemon import commands
from colonnade.deploy.process.estimating import EstimateRequest, estimated
from colonnade.deploy.terms.contract import check_terms
from colonnade.deploy.terms.paced import paced
from colonnade.deploy.terms.terms import Proposal
from colonnade_bench.deploy.distant import Distant, Host, Rows, made_up
from colonnade_bench.deploy.estimates import sent_in

NAMES = ("bank", "shop", "telecom")
CLEAR, HIDDEN = {"labels": "clear"}, {"labels": "blind"}
ALL_HIDDEN = {**HIDDEN, "scores": "hidden"}
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


def real(
    jobs: dict[str, tuple[str, dict[str, Any]]],
    rows: Rows,
    given: argparse.Namespace,
    hosts: dict[str, Host],
) -> Iterator[dict[str, Any]]:
    """Yield a row for each of these jobs and delays, over lines that are set to each delay first."""
    for ms in given.ms:
        if given.line:
            subprocess.run(shlex.split(given.line.format(ms=ms, mbps=given.mbps)), check=True)  # noqa: S603
        yield from measured(jobs, rows, ms, given.mbps, hosts)


def rehearsed(
    jobs: dict[str, tuple[str, dict[str, Any]]], rows: Rows, delays: list[float], mbps: float
) -> Iterator[dict[str, Any]]:
    """Yield a row for each of these jobs and delays, on a virtual clock."""
    with tempfile.TemporaryDirectory() as folder:
        companies = Distant(Path(folder), NAMES, rows)
        companies.lay_out()
        count, width = len(rows.y), rows.X.shape[1] // len(NAMES)
        for (name, (algorithm, sections)), ms in itertools.product(jobs.items(), delays):
            trip = 2 * ms / 1e3
            terms, _ = paced(check_terms(companies.terms(algorithm, **sections), "job"), count, trip)
            asked = EstimateRequest(
                settings=companies.settings[NAMES[0]],
                terms=Proposal(train=terms).written(),
                rows=count,
                columns=dict.fromkeys(NAMES, width),
                round_trip_s=trip,
                mbps=mbps,
            )
            found = asyncio.run(estimated(asked))
            yield {
                "job": name,
                "hidden": _hidden(sections["secure"]),
                "rows": count,
                "one_way_ms": ms,
                "seconds": round(found.waiting_s + found.computing_s, 1),
                "rounds": found.rounds,
                "MB": round(found.bytes / 1e6, 1),
            }


def _hidden(secure: dict[str, str]) -> str:
    """Return what no other company sees of the label holder's, in words."""
    if secure["labels"] == "clear":
        return "nothing"
    return "labels and scores" if "scores" in secure else "labels"


def chosen(found: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the quickest of linear models that hide the same, for each delay and number of rows."""
    linear = [each for each in found if "trees" not in each["job"]]
    for key, same in itertools.groupby(sorted(linear, key=_place), _place):
        quickest = min(same, key=lambda each: float(each["seconds"]))
        hidden, rows, ms = key
        yield {
            "hidden": hidden,
            "rows": rows,
            "one_way_ms": ms,
            "choose": quickest["job"],
            "seconds": quickest["seconds"],
        }


def _place(row: dict[str, Any]) -> tuple[str, int, float]:
    """Return what has to stay hidden, of how many rows, over which delay."""
    return row["hidden"], row["rows"], row["one_way_ms"]


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
    parser.add_argument("--simulated", action="store_true", help="rehearse on a virtual clock")
    given = parser.parse_args()
    hosts = dict(zip(NAMES, (Host(*each.split("=")) for each in given.hosts), strict=False))
    jobs = {name: job for name, job in JOBS.items() if any(each in name for each in given.only)}
    found = []
    for count in given.rows:
        rows = made_up(count, given.columns)
        if given.simulated:
            made = rehearsed(jobs, rows, given.ms, given.mbps)
        else:
            made = real(jobs, rows, given, hosts)
        for row in made:
            print(json.dumps(row), flush=True)
            found.append(row)
    for row in chosen(found):
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
