"""One party of eight is slower than the rest, and messages take 10 ms: who waits for whom?

Asynchronous against synchronous training with the same step, so that a round gains both the same. They
run in the simulated world: times are those of the links and machines below, whatever this machine is.

Run it: python examples/straggler.py [straggler.svg]
"""

from __future__ import annotations

import sys
from pathlib import Path

from colonnade.job import job_from
from colonnade.report.figures import loss_figure, save
from colonnade.result import Result
from colonnade.run.federate import federate


def train(algorithm: str) -> Result:
    job = job_from(
        {
            "algorithm": algorithm,
            "world": "simulated",
            "data": {"train": "digits-odd", "parties": 8, "active": 3},
            "train": {"epochs": 10, "batch": 32, "l2": 1e-3, "step": 0.2},
            "secure": {"labels": "clear"},  # as in the paper
            "network": {
                "latency_ms": 10.0,
                "bandwidth_mbps": 100.0,
                "us_per_call": 2000.0,
                "speeds": [1.0] * 7 + [0.4],
            },
        }
    )
    return federate(job).result


def main(figure: str = "straggler.svg") -> None:
    results = {"asynchronous": train("vfb2-sgd"), "synchronous": train("vfb-sgd")}
    for name, result in results.items():
        print(
            f"{name}: loss {result.metrics['train_loss']:.4f} after {result.cost.virtual_seconds:.2f} "
            f"simulated seconds, gradients {result.staleness.mean:.1f} updates old on average"
        )
    title = "Eight parties, one at 40% of the others' speed, 10 ms apart"
    print(f"written: {save(loss_figure(results, title), Path(figure))}")


if __name__ == "__main__":
    main(*sys.argv[1:])
