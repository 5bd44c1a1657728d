"""What every algorithm tells whom, by counting: UCI credit's size, four parties, one of them with the label.

    python -m colonnade_bench.micro.openings

Figures follow from the plan alone, so nothing is trained; tests compare them with tapped transcripts.
"""

from __future__ import annotations

from colonnade.errors import JobError
from colonnade.job.files import job_from
from colonnade.job.plan import Facts
from colonnade.job.presets import PRESETS
from colonnade.openings.account import Heard, heard
from colonnade.openings.opening import Extent
from colonnade.run.registry import CONVERSATIONS
from colonnade.run.resolve import compose, resolve

ROWS, TEST = 24_000, 6_000
COLUMNS = {"party0": 6, "party1": 6, "party2": 6, "party3": 5}


def main() -> None:
    """Print a line for every algorithm."""
    print("| algorithm | labels, to another party | columns of others, to the label holder |")
    print("|---|---|---|")
    for name in PRESETS:
        job = {"algorithm": name, "data": {"train": "credit", "parties": 4, "active": 1}}
        try:
            plan = resolve(compose(job_from(job)), _facts())
        except JobError as error:
            print(f"| `{name}` | refused: {str(error).split(';')[0]} | |")
            continue
        told = heard(CONVERSATIONS[plan.conversation].openings(plan, Extent(ROWS, TEST, COLUMNS)), ROWS)
        labels = [each for each in told if each.about == "labels" and each.hearer != "party0"]
        columns = [each for each in told if each.about == "columns" and each.hearer == "party0"]
        print(f"| `{name}` | {_worst(labels)} | {_worst(columns)} |")


def _facts() -> Facts:
    return Facts(columns=COLUMNS, label_holders=("party0",), rows=ROWS, task="binary", classes=2)


def _worst(found: list[Heard]) -> str:
    """Return the most that one party hears of one other."""
    if not found:
        return "nothing"
    most = max(found, key=lambda each: each.bits)
    return f"{most.numbers:,} numbers, {most.per_row:.3g} bits a row"


if __name__ == "__main__":
    main()
