"""How much faster training is with more parties: real processes, and what the simulated world predicts.

    python -m colonnade_bench.micro.processes [--splits arithmetic work figure pull] [--parties 1 2 4 8 16]
                                              [--repeat 2] [--json FILE]

The same columns are cut among q parties, and all runs make the same number of batches with a fixed step,
asynchronous and synchronous: in the network world (mutual TLS on loopback, a process per party, masked sums)
and in the simulated world. Times are those of the second half of a run. Splits:
- arithmetic: VFB2, two label holders, 2,048 dense columns in batches of 1,024 rows;
- work: VFB2, two label holders, 64 columns in batches of 64 rows, and 16 ms of computing for every update, of
  which every party has its part; as `stragglers parties`;
- figure: VFB2 with columns and batches of the papers' figures of speed-up (784 dense columns, 256 rows);
- pull: AsySQN with the same, all parties hold the label.

What the simulation charges is measured on this machine, and never in a run of several processes that train:
- a value: scores and gradients of a block as a party has it, in as many processes at once as parties;
- a call: what a party's program does for a round beside numbers and messages: a run of as many parties in one
  process, one column each, divided by its rounds, its parties and the calls that each makes in a round;
- messages: a hub process and its peers that only talk (`message_costs`).

`free` is the simulated speed-up if messages cost nothing, as they do unless a job says otherwise. The machine
needs a core for every party, or processes wait for each other's.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from itertools import repeat
from pathlib import Path
from statistics import fmean

import numpy as np
from threadpoolctl import threadpool_limits

from colonnade.models.linear import rows_of
from colonnade.result import Moment, Result
from colonnade_bench.message_costs import MessageCosts, message_costs
from colonnade_bench.micro.stragglers import Row, finished, seconds, tables, trained

BACKWARD = {"asynchronous": "vfb2-sgd", "synchronous": "vfb-sgd"}
PULL = {"asynchronous": "asysqn-sgd", "synchronous": "synsqn-sgd"}
ALONE = {"vfb2-sgd": "vfb-sgd"}  # what an algorithm's program is timed with, where its own joins calls
FREE = MessageCosts(0.0, 0.0, 0.0)
KERNELS_S = 0.3  # seconds for which processes compute at once, to be timed
WORLDS = {"simulated": "simulated", "free": "simulated", "real": "network"}


@dataclass(frozen=True)
class Split:
    """What is cut among the parties: columns, and computing that stands for more of them."""

    rows: int
    columns: int
    batch: int
    epochs: int
    work_ms: float = 0.0
    algorithms: Mapping[str, str] = field(default_factory=lambda: BACKWARD)

    @property
    def pulls(self) -> bool:
        """Whether every party pulls scores for itself."""
        return self.algorithms is PULL

    @property
    def rounds(self) -> int:
        """How many batches a pass has."""
        return -(-self.rows // self.batch)

    def train(self, algorithm: str) -> Row:
        """The `[train]` section: one order of the rows, since copying them is not charged."""
        terms = {"batch": self.batch, "epochs": self.epochs, "reshuffle": False}
        terms |= {"evaluate_every": self.epochs // 2}
        return terms | ({"ahead": 2} if algorithm == PULL["asynchronous"] else {})

    def calls(self, algorithm: str, parties: int) -> int:
        """Calls of a party for a round: its share and its update, and shares of what every other pulls."""
        return 1 + parties if algorithm == PULL["asynchronous"] else 2


SPLITS = {
    "arithmetic": Split(rows=4096, columns=2048, batch=1024, epochs=120),
    "work": Split(rows=3840, columns=64, batch=64, epochs=4, work_ms=16.0),
    "figure": Split(rows=2560, columns=784, batch=256, epochs=80),
    "pull": Split(rows=2560, columns=784, batch=256, epochs=40, algorithms=PULL),
}


@dataclass(frozen=True)
class Costs:
    """What one party's computing costs on this machine."""

    ns_per_value: float
    us_per_call: float

    def network(self, split: Split, parties: int) -> Row:
        """The `[network]` section that both worlds get: with work, an update is one call of all it takes."""
        if not split.work_ms:
            return asdict(self)
        work = split.work_ms / parties
        us = 1e3 * work + 2 * self.us_per_call
        return {"work_ms": work, "us_per_call": us, "ns_per_value": 0.0, "charge_forward": False}


def computing(split: Split, algorithm: str, parties: int) -> Costs:
    """Measure what computing costs a party that has its part of the columns."""
    value = value_seconds(split.rows, -(-split.columns // parties), split.batch, parties)
    program = program_seconds(ALONE.get(algorithm, algorithm), parties, split.batch, all_hold=split.pulls)
    return Costs(1e9 * value, 1e6 * program / split.calls(algorithm, parties))


@cache
def value_seconds(rows: int, columns: int, batch: int, at_once: int) -> float:
    """Seconds that a kernel takes for one number of a dense block, in so many processes at once."""
    given = repeat((rows, columns, batch), at_once)
    with multiprocessing.get_context("fork").Pool(at_once) as pool:
        return fmean(pool.starmap(_value_seconds, given, chunksize=1))


def _value_seconds(rows: int, columns: int, batch: int) -> float:
    """The same in this process, batch after batch as in training: the median of all passes."""
    rng = np.random.default_rng(0)
    block = rows_of(rng.standard_normal((rows, columns)))
    w, theta = rng.standard_normal(columns), rng.standard_normal(rows)
    times: list[float] = []
    while len(times) < 5 or sum(times) < KERNELS_S:
        began = time.perf_counter()
        for start in range(0, rows, batch):
            end = min(start + batch, rows)
            block.scores(start, end, w)
            block.gradient(start, end, theta[start:end])
        times.append(time.perf_counter() - began)
    return float(np.median(times)) / (2 * rows * columns)


@cache
def program_seconds(algorithm: str, parties: int, batch: int, *, all_hold: bool) -> float:
    """Seconds that a round takes a party beside numbers and messages: masks, bookkeeping, theta."""
    data = tables(parties, parties if all_hold else 1, rows=4 * batch, columns=parties)
    train = {"batch": batch, "epochs": 50, "reshuffle": False}
    runs = [trained(algorithm, "local", data, train, {}) for _ in range(3)]
    return min(map(seconds, runs)) / (50 * 4 * parties)


def round_seconds(split: Split, result: Result) -> float:
    """Seconds of a round in the second half of a run: what it begins with is not counted."""
    half, end = result.history[-2:]
    return (when(end) - when(half)) / (split.rounds * (end.epoch - half.epoch))


def when(moment: Moment) -> float:
    """The time of a moment on the run's own clock."""
    return moment.seconds if moment.virtual_seconds is None else moment.virtual_seconds


def measured(split: Split, counts: Sequence[int], messages: MessageCosts, repeats: int) -> Iterator[Row]:
    """Real and simulated times of a split, for every number of parties, asynchronous and synchronous."""
    for kind, algorithm in split.algorithms.items():
        first: Row = {}
        for q in counts:
            costs = computing(split, algorithm, q)
            net = costs.network(split, q)
            nets = {"simulated": net | messages.network(), "free": net | FREE.network(), "real": net}
            data = tables(q, q if split.pulls else min(q, 2), split.rows, split.columns)
            runs = {
                name: [
                    finished(algorithm, world, data, split.train(algorithm), nets[name])
                    for _ in range(repeats if name == "real" else 1)
                ]
                for name, world in WORLDS.items()
            }
            times = {
                name: min(round_seconds(split, run.result) for run in each) for name, each in runs.items()
            }
            first = first or times
            yield {
                "kind": kind,
                "parties": q,
                **asdict(costs),
                **{f"{name} ms": 1e3 * times[name] for name in runs},
                **{name: first[name] / times[name] for name in runs},
                "all real ms": [1e3 * round_seconds(split, run.result) for run in runs["real"]],
                "processor s": [[each.cpu_seconds for each in run.shares.values()] for run in runs["real"]],
                "real s": [run.result.cost.seconds for run in runs["real"]],
                "delays": {name: each[0].result.staleness.mean for name, each in runs.items()},
                "messages": {name: each[0].result.cost.messages for name, each in runs.items()},
            }


HEADER = f"{'':14}{'parties':>8}{'real ms':>10}{'simulated':>10}{'speed-up':>10}{'simulated':>10}{'free':>7}"


def line(row: Row) -> str:
    """A row of the table: milliseconds of a round, and speed-ups."""
    return (
        f"{row['kind']:14}{row['parties']:8}{row['real ms']:10.3f}{row['simulated ms']:10.3f}"
        f"{row['real']:10.2f}{row['simulated']:10.2f}{row['free']:7.2f}"
        f"   {row['ns_per_value']:.3f} ns a value, {row['us_per_call']:.0f} us a call"
    )


def main() -> None:
    """Measure costs and runs, and print a table for every split."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--splits", nargs="+", choices=SPLITS, default=list(SPLITS))
    arguments.add_argument("--parties", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    arguments.add_argument("--repeat", type=int, default=2)
    arguments.add_argument("--json", type=Path)
    given = arguments.parse_args()
    found: dict[str, object] = {}
    with threadpool_limits(1):
        messages = message_costs()
        print(f"{os.cpu_count()} cores; {messages.words()}", flush=True)
        found["messages"] = asdict(messages)
        for name in given.splits:
            split, rows = SPLITS[name], list[Row]()
            print(f"\n{name}: {split.columns} columns, batches of {split.batch}\n{HEADER}", flush=True)
            for row in measured(split, given.parties, messages, given.repeat):
                rows.append(row)
                print(line(row), flush=True)
                if given.json:
                    given.json.write_text(json.dumps({**found, name: rows}, indent=1))
            found[name] = rows


if __name__ == "__main__":
    main()
