"""What every algorithm tells whom, by counting: UCI credit's size, four parties, one of them with the label.

    python -m colonnade_bench.micro.openings
    python -m colonnade_bench.micro.openings --tapped 2000 [--only lbfgs "lbfgs, blind"]

Figures follow from the plan alone, so nothing is trained; tests compare them with tapped transcripts. Where
noise bounds what is told of a label epsilon stands beside the bits.

With `--tapped` every run of the table is made, on so many rows of UCI credit, and all that crosses is
counted: bytes of messages that may tell something, and totals, 8 bytes each. Ends with an error if anything
crosses that is not declared.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from colonnade.errors import JobError, UndeclaredOpening
from colonnade.job.files import job_from
from colonnade.job.plan import Facts
from colonnade.job.presets import PRESETS
from colonnade.openings.account import heard
from colonnade.openings.opening import PRODUCT, TOTAL, Extent
from colonnade.result import Heard
from colonnade.run.federate import Tables, plan_for, prepare
from colonnade.run.registry import CONVERSATIONS
from colonnade.run.resolve import compose, resolve
from colonnade_bench.tapping import allowed, declared, tapped

ROWS, TEST = 24_000, 6_000
PRIVATE = {"epsilon": 1.0, "delta": 1e-5}  # of algorithms that demand it
ADDED: dict[str, dict[str, Any]] = {
    "two parties, lbfgs": {"algorithm": "lbfgs", "secure": {"labels": "blind"}, "parties": 2},
    "two parties, lbfgs, never": {
        "algorithm": "lbfgs",
        "secure": {"labels": "blind", "reveal": "never"},
        "parties": 2,
    },
    "lbfgs, blind": {"algorithm": "lbfgs", "secure": {"labels": "blind"}},
    "lbfgs, hidden": {"algorithm": "lbfgs", "secure": {"labels": "blind", "scores": "hidden"}},
    "lbfgs, noisy labels": {"algorithm": "lbfgs", "privacy": {"mechanism": "labels", **PRIVATE}},
    "vfb2-svrg, weights never": {"algorithm": "vfb2-svrg", "secure": {"labels": "blind", "reveal": "never"}},
    "vfb-sgd, hidden": {
        "algorithm": "vfb-sgd",
        "secure": {"labels": "blind", "scores": "hidden"},
        "train": {"step": 0.1},
    },
    "secureboost, blind": {"algorithm": "secureboost", "secure": {"labels": "blind"}},
    "split, noisy replies": {"algorithm": "split", "privacy": {"mechanism": "gradient", **PRIVATE}},
}
"""Modes that are no default of their algorithm."""
COLUMNS = {"party0": 6, "party1": 6, "party2": 6, "party3": 5}


def main() -> None:
    """Print a line for every algorithm, and for modes that are no default."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--tapped", type=int, metavar="ROWS", default=0)
    parser.add_argument("--only", nargs="+", default=[])
    given = parser.parse_args()
    jobs: dict[str, dict[str, Any]] = {**{name: {"algorithm": name} for name in PRESETS}, **ADDED}
    jobs = {name: jobs[name] for name in given.only or jobs}
    if given.tapped:
        print("| algorithm | declared, MB | crossed, MB | crossed of declared | s |")
        print("|---|---|---|---|---|")
        for name, job in jobs.items():
            print(tapped_line(name, job, given.tapped), flush=True)
        return
    print("| algorithm | labels, to another party | epsilon | columns of others, to the label holder |")
    print("|---|---|---|---|")
    for name, job in jobs.items():
        print(line_of(name, job))


def whole(job: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, int]]:
    """Return a job of the table with its data, and how many columns each of its parties has."""
    if job["algorithm"] == "vafl-dp":
        job = {**job, "privacy": PRIVATE}
    parties = job.get("parties", len(COLUMNS))
    full = {"data": {"train": "uci-credit", "parties": parties, "active": 1}, **job}
    full.pop("parties", None)
    return full, dict(list(COLUMNS.items())[:parties])


def line_of(name: str, job: Mapping[str, Any]) -> str:
    """Return a line of the table: what a run of this job tells, or why there is none."""
    full, columns = whole(job)
    facts = Facts(columns=columns, label_holders=("party0",), rows=ROWS, task="binary", classes=2)
    try:
        plan = resolve(compose(job_from(full)), facts)
    except JobError as error:
        return f"| `{name}` | refused: {str(error).split(';')[0]} | | |"
    told = heard(CONVERSATIONS[plan.conversation].openings(plan, Extent(ROWS, TEST, columns)), ROWS)
    labels = [each for each in told if each.about == "labels" and each.hearer != "party0"]
    held = [each for each in told if each.about == "columns" and each.hearer == "party0"]
    epsilon = f"{plan.privacy.epsilon:g}" if plan.privacy.mechanism != "none" else ""
    return f"| {_shown(name)} | {_worst(labels)} | {epsilon} | {_worst(held)} |"


def tapped_line(name: str, job: Mapping[str, Any], rows: int) -> str:
    """Return what a run of this job on so many rows declares, and what crosses in it; UndeclaredOpening if
    that is anything else."""
    full, columns = whole(job)
    made = job_from({**full, "world": "local", "compare": False})
    plan, data = plan_for(made, credit(len(columns), rows))
    began = time.perf_counter()
    due, seen = allowed(declared(plan, data)), tapped(plan, data)
    spent = time.perf_counter() - began
    if beyond := {key: (size, due[key]) for key, size in seen.items() if size > due[key]}:
        raise UndeclaredOpening(f"{name}: crossed and declared {beyond}")
    most, found = (sum(_bytes(key, size) for key, size in each.items()) for each in (due, seen))
    part = f"{found / most:.1%}" if most else "-"
    return f"| {_shown(name)} | {most / 1e6:,.3f} | {found / 1e6:,.3f} | {part} | {spent:.1f} |"


def credit(parties: int, rows: int) -> Tables:
    """Return the first rows of UCI credit, and a quarter as many to test on."""
    full, _ = whole({"algorithm": "vfb2-sgd", "secure": {"labels": "clear"}, "parties": parties})
    _, order = prepare(compose(job_from(full)))
    train, test = {}, {}
    for party, each in order.data.items():
        prepared = each.prepare()
        train[party] = prepared.train.take(np.arange(rows))
        if prepared.test is not None:
            test[party] = prepared.test.take(np.arange(rows // 4))
    return Tables("uci-credit", train, test, order.plan.label_holders)


def _bytes(key: tuple[str, int, str, str], size: int) -> int:
    """Return bytes of what crosses: of products none, which no message of their own has."""
    return {TOTAL: 8 * size, PRODUCT: 0}.get(key[0], size)


def _shown(name: str) -> str:
    return f"`{name}`" if name in PRESETS else name


def _worst(found: list[Heard]) -> str:
    """Return the most that one party hears of one other."""
    if not found:
        return "nothing"
    most = max(found, key=lambda each: each.bits)
    return f"{most.numbers:,} numbers, {most.per_row:.3g} bits a row"


if __name__ == "__main__":
    main()
