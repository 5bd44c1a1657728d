"""VFB2 where the objective has no minimum: what an accuracy is due to, parties, asynchrony or progress.

    python -m colonnade_bench.micro.endless [--seeds 3]

news20 made binary with the nonconvex penalty. A fifth of the training rows is held back and judged; test rows
are not looked at. "Alone" is one party with all columns and the same step.
"""

from __future__ import annotations

import argparse
import statistics
from typing import Any

import numpy as np

from colonnade_bench.linear.lossless import WORDY
from colonnade_bench.linear.trials import PARTIES, Problem, problem, train

SET = "news20-binary"
# name of a row: algorithm, parties, what differs from the usual [train] section
RUNS: dict[str, tuple[str, int, dict[str, Any]]] = {
    "vfb2-svrg": ("vfb2-svrg", PARTIES, {}),
    "vfb2-svrg, alone": ("vfb2-svrg", 1, {}),
    "vfb2-svrg, 30 epochs": ("vfb2-svrg", PARTIES, {"epochs": 30}),
    "vfb2-saga": ("vfb2-saga", PARTIES, {}),
    "vfb2-saga, alone": ("vfb2-saga", 1, {}),
    "vfb-saga, synchronous": ("vfb-saga", PARTIES, {}),
    "vfb2-saga, 14 epochs": ("vfb2-saga", PARTIES, {"epochs": 14}),
}


def held_back(seed: int, parties: int) -> Problem:
    """The set with a fifth of its training rows for test rows, the same for any number of parties."""
    whole = problem(SET, q=parties, seed=seed)
    order = np.random.default_rng(seed).permutation(whole.rows)
    judged, kept = (np.sort(part) for part in np.split(order, [whole.rows // 5]))
    train_part, test_part = (
        {party: table.take(rows) for party, table in whole.train.items()} for rows in (kept, judged)
    )
    return Problem(whole.name, train_part, test_part, whole.y[kept], whole.y[judged])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=3)
    seeds = range(parser.parse_args().seeds)
    steps: dict[tuple[str, int], float] = {}
    for name, (algorithm, parties, more) in RUNS.items():
        accuracies, losses = [], []
        for seed in seeds:
            same = {"step": steps[algorithm, seed]} if parties == 1 else {}
            terms = {**WORDY.vfb2, "regularizer": "nonconvex", **same, **more}
            trace = train(held_back(seed, parties), algorithm, seed=seed, world="local", train=terms)
            steps.setdefault((algorithm, seed), next(iter(trace.shares.values())).step)
            accuracies.append(100 * trace.metrics["test_accuracy"])
            losses.append(trace.moments[-1].loss)
        each = ", ".join(f"{accuracy:.2f}" for accuracy in accuracies)
        mean, loss = statistics.mean(accuracies), statistics.mean(losses)
        print(f"{name}: {mean:.2f}% of held-back rows ({each}), loss {loss:.4f}", flush=True)


if __name__ == "__main__":
    main()
