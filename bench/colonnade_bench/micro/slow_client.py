"""Test accuracy of VFL-CZOFO and AsyREVEL with and without a slow client, over several seeds.

    python -m colonnade_bench.micro.slow_client [--seeds 5] [--sets a9a] [--worlds network]

A seed draws the order of rows, the directions and the first weights, the same for both runs of a pair; the
rows that test stay the same. In the simulated world an answer of the slow client takes 1 / 0.4 times as long
on the virtual clock, between processes by work. What a pair differs by is the straggler and, since the runs
are then others, chance; the mean over seeds and its standard error tell the two apart. Differences of two
runs without a straggler and with other seeds are of the size of "+- of a run" times the root of two.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

from colonnade.job import job_from
from colonnade.run.federate import federate
from colonnade_bench.common import Bench, Grid
from colonnade_bench.pairs import HEADS, SPEED, Pairs

WORLDS = ("simulated", "network")
SETS = ("a9a", "uci-credit")
ALGORITHMS: dict[str, dict[str, Any]] = {
    "czofo": {
        "data": {"parties": 4, "server": "apart"},
        "model": {"outputs": 2, "server": {"kind": "linear"}},
        "cascade": {"directions": 10},
    },
    "asyrevel-gau": {"data": {"parties": 8, "active": 1}},
}


def accuracy(algorithm: str, name: str, world: str, slowest: float, seed: int) -> float:
    """Test accuracy in per cent, the last client at this speed."""
    sections = ALGORITHMS[algorithm]
    count = sections["data"]["parties"] + ("server" in sections["data"])
    # an answer takes a millisecond on the virtual clock, so that computing is what takes time
    clock = {"us_per_call": 1e3, "ns_per_value": 0.0} if world == "simulated" else {}
    job = {
        "algorithm": algorithm,
        "world": world,
        "seed": seed,
        "compare": False,
        "secure": {"labels": "clear"},
        "train": {"epochs": 20, "batch": 256, "evaluate_every": 0, "tolerance": 0.0},
        "network": {"speeds": [1.0] * (count - 1) + [slowest], **clock},
        **sections,
        "data": {"train": name, **sections["data"]},
    }
    return 100 * federate(job_from(job)).result.metrics["test_accuracy"]


def row_of(algorithm: str, name: str, world: str, seeds: int) -> list[Any]:
    """A row of the table: both accuracies and their difference, with means over seeds and spreads."""
    without, slowed = (
        [accuracy(algorithm, name, world, slowest, seed) for seed in range(seeds)] for slowest in (1.0, SPEED)
    )
    return [algorithm, name, world, seeds, *Pairs(without, slowed).cells()]


def table(algorithms: Sequence[str], sets: Sequence[str], worlds: Sequence[str], seeds: int) -> Grid:
    """Rows of all of these, printed as they come."""
    rows = []
    for name, algorithm, world in product(sets, algorithms, worlds):
        rows.append(row_of(algorithm, name, world, seeds))
        print(*(f"{cell:.4g}" if isinstance(cell, float) else cell for cell in rows[-1]), flush=True)
    heads = ["algorithm", "data", "world", "seeds", *HEADS]
    return Grid("Accuracy with a slow client", heads, rows, "20 epochs of batch 256, automatic steps.")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--algorithms", nargs="+", choices=ALGORITHMS, default=tuple(ALGORITHMS))
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--worlds", nargs="+", choices=WORLDS, default=WORLDS)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    bench = Bench("slow_client", "Accuracy with a slow client", quick=False)
    bench.grids.append(table(given.algorithms, given.sets, given.worlds, given.seeds))
    print(bench.grids[0].markdown())
    if given.out is not None:
        bench.write(given.out)


if __name__ == "__main__":
    main()
