"""What blind labels cost beside labels in clear, and what they change: ratios of runs made in turns.

    python -m colonnade_bench.micro.blind [--epochs 10] [--batches 256 1024] [--accuracy] [--worlds local]
    python -m colonnade_bench.micro.blind --modes clear blind hidden --algorithms vfb-sgd --accuracy a9a

Prints for a9a (8 parties) the CPU seconds of all parties, bytes sent (the veiled columns apart) and, with
--accuracy, for UCI credit, a9a, phishing and MNIST (softmax) the test accuracy and how far weights are apart.
`hidden` are blind runs that hide scores as well. All runs make the same batches with the same step; the
machine may be busy, so each is made `--repeat` times, in turns, and the best is kept; `worst` is the largest
ratio of two runs made one after the other.
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


MODES: dict[str, dict[str, str]] = {
    "clear": {"labels": "clear"},
    "blind": {"labels": "blind"},
    "hidden": {"labels": "blind", "scores": "hidden"},
}


@dataclass(frozen=True)
class Spent:
    """What one run took: CPU seconds of all parties, bytes for training, and bytes of veiled columns."""

    cpu: float
    sent: int
    veiled: int
    done: Finished


def trained(data: str, mode: str, world: str, parties: int, **train: Any) -> Spent:
    """One run of fixed batches and steps, measured in the end only."""
    algorithm = train.pop("algorithm", "vfb-sgd")
    job = job_from(
        {
            "algorithm": algorithm,
            "world": world,
            "compare": False,
            "data": {"train": data, "parties": parties},
            "train": {"evaluate_every": 0, "tolerance": 0.0, **train},
            "secure": MODES[mode],
        }
    )
    with threadpool_limits(1):
        done = federate(job)
    cost = done.result.cost
    veiled = cost.bytes_by_kind.get("veiled", 0)
    cpu = sum(share.cpu_seconds or 0.0 for share in done.shares.values())
    return Spent(cpu, cost.bytes_sent - veiled, veiled, done)


def costs(
    modes: list[str], batches: list[int], epochs: int, repeat: int, worlds: list[str], parties: int
) -> None:
    """CPU and bytes of runs, and the ratio to the first mode."""
    heads = {
        "a9a": 10,
        "batch": 6,
        "mode": 8,
        "CPU s": 8,
        "ratio": 7,
        "worst": 7,
        "bytes": 7,
        "veiled MB": 11,
    }
    print("".join(f"{head:>{width}}" for head, width in heads.items()))
    for world in worlds:
        for batch in batches:
            spent: dict[str, list[Spent]] = {mode: [] for mode in modes}
            for _ in range(repeat):
                for mode, runs in spent.items():
                    runs.append(trained("a9a", mode, world, parties, batch=batch, epochs=epochs, step=1.0))
            first = spent[modes[0]]
            least = min(each.cpu for each in first)
            for mode, runs in spent.items():
                best = min(runs, key=lambda each: each.cpu)
                worst = max(one.cpu / other.cpu for one, other in zip(runs, first, strict=True))
                print(
                    f"{world:>10}{batch:6}{mode:>8}{best.cpu:8.2f}{best.cpu / least:7.2f}{worst:7.2f}"
                    f"{best.sent / first[0].sent:7.2f}{best.veiled / 1e6:11.1f}",
                    flush=True,
                )


def accuracies(modes: list[str], names: list[str], epochs: int, parties: int, algorithms: list[str]) -> None:
    """Test accuracy of every mode, and the largest distance of two weights from the first."""
    print(
        f"\n{'':12}{'algorithm':>10}{'mode':>8}{'accuracy %':>12}{'points':>8}{'weights':>10}{'of size':>9}"
    )
    for name in names:
        for algorithm in algorithms:
            terms = {"algorithm": algorithm, "batch": 256, "epochs": epochs, **SETS[name]}
            runs = {mode: trained(name, mode, "local", parties, **terms).done for mode in modes}
            first = runs[modes[0]]
            usual = first.result.metrics["test_accuracy"]
            for mode, run in runs.items():
                pairs = [
                    (np.asarray(share.weights["w"]), np.asarray(run.shares[party].weights["w"]))
                    for party, share in first.shares.items()
                ]
                apart = max(float(np.abs(one - other).max()) for one, other in pairs)
                size = max(float(np.abs(one).max()) for one, _ in pairs)
                found = run.result.metrics["test_accuracy"]
                print(
                    f"{name:12}{algorithm:>10}{mode:>8}{100 * found:12.3f}{100 * (found - usual):8.3f}"
                    f"{apart:10.1e}{size:9.2f}",
                    flush=True,
                )


def memory(modes: list[str], parties: int) -> None:
    """The most memory of the label holder's process and of the largest other one, mapped files included."""
    print(f"\n{'a9a, 2 epochs':>14}{'label holder MB':>17}{'others MB':>11}{'veiled MB':>11}")
    for mode in modes:
        spent = trained("a9a", mode, "network", parties, batch=1024, epochs=2, step=1.0)
        holder = spent.done.plan.evaluator
        peaks = {party: share.peak_memory_mb or 0.0 for party, share in spent.done.shares.items()}
        others = max(peak for party, peak in peaks.items() if party != holder)
        print(f"{mode:>14}{peaks[holder]:17.0f}{others:11.0f}{spent.veiled / 1e6:11.1f}", flush=True)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--epochs", type=int, default=10)
    arguments.add_argument("--repeat", type=int, default=3)
    arguments.add_argument("--parties", type=int, default=8)
    arguments.add_argument("--batches", type=int, nargs="*", default=[256, 1024])
    arguments.add_argument("--worlds", nargs="+", default=["local", "network"])
    arguments.add_argument("--accuracy", nargs="*", metavar="SET", help=f"of these sets: {', '.join(SETS)}")
    arguments.add_argument("--algorithms", nargs="+", default=["vfb-sgd", "vfb-svrg", "vfb-saga"])
    arguments.add_argument("--modes", nargs="+", choices=list(MODES), default=["clear", "blind"])
    arguments.add_argument("--memory", action="store_true", help="of a process for every party")
    given = arguments.parse_args()
    if given.batches:
        costs(given.modes, given.batches, given.epochs, given.repeat, given.worlds, given.parties)
    if given.memory:
        memory(given.modes, given.parties)
    if given.accuracy is not None:
        accuracies(given.modes, given.accuracy or list(SETS), given.epochs, 4, given.algorithms)


if __name__ == "__main__":
    main()
