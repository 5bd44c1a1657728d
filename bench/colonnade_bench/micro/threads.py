"""Threads within a party: what 1 to 16 workers on one block bring, for dense and sparse columns.

    python -m colonnade_bench.micro.threads [--threads 1 2 4 8 16] [--batches 64 256 1024 4096] [--seconds 1]

Every worker takes batches in turn and does what a round costs a party: the scores of a batch, then the step
on its theta, on one block of weights without locks. Printed are thousands of rows a second, in brackets how
many times those of `alone` that is: the same arithmetic without a pool, as a party with one thread runs it.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count, product
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array, random_array
from threadpoolctl import threadpool_limits

from colonnade.conversations.linear.block import Block
from colonnade.conversations.schedule import Schedule
from colonnade.optim.estimators import ESTIMATORS
from colonnade.regularizers import REGULARIZERS, Penalty

ROWS = 65536


def columns(kind: str, width: int) -> Any:
    """Random columns, dense or with one number in ten."""
    rng = np.random.default_rng(0)
    if kind == "dense":
        return rng.standard_normal((ROWS, width))
    return csr_array(random_array((ROWS, width), density=0.1, format="csr", rng=rng))


def rounds(block: Block, schedule: Schedule, numbers: Callable[[], int], until: float) -> int:
    """Score and step on batch after batch until a time; returns how many."""
    done = 0
    while time.perf_counter() < until:
        batch = schedule.round(numbers() % schedule.per_epoch)
        share = block.scores(batch)
        block.step([(batch, 1e-6 * share)], 1e-3)
        done += 1
    return done


def rows_a_second(block: Block, schedule: Schedule, threads: int, seconds: float) -> float:
    """How many rows so many workers score and step on in a second; 0 threads: without a pool."""
    numbers = count().__next__
    begin = time.perf_counter()
    if threads == 0:
        made = rounds(block, schedule, numbers, begin + seconds)
    else:
        with ThreadPoolExecutor(threads) as pool:
            jobs = [pool.submit(rounds, block, schedule, numbers, begin + seconds) for _ in range(threads)]
            made = sum(job.result() for job in jobs)
    return made * schedule.batch / (time.perf_counter() - begin)


def main() -> None:
    parser = argparse.ArgumentParser(description="threads within a party")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    parser.add_argument("--batches", type=int, nargs="+", default=[64, 256, 1024, 4096])
    parser.add_argument("--widths", type=int, nargs="+", default=[16, 128, 1024])
    parser.add_argument("--estimators", nargs="+", default=["sgd", "saga"], choices=["sgd", "saga"])
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--json", type=Path)
    wanted = parser.parse_args()
    found = []
    print("columns  width  estimator  batch  alone  " + "  ".join(f"{k} threads" for k in wanted.threads))
    for kind, width in product(("dense", "sparse"), wanted.widths):
        X = columns(kind, width)
        for estimator, batch in product(wanted.estimators, wanted.batches):
            schedule = Schedule(ROWS, batch, 1, 0, ("one",))
            memory = ESTIMATORS[estimator](ROWS, (width,))
            block = Block(X, schedule, memory, Penalty(REGULARIZERS["l2"], 1e-4))
            block.rows(0)
            pools = (0, *wanted.threads)
            speeds = {k: rows_a_second(block, schedule, k, wanted.seconds) for k in pools}
            found.append(
                {"columns": kind, "width": width, "estimator": estimator, "batch": batch, "of": speeds}
            )
            times = "  ".join(f"{speeds[k] / 1e3:.0f} ({speeds[k] / speeds[0]:.2f})" for k in wanted.threads)
            print(f"{kind}  {width}  {estimator}  {batch}  {speeds[0] / 1e3:.0f}  {times}", flush=True)
            if wanted.json:
                wanted.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    with threadpool_limits(1):  # one thread a kernel: workers are what is measured
        main()
