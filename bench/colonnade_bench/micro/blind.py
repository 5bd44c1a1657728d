"""What blind labels cost beside labels in clear, and what they change: ratios of runs made in turns.

    python -m colonnade_bench.micro.blind [--epochs 10] [--batches 256 1024] [--accuracy] [--worlds local]

Prints for a9a (8 parties) the CPU seconds of all parties, bytes sent (the veiled columns apart) and, with
--accuracy, for UCI credit, a9a, phishing and MNIST (softmax) the test accuracy and how far weights are apart.
Every pair of runs makes the same batches with the same step; the machine may be busy, so each is made
`--repeat` times, in turns, and the best is kept.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from colonnade.job import job_from
from colonnade.run.federate import Finished, federate

SETS: dict[str, dict[str, Any]] = {
    "uci-credit": {"step": 0.05},
    "a9a": {"step": 1.0},
    "phishing": {"step": 0.5},
    "mnist": {"step": 0.02, "loss": "softmax"},
}


@dataclass(frozen=True)
class Spent:
    """What one run took: CPU seconds of all parties, bytes for training, and bytes of veiled columns."""

    cpu: float
    sent: int
    veiled: int
    done: Finished


def trained(data: str, labels: str, world: str, parties: int, **train: Any) -> Spent:
    """One run of fixed batches and steps, measured in the end only."""
    algorithm = train.pop("algorithm", "vfb-sgd")
    job = job_from(
        {
            "algorithm": algorithm,
            "world": world,
            "compare": False,
            "data": {"train": data, "parties": parties},
            "train": {"evaluate_every": 0, "tolerance": 0.0, **train},
            "secure": {"labels": labels},
        }
    )
    with threadpool_limits(1):
        done = federate(job)
    cost = done.result.cost
    veiled = cost.bytes_by_kind.get("veiled", 0)
    cpu = sum(share.cpu_seconds or 0.0 for share in done.shares.values())
    return Spent(cpu, cost.bytes_sent - veiled, veiled, done)


def costs(batches: list[int], epochs: int, repeat: int, worlds: list[str], parties: int) -> None:
    """CPU and bytes of blind runs over clear ones."""
    heads = {"a9a": 10, "batch": 6, "clear CPU s": 13, "blind CPU s": 13, "ratio": 7, "bytes": 7}
    heads["veiled MB"] = 11
    print("".join(f"{head:>{width}}" for head, width in heads.items()))
    for world in worlds:
        for batch in batches:
            best: dict[str, Spent] = {}
            for _ in range(repeat):
                for labels in ("clear", "blind"):
                    spent = trained("a9a", labels, world, parties, batch=batch, epochs=epochs, step=1.0)
                    if labels not in best or spent.cpu < best[labels].cpu:
                        best[labels] = spent
            clear, blind = best["clear"], best["blind"]
            print(
                f"{world:10}{batch:6}{clear.cpu:13.2f}{blind.cpu:13.2f}{blind.cpu / clear.cpu:7.2f}"
                f"{blind.sent / clear.sent:7.2f}{blind.veiled / 1e6:11.1f}"
            )


def accuracies(names: list[str], epochs: int, parties: int, algorithms: list[str]) -> None:
    """Test accuracy in clear and blind, and the largest distance of two weights."""
    print(f"\n{'':12}{'algorithm':>10}{'clear %':>9}{'blind %':>9}{'points':>8}{'weights':>10}{'of size':>9}")
    for name in names:
        for algorithm in algorithms:
            terms = {"algorithm": algorithm, "batch": 256, "epochs": epochs, **SETS[name]}
            runs = {
                labels: trained(name, labels, "local", parties, **terms).done for labels in ("clear", "blind")
            }
            clear, blind = (runs[labels].result.metrics["test_accuracy"] for labels in ("clear", "blind"))
            pairs = [
                (np.asarray(share.weights["w"]), np.asarray(runs["blind"].shares[party].weights["w"]))
                for party, share in runs["clear"].shares.items()
            ]
            apart = max(float(np.abs(one - other).max()) for one, other in pairs)
            size = max(float(np.abs(one).max()) for one, _ in pairs)
            print(
                f"{name:12}{algorithm:>10}{100 * clear:9.3f}{100 * blind:9.3f}{100 * (blind - clear):8.3f}"
                f"{apart:10.1e}{size:9.2f}"
            )


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--epochs", type=int, default=10)
    arguments.add_argument("--repeat", type=int, default=3)
    arguments.add_argument("--parties", type=int, default=8)
    arguments.add_argument("--batches", type=int, nargs="*", default=[256, 1024])
    arguments.add_argument("--worlds", nargs="+", default=["local", "network"])
    arguments.add_argument("--accuracy", nargs="*", metavar="SET", help=f"of these sets: {', '.join(SETS)}")
    arguments.add_argument("--algorithms", nargs="+", default=["vfb-sgd", "vfb-svrg", "vfb-saga"])
    given = arguments.parse_args()
    if given.batches:
        costs(given.batches, given.epochs, given.repeat, given.worlds, given.parties)
    if given.accuracy is not None:
        accuracies(given.accuracy or list(SETS), given.epochs, 4, given.algorithms)


if __name__ == "__main__":
    main()
