"""`lbfgs` in clear, with blind labels and with hidden scores, by dealers: loss, AUC, CPU time and bytes.

    python -m colonnade_bench.micro.dealt [--set a9a] [--parties 3] [--repeat 3]

All parties in one process, so seconds are those of all together, reading and the pooled fit apart; the least
of some runs, as others use the machine. Distances are from the pooled optimum, as a part of it.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

from colonnade.job import job_from
from colonnade.run.federate import plan_for
from colonnade.run.launch import launch
from colonnade.run.world import Launch
from colonnade_bench.linear.trials import L2, Problem, problem

WAYS: dict[str, dict[str, Any]] = {
    "clear": {"labels": "clear"},
    "blind": {"labels": "blind"},
    "hidden": {"labels": "blind", "scores": "hidden"},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--set", default="a9a", help="a data set of two classes")
    parser.add_argument("--parties", type=int, default=3)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    data = problem(options.set, options.parties)
    print(f"{options.set}, {data.rows:,} rows, {data.pooled.shape[1]} columns, {options.parties} parties")
    print("| run | passes | above the optimum | AUC | CPU s | MB |\n|---|---|---|---|---|---|")
    for name, secure in WAYS.items():
        print(min((_run(data, name, secure) for _ in range(options.repeat)), key=lambda row: row[0])[1])


def _run(data: Problem, name: str, secure: dict[str, Any]) -> tuple[float, str]:
    """Return the processor time of a run, and its row of the table."""
    tables = data.tables(1)
    job = job_from(
        {
            "algorithm": "lbfgs",
            "world": "local",
            "data": {"train": data.name, "parties": len(tables.train), "active": 1},
            "train": {"loss": "logistic", "l2": L2},
            "secure": secure,
        }
    )
    plan, parts = plan_for(job, tables)
    began = time.process_time()
    shares = launch(Launch(plan, parts))
    seconds = time.process_time() - began
    found = shares[plan.evaluator]
    gap = found.metrics["objective"] / data.optimum().loss - 1
    sent = sum(share.traffic.bytes_sent for share in shares.values()) / 1e6
    passes, auc = found.history[-1].epoch, found.metrics["test_auc"]
    return seconds, f"| {name} | {passes:g} | {100 * gap:.2f}% | {auc:.4f} | {seconds:.2f} | {sent:.0f} |"


if __name__ == "__main__":
    main()
