"""What every algorithm tells whom, by counting: UCI credit's size, four parties, one of them with the label.

    python -m colonnade_bench.micro.openings

Figures follow from the plan alone, so nothing is trained; tests compare them with tapped transcripts. Where
noise bounds what is told of a label epsilon stands beside the bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from colonnade.errors import JobError
from colonnade.job.files import job_from
from colonnade.job.plan import Facts
from colonnade.job.presets import PRESETS
from colonnade.openings.account import heard
from colonnade.openings.opening import Extent
from colonnade.result import Heard
from colonnade.run.registry import CONVERSATIONS
from colonnade.run.resolve import compose, resolve

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
    print("| algorithm | labels, to another party | epsilon | columns of others, to the label holder |")
    print("|---|---|---|---|")
    for name, job in {**{name: {"algorithm": name} for name in PRESETS}, **ADDED}.items():
        print(line_of(name, job))


def line_of(name: str, job: Mapping[str, Any]) -> str:
    """Return a line of the table: what a run of this job tells, or why there is none."""
    if job["algorithm"] == "vafl-dp":
        job = {**job, "privacy": PRIVATE}
    parties = job.get("parties", len(COLUMNS))
    columns = dict(list(COLUMNS.items())[:parties])
    full = {"data": {"train": "credit", "parties": parties, "active": 1}, **job}
    full.pop("parties", None)
    facts = Facts(columns=columns, label_holders=("party0",), rows=ROWS, task="binary", classes=2)
    try:
        plan = resolve(compose(job_from(full)), facts)
    except JobError as error:
        return f"| `{name}` | refused: {str(error).split(';')[0]} | | |"
    told = heard(CONVERSATIONS[plan.conversation].openings(plan, Extent(ROWS, TEST, columns)), ROWS)
    labels = [each for each in told if each.about == "labels" and each.hearer != "party0"]
    held = [each for each in told if each.about == "columns" and each.hearer == "party0"]
    epsilon = f"{plan.privacy.epsilon:g}" if plan.privacy.mechanism != "none" else ""
    shown = f"`{name}`" if name in PRESETS else name
    return f"| {shown} | {_worst(labels)} | {epsilon} | {_worst(held)} |"


def _worst(found: list[Heard]) -> str:
    """Return the most that one party hears of one other."""
    if not found:
        return "nothing"
    most = max(found, key=lambda each: each.bits)
    return f"{most.numbers:,} numbers, {most.per_row:.3g} bits a row"


if __name__ == "__main__":
    main()
