"""Time to a sub-optimality by how many shares a party gives ahead, on any set, with either kind of straggler.

    python -m colonnade_bench.micro.shares_ahead [--sets phishing cod-rna] [--batch 64] [--speed 0.4]
                                                 [--seeds 2] [--out runs/shares-ahead]

Virtual time with this machine's kernels (`calibrate`), one of 8 parties slow, either a dominator or a passive
one, forwards for free or charged. `stale` is what the job says; where it says nothing, the default.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from colonnade_bench.calibrate import calibrated
from colonnade_bench.common import Grid
from colonnade_bench.linear.pace import Costs, machines
from colonnade_bench.linear.trials import PARTIES, Problem, Trace, problem, train

GAP = 1e-3
SLOW = {"dominator": 1, "passive": PARTIES - 1}
CHOICES: dict[str, dict[str, Any]] = {"default": {}, "none": {"stale": 0}, "all used": {"stale": 64}}


def compared(
    data: Problem, costs: Costs, *, batch: int, speed: float, seeds: int
) -> Iterator[tuple[str, str, str, float | None, float]]:
    """Who is slow, what forwards cost, the choice, times as fast as synchronous, microseconds a round."""
    terms: dict[str, Any] = {"batch": batch, "epochs": 40, "evaluate_every": 0.25}
    for (who, place), forwards in product(SLOW.items(), ("free", "charged")):
        speeds = [speed if k == place else 1.0 for k in range(PARTIES)]
        runs = partial(_runs, data, seeds, machines(costs, data, speeds, forwards=forwards == "charged"))
        base = mean_time(runs("vfb-svrg", terms))
        for choice, more in CHOICES.items():
            traces = runs("vfb2-svrg", {**terms, **more})
            took, (first, *_) = mean_time(traces), traces
            ratio = base / took if base and took else None
            yield who, forwards, choice, ratio, 1e6 * first.seconds / first.moments[-1].rounds


def _runs(
    data: Problem, seeds: int, network: dict[str, Any], algorithm: str, terms: dict[str, Any]
) -> list[Trace]:
    """A run to the gap for every seed."""
    return [
        train(data, algorithm, seed=seed, target=GAP, train=terms, network=network) for seed in range(seeds)
    ]


def mean_time(traces: Sequence[Trace], gap: float = GAP) -> float | None:
    """Mean seconds to the gap, if every run meets it."""
    found = [took for trace in traces if (took := trace.time_to(gap)) is not None]
    return statistics.mean(found) if len(found) == len(traces) else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sets", nargs="+", default=["uci-credit", "phishing", "cod-rna", "mnist-4v9"])
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--speed", type=float, default=0.4)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("runs") / "shares-ahead")
    given = parser.parse_args()
    rows: list[list[Any]] = []
    for name in given.sets:
        data, costs = problem(name), calibrated(given.out)
        for found in compared(data, costs, batch=given.batch, speed=given.speed, seeds=given.seeds):
            rows.append([name, *found])
            print(*rows[-1], flush=True)
    columns = ["set", "slow", "forwards", "shares ahead", "times as fast as synchronous", "us a round"]
    note = f"SVRG to {GAP:g}, batch {given.batch}, one of {PARTIES} parties at {given.speed:g}."
    print(Grid("Shares ahead", columns, rows, note).markdown())


if __name__ == "__main__":
    main()
