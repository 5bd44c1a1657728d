"""`lbfgs` in clear, with blind labels and with hidden scores, by dealers: loss, AUC, CPU time and bytes.

    python -m colonnade_bench.micro.dealt [--set a9a] [--parties 3] [--repeat 3]
    python -m colonnade_bench.micro.dealt --wan 0 40 [--shape 24000x57]

All parties in one process, so seconds are those of all together, reading and the pooled fit apart; the least
of some runs, as others use the machine. Distances are from the pooled optimum, as a part of it.

With --wan made-up columns are trained on a simulated network with these delays, one way, in ms, and 100
Mbit/s a link, where what parties compute is charged by a cost model. Beside them `vfb2-saga`, which was the
way to blind labels of three parties before.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

from colonnade.data.table import INTERCEPT, Table
from colonnade.job import job_from
from colonnade.run.federate import Tables, plan_for, run_tables
from colonnade.run.launch import launch
from colonnade.run.world import Launch
from colonnade_bench.deploy.distant import made_up
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
    parser.add_argument("--wan", nargs="*", type=float, help="seconds of a network with these delays, in ms")
    parser.add_argument("--shape", default="24000x57", help="rows and columns that --wan makes up")
    options = parser.parse_args()
    if options.wan is not None:
        _distant(options.shape, options.parties, options.wan)
        return
    data = problem(options.set, options.parties)
    print(f"{options.set}, {data.rows:,} rows, {data.pooled.shape[1]} columns, {options.parties} parties")
    print("| run | passes | above the optimum | AUC | CPU s | MB |\n|---|---|---|---|---|---|")
    for name, secure in WAYS.items():
        print(min((_run(data, name, secure) for _ in range(options.repeat)), key=lambda row: row[0])[1])


def tables_of(shape: str, parties: int) -> dict[str, Table]:
    """Return made-up columns of this many rows and columns; the first party holds the label."""
    rows, columns = map(int, shape.split("x"))
    X, y = made_up(rows, columns)
    ones = np.ones((rows, 1))
    tables = {}
    for k, part in enumerate(np.array_split(np.arange(columns), parties)):
        name, names = f"party{k}", tuple(f"x{j}" for j in part)
        own = X[:, part].copy()
        tables[name] = (
            Table(name, names, own)
            if k
            else Table(name, (*names, INTERCEPT), np.hstack([own, ones]), np.where(y > 0, 1.0, -1.0))
        )
    return tables


def _distant(shape: str, parties: int, delays: list[float]) -> None:
    """Print how long each way takes over a wide area."""
    tables = tables_of(shape, parties)
    print(f"made up, {shape}, {parties} parties: seconds at " + ", ".join(f"{ms:g} ms" for ms in delays))
    print(
        "| run | rounds | MB | "
        + " | ".join(f"{ms:g} ms" for ms in delays)
        + f" |\n|{'---|' * (3 + len(delays))}"
    )
    for algorithm, name in [*(("lbfgs", way) for way in WAYS), ("vfb2-saga", "blind")]:
        times = []
        for ms in delays:
            job = job_from(
                {
                    "algorithm": algorithm,
                    "world": "simulated",
                    "compare": False,
                    "data": {"train": "made-up", "parties": parties, "active": 1},
                    "train": {"loss": "logistic"},
                    "secure": WAYS[name],
                    "network": {"latency_ms": ms, "bandwidth_mbps": 100.0},
                }
            )
            cost = run_tables(job, Tables("made-up", tables, None, ("party0",))).result.cost
            times.append(f"{cost.virtual_seconds or 0.0:.1f}")
        sent = f"{cost.bytes_sent / 1e6:.0f}"
        print(f"| {algorithm}, {name} | {cost.rounds} | {sent} | {' | '.join(times)} |", flush=True)


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
