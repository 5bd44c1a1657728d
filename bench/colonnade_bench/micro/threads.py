"""What threads within a party would be worth: rows a second by threads, batch and kind of columns.

    python -m colonnade_bench.micro.threads [--threads 1 2 4 8 16] [--batches 64 256 1024 4096]

A party's steps alone, without messages: every thread takes the next batch of its own, scores its rows, takes
their gradient and steps on the weights that all threads share, without locks (VFB2's lower level). Columns
are made up: dense (20,000 rows of 2,000) or sparse (40,000 rows, 100 of 50,000 columns each). Every figure is
the best of three; how it stands beside one thread is what counts.
"""

from __future__ import annotations

import argparse
import os

import numpy as np
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

from colonnade.arrays import Matrix
from colonnade.models.linear import rows_of
from colonnade_bench.micro.kernels import Work, speed

STEP = 1e-6
STEPS = 128  # at least, so that every thread has some where batches are large


def columns_of(kind: str) -> Matrix:
    """Made-up columns of a party."""
    rng = np.random.default_rng(0)
    if kind == "dense":
        return rng.standard_normal((20_000, 2_000))
    rows, width, each = 40_000, 50_000, 100
    places = rng.integers(0, width, size=rows * each)
    ends = np.arange(0, rows * each + 1, each)
    return csr_array((rng.standard_normal(rows * each), places, ends), shape=(rows, width))


def steps_on(X: Matrix) -> Work:
    """A step on the rows from start to end, over weights that all callers share."""
    rows = rows_of(X, np.random.default_rng(1).permutation(int(X.shape[0])))
    w = np.zeros(int(X.shape[1]))

    def step(start: int, end: int) -> None:
        theta = np.tanh(rows.scores(start, end, w))
        np.subtract(w, STEP * rows.gradient(start, end, theta), out=w)

    return step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    parser.add_argument("--batches", type=int, nargs="+", default=[64, 256, 1024, 4096])
    given = parser.parse_args()
    print(f"{os.cpu_count()} cores; rows a second of one thread, and how many times as many of several")
    others = [threads for threads in given.threads if threads > 1]
    with threadpool_limits(1):
        for kind in ("dense", "sparse"):
            X = columns_of(kind)
            step, rows = steps_on(X), int(X.shape[0])
            print(f"\n{kind:8}{'rows/s':>12}" + "".join(f"{f'{t} threads':>12}" for t in others))
            for batch in given.batches:
                one = speed(step, rows, batch, 1, STEPS)
                ratios = "".join(f"{speed(step, rows, batch, t, STEPS) / one:12.2f}" for t in others)
                print(f"{batch:8}{1e6 * one:12,.0f}{ratios}", flush=True)


if __name__ == "__main__":
    main()
