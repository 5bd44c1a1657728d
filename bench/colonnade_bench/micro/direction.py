"""AsySQN's Table 1: what a direction H v costs, by the number of pairs m and the length d of a block.

python -m colonnade_bench.micro.direction

The paper has O(m d) for Algorithm 1, beside O(b d) for a gradient of b rows. For each m and d the least
processor time of many calls of inner products and direction, and slopes of its logarithm over those of
m and d.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from colonnade.optim.lbfgs import LimitedMemory
from colonnade_bench.common import Grid
from colonnade_bench.theorems import slope

PAIRS = (5, 10, 20, 40)
LENGTHS = (2**17, 2**18, 2**19, 2**20)  # of which no pairs fit a cache
ROWS = 64
CALLS = 12


def least(call: Callable[[], object]) -> float:
    """The least processor seconds of a call."""
    found = []
    for _ in range(CALLS):
        began = time.process_time_ns()
        call()
        found.append(time.process_time_ns() - began)
    return min(found) / 1e9


def direction(m: int, d: int) -> float:
    """Seconds of a direction from m pairs of a block of d weights."""
    rng, memory = np.random.default_rng(0), LimitedMemory(m, 1.0)
    for _ in range(m):
        s = rng.standard_normal(d)
        y = s * rng.uniform(1, 2, d)
        memory.add(s, y, memory.dots(s, y), 0.0)
    v = rng.standard_normal(d)
    return least(lambda: memory.direction(v, memory.dots(v)[: len(memory.vectors), 0]))


def gradient(d: int) -> float:
    """Seconds of the gradient of some rows of d columns."""
    X, theta = np.random.default_rng(0).standard_normal((ROWS, d)), np.ones(ROWS)
    return least(lambda: theta @ X)


def main() -> None:
    times = {(m, d): direction(m, d) for m in PAIRS for d in LENGTHS}
    rows: list[list[str | float]] = []
    for m in PAIRS:
        of_m = [times[m, d] for d in LENGTHS]
        rows.append([m, *(1e6 * taken for taken in of_m), slope(LENGTHS, of_m)])
    rows.append(["slope over m", *(slope(PAIRS, [times[m, d] for m in PAIRS]) for d in LENGTHS), ""])
    rows.append([f"gradient of {ROWS} rows", *(1e6 * gradient(d) for d in LENGTHS), ""])
    heads = ["pairs", *(f"{d:,} weights" for d in LENGTHS), "slope over weights"]
    print(Grid("Table 1: microseconds of a direction", heads, rows, "").markdown())


if __name__ == "__main__":
    main()
