"""What threads within a party are worth: rows a second by threads, batch and kind of columns, in one run.

    python -m colonnade_bench.micro.threads [--threads 1 2 4 8 16] [--batches 64 256 1024 4096]

Two parties in one process (`vfb2-sgd`, local world, plain sums, a fixed step, no joining of batches), the
second of which owns nearly all columns, made up: dense (20,000 rows of 2,000) or sparse (40,000 rows, 100 of
50,000 columns each). Threads share a party's weights without locks (VFB2's lower level). Every figure is the
best of `--repeat` runs, in turns; how it stands beside one thread is what counts.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from colonnade.arrays import Matrix
from colonnade.data.table import Table
from colonnade.job import Job, job_from
from colonnade.run.federate import Tables, run_tables

AHEAD = 2  # batches in flight for every thread


def columns_of(kind: str) -> Matrix:
    """Made-up columns of the party that computes."""
    rng = np.random.default_rng(0)
    if kind == "dense":
        return rng.normal(size=(20_000, 2_000))
    rows, width, each = 40_000, 50_000, 100
    places = rng.integers(0, width, size=rows * each)
    return sp.csr_array((rng.normal(size=rows * each), places, np.arange(0, rows * each + 1, each)))


def tables_of(X: Matrix) -> Tables:
    """A label holder with one column, and a party with all others."""
    rng, rows = np.random.default_rng(1), int(X.shape[0])
    y = np.where(rng.random(rows) < 0.5, -1.0, 1.0)
    names = tuple(f"x{j}" for j in range(X.shape[1]))
    holder = Table("holder", ("one",), rng.normal(size=(rows, 1)), y)
    return Tables("made up", {"holder": holder, "owner": Table("owner", names, X, None)}, None, ("holder",))


def job_for(threads: int, batch: int, epochs: int) -> Job:
    """The job of one measurement."""
    return job_from(
        {
            "algorithm": "vfb2-sgd",
            "world": "local",
            "compare": False,
            "data": {"train": "breast_cancer", "parties": 2, "active": 1, "intercept": False},
            "train": {
                "epochs": epochs,
                "batch": batch,
                "step": 1e-6,
                "threads": threads,
                "ahead": AHEAD * threads,
                "evaluate_every": 0,
                "tolerance": 0.0,
            },
            "network": {"join": False},
            "secure": {"sum": "plain", "labels": "clear"},
        }
    )


def rows_a_second(tables: Tables, threads: int, batch: int, epochs: int) -> float:
    """How many rows the parties train on in a second."""
    began = time.perf_counter()
    run_tables(job_for(threads, batch, epochs), tables)
    return tables.train["holder"].rows * epochs / (time.perf_counter() - began)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--threads", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    arguments.add_argument("--batches", type=int, nargs="+", default=[64, 256, 1024, 4096])
    arguments.add_argument("--kinds", nargs="+", default=["dense", "sparse"])
    arguments.add_argument("--epochs", type=int, default=2)
    arguments.add_argument("--repeat", type=int, default=2)
    arguments.add_argument("--out", type=Path)
    given = arguments.parse_args()
    found = []
    print(f"{os.cpu_count()} cores")
    for kind in given.kinds:
        tables = tables_of(columns_of(kind))
        print(f"\n{kind:8}{'rows/s':>12}" + "".join(f"{f'x{t} threads':>14}" for t in given.threads[1:]))
        for batch in given.batches:
            best = dict.fromkeys(given.threads, 0.0)
            for _ in range(given.repeat):
                for threads in given.threads:
                    with threadpool_limits(1):
                        speed = rows_a_second(tables, threads, batch, given.epochs)
                    best[threads] = max(best[threads], speed)
            first = best[given.threads[0]]
            shown = "".join(f"{best[t] / first:14.2f}" for t in given.threads[1:])
            print(f"{batch:8}{first:12,.0f}{shown}", flush=True)
            found += [{"kind": kind, "batch": batch, "threads": t, "rows_s": s} for t, s in best.items()]
    if given.out is not None:
        given.out.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
