"""How fast a party's kernels are: rows a second for batches of 1 to 4096, on one thread and on two.

    python -m colonnade_bench.micro.kernels [--rows 32768] [--columns 98] [--density 0.11]

A row is scored and its gradient taken, as in one step of training. `gather` picks the batch's rows by
number through NumPy's and SciPy's public interfaces; `slice` takes them from rows that were shuffled
before, again through the public interface; `ours` is what training runs on. With two threads, each works
on its own half of the batches over the same weights; more than 1 in the last column means that the kernels
let go of the interpreter lock and that the machine has a core to spare. Best of the repeats.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse import random as random_sparse
from threadpoolctl import threadpool_limits

from colonnade.models.linear import rows_of

BATCHES = (1, 4, 16, 64, 256, 1024, 4096)
REPEATS = 3
Work = Callable[[int, int], Any]


def kinds(X: Any, order: Any) -> dict[str, Work]:
    """Three functions that each do one step on the rows from start to end of a shuffle."""
    w, theta = np.ones(X.shape[1]), np.ones(X.shape[0])
    shuffled = X[order]
    rows = rows_of(X, order)

    def gather(start: int, end: int) -> Any:
        batch = X[order[start:end]]
        return batch @ w, batch.T @ theta[start:end]

    def sliced(start: int, end: int) -> Any:
        batch = shuffled[start:end]
        return batch @ w, batch.T @ theta[start:end]

    def ours(start: int, end: int) -> Any:
        return rows.scores(start, end, w), rows.gradient(start, end, theta[start:end])

    return {"gather": gather, "slice": sliced, "ours": ours}


def speed(work: Work, rows: int, batch: int, threads: int, least: int = 1) -> float:
    """Millions of rows a second, the best of the repeats; each of `least` steps, passes repeated, or more."""
    a_pass = rows // batch
    steps = max(min(a_pass, 2048), least)

    def some(offset: int) -> None:
        for step in range(offset, steps, threads):
            start = step % a_pass * batch
            work(start, start + batch)

    best = 0.0
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(REPEATS):
            began = time.perf_counter()
            list(pool.map(some, range(threads)))
            best = max(best, steps * batch / (time.perf_counter() - began) / 1e6)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=2**15)
    parser.add_argument("--columns", type=int, default=98)
    parser.add_argument("--density", type=float, default=0.11, help="of the sparse block")
    given = parser.parse_args()
    rng = np.random.default_rng(0)
    order = rng.permutation(given.rows)
    blocks = {
        "dense": rng.standard_normal((given.rows, given.columns)),
        "sparse": csr_array(random_sparse(given.rows, given.columns, given.density, format="csr", rng=rng)),
    }
    print(f"million rows a second, {given.columns} columns")
    print(f"{'block':7}{'batch':>6}{'gather':>9}{'slice':>9}{'ours':>9}{'2 threads':>11}{'ratio':>7}")
    with threadpool_limits(1):
        for name, X in blocks.items():
            work = kinds(X, order)
            for batch in BATCHES:
                one = {kind: speed(step, given.rows, batch, 1) for kind, step in work.items()}
                two = speed(work["ours"], given.rows, batch, 2)
                cells = "".join(f"{value:9.2f}" for value in one.values())
                print(f"{name:7}{batch:6}{cells}{two:11.2f}{two / one['ours']:7.2f}")


if __name__ == "__main__":
    main()
