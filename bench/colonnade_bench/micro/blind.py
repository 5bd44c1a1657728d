"""What blind labels cost beside labels in clear, and what they change: ratios of runs made in turns.

    python -m colonnade_bench.micro.blind [--epochs 10] [--batches 256 1024] [--accuracy] [--worlds local]
    python -m colonnade_bench.micro.blind --modes clear blind hidden --algorithms vfb-sgd --accuracy a9a

Prints for a9a (8 parties) the CPU seconds of all parties, bytes sent (the veiled columns apart) and, with
--accuracy, for UCI credit, a9a, phishing and MNIST (softmax) the test accuracy in clear, and how far from it
the worst of `--repeat` blind runs is: in points, predictions, weights and scores. `hidden` are blind runs
that hide scores as well. All runs make the same batches with the same step; the machine may be busy, so for
CPU each is made `--repeat` times, in turns, and the best is kept; `worst` is the largest ratio of two runs
made one after the other.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from colonnade.arrays import Floats
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


def accuracies(
    modes: list[str], names: list[str], epochs: int, repeat: int, parties: int, algorithms: list[str]
) -> None:
    """Test accuracy in the first mode, and how far from it the worst of several runs in the others is.

    Every run has rotations of its own. `rows` are test rows that another class is predicted for, `weights`
    and `scores` the largest distance of two.
    """
    heads = {
        "algorithm": 22,
        "mode": 8,
        "accuracy %": 12,
        "points": 8,
        "rows": 6,
        "weights": 10,
        "scores": 10,
    }
    print("\n" + "".join(f"{head:>{width}}" for head, width in heads.items()))
    for name in names:
        for algorithm in algorithms:
            terms = {"algorithm": algorithm, "batch": 256, "epochs": epochs, **SETS[name]}
            first = trained(name, modes[0], "local", parties, **terms).done
            for mode in modes[1:]:
                runs = [trained(name, mode, "local", parties, **terms).done for _ in range(repeat)]
                found = [Apart.of(first, run) for run in runs]
                least, most = min(each.accuracy for each in found), max(each.accuracy for each in found)
                usual = first.result.metrics["test_accuracy"]
                print(
                    f"{name:12}{algorithm:>10}{mode:>8}{100 * usual:12.3f}"
                    f"{100 * max(most - usual, usual - least):8.3f}{max(each.rows for each in found):6}"
                    f"{max(each.weights for each in found):10.1e}{max(each.scores for each in found):10.1e}",
                    flush=True,
                )


@dataclass(frozen=True)
class Apart:
    """How far a run is from another one: in weights, scores and predictions of test rows."""

    accuracy: float
    rows: int
    weights: float
    scores: float

    @staticmethod
    def of(first: Finished, run: Finished) -> Apart:
        pairs = [
            (share.weights["w"], run.shares[party].weights["w"]) for party, share in first.shares.items()
        ]
        z, other = (np.asarray(each.shares[each.plan.evaluator].test_scores) for each in (first, run))
        return Apart(
            run.result.metrics["test_accuracy"],
            int((_predicted(z) != _predicted(other)).sum()),
            max(float(np.abs(np.asarray(one) - np.asarray(two)).max()) for one, two in pairs),
            float(np.abs(z - other).max()),
        )


def _predicted(z: Floats) -> NDArray[Any]:
    return z.argmax(axis=1) if z.ndim > 1 else z > 0


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
        names = given.accuracy or list(SETS)
        accuracies(given.modes, names, given.epochs, given.repeat, 4, given.algorithms)


if __name__ == "__main__":
    main()
