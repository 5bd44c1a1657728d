"""Time to a sub-optimality by how many batches are in flight, over networks of different latency.

    python -m colonnade_bench.micro.in_flight [--sets a9a phishing] [--latencies 0.1 1 5 20] [--holders 1 2]
                                              [--seeds 2] [--out runs/in-flight]

Virtual time with this machine's kernels (`calibrate`), 4 parties, 100 Mb/s, labels in clear. `ahead` is 1, 2,
4 and 8 for every label holder; 1 is the default. A cell is how many times as fast as the default a run is.
"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path
from typing import Any

from colonnade_bench.calibrate import calibrated
from colonnade_bench.common import Grid
from colonnade_bench.linear.pace import machines
from colonnade_bench.linear.trials import Problem, problem, train
from colonnade_bench.micro.shares_ahead import mean_time

GAP, PARTIES = 1e-3, 4
AHEAD = (1, 2, 4, 8)
ESTIMATORS = ("svrg", "saga")


def times(
    data: Problem, network: dict[str, Any], algorithm: str, holders: int, seeds: int
) -> list[float | None]:
    """Mean seconds to the gap, for every number of batches in flight."""
    found = []
    for ahead in AHEAD:
        terms = {"epochs": 60, "evaluate_every": 0.25, "ahead": ahead * holders}
        runs = [
            train(data, algorithm, active=holders, seed=seed, target=GAP, train=terms, network=network)
            for seed in range(seeds)
        ]
        found.append(mean_time(runs, GAP))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sets", nargs="+", default=["a9a", "phishing"])
    parser.add_argument("--latencies", type=float, nargs="+", default=[0.1, 1, 5, 20], help="one way, ms")
    parser.add_argument("--holders", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("runs") / "in-flight")
    given = parser.parse_args()
    costs, rows = calibrated(given.out), []
    for name, holders, latency in product(given.sets, given.holders, given.latencies):
        data = problem(name, PARTIES)
        link = {"latency_ms": latency, "bandwidth_mbps": 100.0}
        network = {**machines(costs, data, [1.0] * PARTIES, forwards=True), **link}
        for estimator in ESTIMATORS:
            base, *more = times(data, network, f"vfb2-{estimator}", holders, given.seeds)
            cells = [base / took if base and took else None for took in more]
            rows.append([name, estimator, holders, latency, base, *cells])
            print(*rows[-1], flush=True)
    columns = ["set", "estimator", "label holders", "latency, ms", "seconds by default"]
    columns += [f"ahead = {ahead} a holder" for ahead in AHEAD[1:]]
    note = f"Virtual time to {GAP:g}, {PARTIES} parties, 100 Mb/s; times as fast as by default."
    print(Grid("Batches in flight", columns, rows, note).markdown())


if __name__ == "__main__":
    main()
