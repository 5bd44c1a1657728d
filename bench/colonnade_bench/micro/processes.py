"""How much faster training is with more parties, each a real process with its part of the columns.

    python -m colonnade_bench.micro.processes [--parties 1 2 4 8 16] [--algorithms vfb2-sgd vfb-sgd]

The columns are made up, dense, and dealt to q parties; all runs make the same batches with a fixed step in
the network world (mutual TLS on loopback, masked sums), and are timed by the parties. One party
computes everything itself. The simulated world is run beside it with the same job, on the speed that
`network.ns_per_value` assumes. The machine should have a core for every party.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from colonnade.job import Job, job_from
from colonnade.run.federate import federate


def write_columns(path: Path, rows: int, columns: int) -> None:
    """Made-up columns and a label of two classes, as a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, columns))
    y = np.where(X @ rng.normal(size=columns) > 0, 1, 0)
    pq.write_table(pa.table({**{f"x{j}": X[:, j] for j in range(columns)}, "y": y}), path)


def job_for(path: Path, algorithm: str, world: str, parties: int, given: argparse.Namespace) -> Job:
    """The job of one measurement."""
    return job_from(
        {
            "algorithm": algorithm,
            "world": world,
            "compare": False,
            "data": {"train": str(path), "label": "y", "parties": parties, "active": 1, "intercept": False},
            "train": {
                "epochs": given.epochs,
                "batch": given.batch,
                "step": 1e-3,
                "evaluate_every": 0,
                "tolerance": 0.0,
            },
            "secure": {"labels": "clear"},
        }
    )


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--parties", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    arguments.add_argument("--algorithms", nargs="+", default=["vfb2-sgd", "vfb-sgd"])
    arguments.add_argument("--rows", type=int, default=20_000)
    arguments.add_argument("--columns", type=int, default=2_048)
    arguments.add_argument("--batch", type=int, default=1024)
    arguments.add_argument("--epochs", type=int, default=4)
    arguments.add_argument("--repeat", type=int, default=2)
    arguments.add_argument("--out", type=Path)
    given = arguments.parse_args()
    print(f"{os.cpu_count()} cores; {given.rows} rows of {given.columns} columns, batch {given.batch}")
    found = []
    with tempfile.TemporaryDirectory() as folder, threadpool_limits(1):
        path = Path(folder) / "columns.parquet"
        write_columns(path, given.rows, given.columns)
        for algorithm in given.algorithms:
            print(f"\n{algorithm:12}{'parties':>8}{'seconds':>10}{'speed-up':>10}{'simulated':>11}")
            first: dict[str, float] = {}
            for parties in given.parties:
                seconds = {
                    world: min(
                        federate(job_for(path, algorithm, world, parties, given)).result.cost.seconds
                        for _ in range(given.repeat if world == "network" else 1)
                    )
                    for world in ("network", "simulated")
                }
                first = first or seconds
                real, virtual = (first[world] / seconds[world] for world in ("network", "simulated"))
                print(f"{'':12}{parties:8}{seconds['network']:10.3f}{real:10.2f}{virtual:11.2f}", flush=True)
                found.append({"algorithm": algorithm, "parties": parties, **seconds})
    if given.out is not None:
        given.out.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
