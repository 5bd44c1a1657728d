"""What a slow client costs, by which client is slow and how long a run is, on the virtual clock.

    python -m colonnade_bench.czofo.slow_updates [--part gmsc] [--frameworks czofo-ef] [--epochs 20]
                                                 [--slow 0 1] [--longer] [--seeds 12] [--jobs 2]
                                                 [--out runs/slow-updates]

A run has as many answers as its job says, so the quick client gets more of them where the other is slow, and
the slow one fewer updates than in a run of equals. Every run has a twin of the same seed in which both are
equally quick. With `--longer` there are also runs with so many more epochs that the slow client makes as many
updates as in the twin: what is left of a difference there does not come from too few updates. Settings are
those of `slow`.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from itertools import product
from multiprocessing import get_context
from pathlib import Path

import msgspec

from colonnade.run.federate import run_tables
from colonnade_bench.common import Bench, Grid, kept
from colonnade_bench.czofo.case import job_of
from colonnade_bench.czofo.cases import cases_of
from colonnade_bench.czofo.data import experiment
from colonnade_bench.pairs import HEADS, SPEED, Pairs

CLIENTS = 2
# an answer takes a millisecond on the virtual clock, so that computing is what takes time
CLOCK = {"us_per_call": 1e3, "ns_per_value": 0.0}
LONGER = 1.5


@dataclass(frozen=True)
class Asked:
    """One run: its framework, length and seed, and which client is slow, if one is."""

    part: str
    framework: str
    epochs: int
    seed: int
    slow: int | None = None

    @property
    def name(self) -> str:
        who = "none" if self.slow is None else str(self.slow)
        return f"{self.part}-{self.framework}-{self.epochs}-{self.seed}-{who}"


@dataclass(frozen=True)
class Ended:
    """What a run gave: test accuracy in per cent, training loss, and every client's updates."""

    accuracy: float
    loss: float
    updates: list[int]


def run(asked: Asked) -> Ended:
    """Train on the virtual clock."""
    found = next(case for case in cases_of(asked.part, quick=False) if case.name == asked.framework)
    train = {**found.train, "epochs": asked.epochs, "evaluate_every": 0}
    case = msgspec.structs.replace(found, world="simulated", seed=asked.seed, train=train)
    assigned, tables = experiment(case.dataset, CLIENTS, case.rows, case.validation)
    job = job_of(case, len(assigned.labels.classes))
    speeds = [1.0, *(SPEED if client == asked.slow else 1.0 for client in range(CLIENTS))]
    network = msgspec.structs.replace(job.network, speeds=speeds, **CLOCK)
    result = run_tables(msgspec.structs.replace(job, network=network), tables).result
    updates = [count for party, count in result.cost.updates_by_party.items() if party != "server"]
    return Ended(100 * result.metrics["test_accuracy"], result.metrics["objective"], updates)


def known(asked: Asked, folder: Path) -> Ended:
    """What a run gave, now or before."""
    path = folder / f"{asked.name}.json"
    return Ended(**kept(path, asdict(asked), lambda: asdict(run(asked))))


def row_of(label: str, twins: Sequence[Ended], slowed: Sequence[Ended]) -> list[object]:
    """A row: accuracies and their differences, the difference of losses with its error, mean updates."""
    pairs = Pairs([run.accuracy for run in twins], [run.accuracy for run in slowed])
    losses = Pairs([run.loss for run in twins], [run.loss for run in slowed])
    updates = ", ".join(
        f"{statistics.mean(counts):.0f}" for counts in zip(*(r.updates for r in slowed), strict=True)
    )
    cells = pairs.cells()
    return [label, len(twins), *cells, f"{losses.mean:+.5f}", f"{losses.error:.5f}", updates]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--part", default="gmsc", choices=["a9a", "gmsc"])
    parser.add_argument("--frameworks", nargs="+", default=["czofo-ef"])
    parser.add_argument("--epochs", type=int, nargs="+", default=[20])
    parser.add_argument("--slow", type=int, nargs="+", default=[0, 1], choices=range(CLIENTS))
    parser.add_argument("--longer", action="store_true")
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("runs") / "slow-updates")
    given = parser.parse_args()
    folder, seeds = given.out / "runs", range(given.seeds)

    def all_of(framework: str, epochs: int, slow: int | None) -> list[Asked]:
        return [Asked(given.part, framework, epochs, seed, slow) for seed in seeds]

    cases = [
        (framework, epochs, slow, int(times * epochs))
        for framework, epochs in product(given.frameworks, given.epochs)
        for times, slow in product((1, LONGER) if given.longer else (1,), given.slow)
    ]
    wanted = [asked for f, e, s, n in cases for asked in (*all_of(f, e, None), *all_of(f, n, s))]
    with ProcessPoolExecutor(given.jobs, mp_context=get_context("spawn")) as pool:
        list(pool.map(known, dict.fromkeys(wanted), [folder] * len(wanted)))
    rows = []
    for framework, epochs, slow, length in cases:
        twins = [known(asked, folder) for asked in all_of(framework, epochs, None)]
        slowed = [known(asked, folder) for asked in all_of(framework, length, slow)]
        how = f"client {slow} slow" if length == epochs else f"client {slow} slow, {length} epochs"
        rows.append([framework, epochs, *row_of(how, twins, slowed)])
    columns = ["framework", "epochs", "run", "seeds", *HEADS, "training loss", "+- of that", "updates"]
    bench = Bench("slow_updates", "A slow client and its updates", quick=False)
    note = f"{given.part}, 2 clients and a server apart, simulated; the slow one at {SPEED}."
    bench.grids.append(Grid("A slow client and its updates", columns, rows, note))
    print(bench.grids[0].markdown())
    bench.write(given.out)


if __name__ == "__main__":
    main()
