"""How much faster training is with more parties: real processes, and what the simulated world predicts.

    python -m colonnade_bench.micro.processes [--splits arithmetic work figure pull] [--parties 1 2 4 8 16]
                                              [--repeat 2] [--json FILE] [--measured FILE]

The same columns are cut among q parties, which make the same batches with a fixed step, asynchronous and
synchronous: in the network world (mutual TLS on loopback, a process per party, masked sums) and in the
simulated world. Times are those of a round in the second half of a run. Splits:
- arithmetic: VFB2, two label holders, 2,048 dense columns in batches of 1,024 rows;
- work: VFB2, two label holders, 64 columns in batches of 64 rows, and 16 ms of computing for every update, of
  which every party has its part; as `stragglers parties`;
- figure: VFB2 with columns and batches of the papers' figures of speed-up (784 dense columns, 256 rows);
- pull: AsySQN with the same, all parties hold the label.

What the simulation charges is measured on this machine:
- a value: scores and gradients of a block as a party has it, in as many processes at once as parties;
- a call: what a party's program does for a round beside numbers and messages: a run of as many parties in one
  process, one column each, divided by its rounds, its parties and the calls that each makes in a round;
- messages: a hub process and its peers that only talk (`message_costs`).

With these alone it predicts `parts`. A process that was waiting and is woken takes longer for the same
program than one that runs on; how much longer is taken from the synchronous run of two processes, whose round
has two such calls: `simulated` has that on every call, for all runs of more than one party. `free` is what is
predicted if messages and waking cost nothing, as they do unless a job says otherwise.

The machine needs a core for every party, or processes wait for each other's. `--json` keeps what was
measured; with `--measured` it is read from there and only simulated, which any machine can do.
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
from colonnade.result import Moment
from colonnade.run.federate import Finished
from colonnade_bench.message_costs import MessageCosts, message_costs
from colonnade_bench.micro.stragglers import Row, finished, seconds, tables, trained

BACKWARD = {"asynchronous": "vfb2-sgd", "synchronous": "vfb-sgd"}
PULL = {"asynchronous": "asysqn-sgd", "synchronous": "synsqn-sgd"}
ALONE = {"vfb2-sgd": "vfb-sgd"}  # what an algorithm's program is timed with, where its own joins calls
FREE = MessageCosts(0.0, 0.0, 0.0)
KERNELS_S = 0.3  # seconds for which processes compute at once, to be timed


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
        """Whether every party holds the label and pulls scores for itself."""
        return self.algorithms is PULL

    @property
    def rounds(self) -> int:
        """How many batches a pass has."""
        return -(-self.rows // self.batch)

    def train(self, algorithm: str, world: str) -> Row:
        """The `[train]` section: one order of the rows, since copying them is not charged.

        Simulated time does not scatter, so that a fifth of the rounds will do.
        """
        epochs = max(2, self.epochs // 5) if world == "simulated" else self.epochs
        terms = {"batch": self.batch, "epochs": epochs, "evaluate_every": epochs // 2, "reshuffle": False}
        return terms | ({"ahead": 2} if algorithm == PULL["asynchronous"] else {})

    def run(self, algorithm: str, world: str, parties: int, net: Row) -> Finished:
        """Train on the columns, cut among so many parties."""
        data = tables(parties, range(parties if self.pulls else min(parties, 2)), self.rows, self.columns)
        return finished(algorithm, world, data, self.train(algorithm, world), net)

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


# -- measuring --------------------------------------------------------------------------------------------


def computing(split: Split, algorithm: str, parties: int) -> Costs:
    """Measure what computing costs a party that has its part of the columns."""
    value = value_seconds(split.rows, -(-split.columns // parties), split.batch, parties)
    program = program_seconds(ALONE.get(algorithm, algorithm), parties, split.batch, all_hold=split.pulls)
    return Costs(1e9 * value, 1e6 * program / split.calls(algorithm, parties))


@cache
def value_seconds(rows: int, columns: int, batch: int, at_once: int) -> float:
    """Seconds that a kernel takes for one number of a dense block, in so many processes at once."""
    given = repeat((rows, columns, batch), at_once)
    context = multiprocessing.get_context("spawn")  # threads of this process do not survive a fork
    all_there = context.Barrier(at_once)
    with context.Pool(at_once, all_there.wait) as pool:
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
    data = tables(parties, range(parties if all_hold else 1), rows=4 * batch, columns=parties)
    train = {"batch": batch, "epochs": 50, "reshuffle": False}
    runs = [trained(algorithm, "local", data, train, {}) for _ in range(3)]
    return min(map(seconds, runs)) / (50 * 4 * parties)


def round_ms(split: Split, run: Finished) -> float:
    """Milliseconds of a round in the second half of a run: what it begins with is not counted."""
    half, end = run.result.history[-2:]
    return 1e3 * (when(end) - when(half)) / (split.rounds * (end.epoch - half.epoch))


def when(moment: Moment) -> float:
    """The time of a moment on the run's own clock."""
    return moment.seconds if moment.virtual_seconds is None else moment.virtual_seconds


def measured(split: Split, counts: Sequence[int], repeats: int) -> Iterator[Row]:
    """Costs and real times of a split, asynchronous and synchronous, for every number of parties."""
    for kind, algorithm in split.algorithms.items():
        for q in counts:
            costs = computing(split, algorithm, q)
            runs = [split.run(algorithm, "network", q, costs.network(split, q)) for _ in range(repeats)]
            times = [round_ms(split, run) for run in runs]
            yield {"kind": kind, "parties": q, **asdict(costs), "real ms": min(times), "all real ms": times}


# -- simulating -------------------------------------------------------------------------------------------


def predicted(split: Split, rows: Sequence[Row], messages: MessageCosts) -> Iterator[Row]:
    """What was measured, with what the simulated world says of it, and all speed-ups over one party."""

    def simulated(row: Row, messages: MessageCosts, woken: float = 0.0) -> float:
        costs = Costs(row["ns_per_value"], row["us_per_call"] + woken)
        net = costs.network(split, row["parties"]) | messages.network()
        return round_ms(split, split.run(split.algorithms[row["kind"]], "simulated", row["parties"], net))

    woken = 0.0
    for row in rows:
        if row["parties"] == 2 and row["kind"] == "synchronous":
            woken = max(0.0, 1e3 * (row["real ms"] - simulated(row, messages)) / 2)
    first: dict[str, float] = {}
    for row in rows:
        times = {
            "real": row["real ms"],
            "simulated": simulated(row, messages, woken if row["parties"] > 1 else 0.0),
            "parts": simulated(row, messages),
            "free": simulated(row, FREE),
        }
        first = times if row["parties"] == 1 or not first else first
        speedups = {name: first[name] / ms for name, ms in times.items()}
        yield {**row, "woken us": woken, "simulated ms": times["simulated"], **speedups}


HEADER = (
    f"{'':14}{'parties':>8}{'real ms':>10}{'simulated':>10}"
    f"{'speed-up':>10}{'simulated':>10}{'parts':>7}{'free':>7}"
)


def line(row: Row) -> str:
    """A row of the table: milliseconds of a round, and speed-ups."""
    return (
        f"{row['kind']:14}{row['parties']:8}{row['real ms']:10.3f}{row['simulated ms']:10.3f}"
        f"{row['real']:10.2f}{row['simulated']:10.2f}{row['parts']:7.2f}{row['free']:7.2f}"
        f"   {row['ns_per_value']:.3f} ns a value, {row['us_per_call']:.0f} us a call"
    )


def main() -> None:
    """Measure costs and runs, simulate them, and print a table for every split."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--splits", nargs="+", choices=SPLITS, default=list(SPLITS))
    arguments.add_argument("--parties", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    arguments.add_argument("--repeat", type=int, default=2)
    arguments.add_argument("--json", type=Path)
    arguments.add_argument("--measured", type=Path)
    given = arguments.parse_args()
    known = json.loads(given.measured.read_text()) if given.measured else {}
    with threadpool_limits(1):
        if not known:
            known = {"cores": os.cpu_count(), "messages": asdict(message_costs())}
        messages = MessageCosts(**known["messages"])
        print(f"{known['cores']} cores; {messages.words()}", flush=True)
        for name in given.splits:
            split = SPLITS[name]
            if given.measured is None:
                known[name] = list(measured(split, given.parties, given.repeat))
                if given.json:
                    given.json.write_text(json.dumps(known, indent=1))
            print(f"\n{name}: {split.columns} columns, batches of {split.batch}\n{HEADER}", flush=True)
            for row in predicted(split, known[name], messages):
                print(line(row), flush=True)
            print(f"a call in a process that was woken: {row['woken us']:.0f} us more")


if __name__ == "__main__":
    main()
