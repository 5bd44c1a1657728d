"""Estimates against what happened: `python -m colonnade_bench.deploy.estimates [--ms 10] [--only NAME]`.

Jobs between daemons of this machine over lines with a delay. Of each the proposer's daemon says
beforehand what it will cost; then it is trained, and its books say what it did cost.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from colonnade.deploy.books.journal import Ended, read_journal
from colonnade.deploy.books.spent import total
from colonnade.deploy.daemon import commands
from colonnade.deploy.terms.terms import Terms
from colonnade_bench.deploy.distant import Distant, made_up

SETTLED_S = 30.0  # that a party may take longer than the proposer
TWO, THREE = ("bank", "shop"), ("bank", "shop", "telecom")
CLEAR, BLIND = {"labels": "clear"}, {"labels": "blind"}
JOBS: dict[str, tuple[tuple[str, ...], str, dict[str, Any]]] = {
    "lbfgs, two, encrypted": (TWO, "lbfgs", {"secure": BLIND}),
    "lbfgs, three, dealer": (THREE, "lbfgs", {"secure": BLIND}),
    "lbfgs, three, hidden": (THREE, "lbfgs", {"secure": {**BLIND, "scores": "hidden"}}),
    "lbfgs, two, clear": (TWO, "lbfgs", {"secure": CLEAR}),
    "lbfgs, three, clear": (THREE, "lbfgs", {"secure": CLEAR}),
    "vfb2-svrg, three, blind": (THREE, "vfb2-svrg", {"secure": BLIND}),
    "vfb2-svrg, three, clear": (THREE, "vfb2-svrg", {"secure": CLEAR}),
    "secureboost, three, blind, 20 trees": (THREE, "secureboost", {"secure": BLIND, "train": {"epochs": 20}}),
    "secureboost, two, encrypted, 10 trees": (TWO, "secureboost", {"secure": BLIND, "train": {"epochs": 10}}),
    "split, three, networks": (
        THREE,
        "split",
        {"model": {"kind": "mlp", "outputs": 8, "server": {"kind": "linear"}}},
    ),
}


def compare(ms: float, mbps: float, rows: int, columns: int, only: str = "") -> Iterator[dict[str, Any]]:
    """Yield a row for every job: what was estimated, and what happened."""
    data = made_up(rows, columns)
    for names in (TWO, THREE):
        mine = {name: job for name, job in JOBS.items() if job[0] == names and only in name}
        if not mine:
            continue
        with (
            tempfile.TemporaryDirectory() as folder,
            Distant(Path(folder), names, data, ms, mbps) as companies,
        ):
            companies.wait_measured()
            for name, (_, algorithm, sections) in mine.items():
                yield {"job": name, **_compared(companies, companies.terms(algorithm, **sections))}


def _compared(companies: Distant, terms: Terms) -> dict[str, Any]:
    """Return what was estimated of a job, and what happened."""
    said = companies.ask(commands.EstimateCommand(terms))
    done = companies.ask(commands.TrainRequest(terms))
    happened = {
        "seconds": done["seconds"],
        "bytes": sum(sent_in(companies, party, done["run"]) for party in companies.names),
        "rounds": done["rounds"],
        "passes": done["epochs"],
    }
    return {"estimate": {key: said[key] for key in happened}, "happened": happened}


def sent_in(companies: Distant, party: str, run: str) -> int:
    """Return what a party sent in a run, by its journal, once the run is over there as well."""
    until = time.monotonic() + SETTLED_S
    while time.monotonic() < until:
        written, _ = read_journal(companies.settings[party].state / "journal.jsonl")
        for each in written:
            if isinstance(each, Ended) and each.run == run:
                return total(each.sent)
        time.sleep(0.1)
    raise TimeoutError(f"run {run} is not over at {party} after {SETTLED_S:g} s")


def main() -> None:
    """Print a row for every job."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ms", type=float, default=10.0, help="one way")
    parser.add_argument("--mbps", type=float, default=100.0)
    parser.add_argument("--rows", type=int, default=24_000)
    parser.add_argument("--columns", type=int, default=57)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    for row in compare(given.ms, given.mbps, given.rows, given.columns, given.only):
        said, done = row["estimate"], row["happened"]
        ratios = {key: round(said[key] / done[key], 2) if done[key] else None for key in said}
        print(json.dumps({**row, "estimate / happened": ratios}), flush=True)


if __name__ == "__main__":
    main()
