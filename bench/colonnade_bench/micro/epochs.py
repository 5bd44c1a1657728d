"""Epochs of VFB2's algorithms to a sub-optimality, one batch at a time: the table of docs/algorithms/vfb2.md.

python -m colonnade_bench.micro.epochs [--set a9a] [--epochs 20]
"""

from __future__ import annotations

import argparse

from colonnade_bench.linear.trials import problem, train

RUNS = (
    ("vfb-saga", 32, "plain"),
    ("vfb-svrg", 32, "plain"),
    ("vfb-svrg", 256, "lbfgs"),
    ("vfb-saga", 256, "lbfgs"),
)
GAPS = (1e-3, 1e-4, 1e-5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--set", default="a9a", help="a data set of two classes")
    parser.add_argument("--epochs", type=int, default=20, help="at most")
    options = parser.parse_args()
    data = problem(options.set)
    print(f"{options.set}, 8 parties, 3 with the label, masked sum, f* = {data.optimum().loss:.10f}")
    for algorithm, batch, direction in RUNS:
        terms = {"batch": batch, "epochs": options.epochs, "direction": direction}
        trace = train(data, algorithm, target=GAPS[-1], train=terms)
        reached = ", ".join(f"{gap:g}: {trace.epochs_to(gap) or '-'}" for gap in GAPS)
        print(f"{algorithm}, batch {batch}, {direction}: epochs to {reached}", flush=True)


if __name__ == "__main__":
    main()
