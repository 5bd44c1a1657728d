"""What a federation costs beside the same arithmetic on pooled data, as ratios measured in one run.

    python -m colonnade_bench.micro.throughput [--epochs 20] [--batches 256 1024]

Prints, for a9a (8 parties, 3 active): rows a second, messages a second and CPU seconds of the pooled loop,
the local world with plain and masked sums, and the network world with mutual TLS, then the ratios. Every
run does the same batches; tuning and evaluation are left out (fixed step, one evaluation at the end).
CPU seconds of the network world are those of all party processes together. The machine may be busy, so
each is run `--repeat` times, in turns, and the best is kept.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from colonnade.conversations.pacing.schedule import Schedule
from colonnade.data.datasets.loading import load_dataset
from colonnade.job import Job, job_from
from colonnade.losses import LOSSES
from colonnade.models.linear import rows_of
from colonnade.run.federate import federate

STEP, L2 = 0.2, 1e-4


@dataclass(frozen=True)
class Spent:
    """What a run took, and how much it did in that time."""

    cpu: float
    seconds: float
    rows: int
    messages: int = 0


def job(batch: int, epochs: int, world: str, secure: str) -> Job:
    return job_from(
        {
            "algorithm": "vfb2-sgd",
            "world": world,
            "compare": False,
            "data": {"train": "a9a", "parties": 8, "active": 3, "intercept": False},
            "train": {"epochs": epochs, "batch": batch, "step": STEP, "evaluate_every": 0, "tolerance": 0.0},
            "secure": {"sum": secure, "labels": "clear"},
        }
    )


def pooled_loop(X: Any, y: Any, batch: int, epochs: int) -> Spent:
    """Trains on pooled data as one writes it with NumPy and SciPy: gather the rows, two products, a step."""
    schedule = Schedule(len(y), batch, epochs, 0, ("one",))
    dz = LOSSES["logistic"].dz
    w = np.zeros(X.shape[1])
    cpu, seconds = time.process_time(), time.perf_counter()
    for number in range(schedule.rounds):
        at = schedule.round(number)
        if at.start == 0:
            order = schedule.order(at.epoch)
        rows = order[at.start : at.end]
        X_batch = X[rows]
        theta = dz(X_batch @ w, y[rows])
        w -= STEP * (X_batch.T @ theta / at.size + L2 * w)
    return Spent(time.process_time() - cpu, time.perf_counter() - seconds, len(y) * epochs)


def pooled_kernels(X: Any, y: Any, batch: int, epochs: int) -> Spent:
    """Trains on pooled data with this package's own kernels: shuffle once an epoch, no copies."""
    schedule = Schedule(len(y), batch, epochs, 0, ("one",))
    dz = LOSSES["logistic"].dz
    w = np.zeros(X.shape[1])
    cpu, seconds = time.process_time(), time.perf_counter()
    for number in range(schedule.rounds):
        at = schedule.round(number)
        if at.start == 0:
            order = schedule.order(at.epoch)
            rows, labels = rows_of(X, order), y[order]
        theta = dz(rows.scores(at.start, at.end, w), labels[at.start : at.end])
        w -= STEP * (rows.gradient(at.start, at.end, theta) / at.size + L2 * w)
    return Spent(time.process_time() - cpu, time.perf_counter() - seconds, len(y) * epochs)


def federated(batch: int, epochs: int, world: str, secure: str) -> Spent:
    """Trains on the same batches with 8 parties."""
    run = federate(job(batch, epochs, world, secure))
    cpu = sum(share.cpu_seconds or 0.0 for share in run.shares.values())
    return Spent(cpu, run.result.cost.seconds, 32_561 * epochs, run.result.cost.messages)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--epochs", type=int, default=20)
    arguments.add_argument("--repeat", type=int, default=3)
    arguments.add_argument("--batches", type=int, nargs="+", default=[256, 1024])
    arguments.add_argument("--worlds", nargs="+", default=["local", "network"])
    given = arguments.parse_args()
    train = load_dataset("a9a").train
    assert train.y is not None
    X, y, epochs = train.values, np.asarray(train.y, dtype=float), given.epochs
    for batch in given.batches:
        measured: dict[str, Callable[[], Spent]] = {
            "pooled numpy loop": partial(pooled_loop, X, y, batch, epochs),
            "pooled, our kernels": partial(pooled_kernels, X, y, batch, epochs),
            "local, plain": partial(federated, batch, epochs, "local", "plain"),
            "local, masked": partial(federated, batch, epochs, "local", "masked"),
            "network, masked": partial(federated, batch, epochs, "network", "masked"),
        }
        if "network" not in given.worlds:
            del measured["network, masked"]
        costs: dict[str, Spent] = {}
        for _ in range(given.repeat):
            for name, measure in measured.items():
                with threadpool_limits(1):
                    cost = measure()
                if name not in costs or cost.cpu < costs[name].cpu:
                    costs[name] = cost
        report(batch, costs)


def report(batch: int, costs: dict[str, Spent]) -> None:
    """Print the table of a batch size, and the ratios."""
    print(f"\na9a, 8 parties, 3 active, batch {batch}")
    print(f"{'':22}{'rows/s':>12}{'messages/s':>12}{'CPU s':>9}{'CPU s a party':>15}")
    for name, cost in costs.items():
        parties = 1 if name.startswith("pooled") else 8
        print(
            f"{name:22}{cost.rows / cost.seconds:12,.0f}{cost.messages / cost.seconds:12,.0f}"
            f"{cost.cpu:9.3f}{cost.cpu / parties:15.3f}"
        )
    ratio = {name: cost.cpu for name, cost in costs.items()}
    for over, under in (
        ("local, masked", "pooled numpy loop"),
        ("local, masked", "pooled, our kernels"),
        ("local, masked", "local, plain"),
        ("network, masked", "local, masked"),
    ):
        if over in ratio:
            print(f"{over} / {under}: {ratio[over] / ratio[under]:.2f}x the CPU time")


if __name__ == "__main__":
    main()
