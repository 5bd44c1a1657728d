"""What this machine's kernels cost: the numbers that the simulated world charges for computing.

The scores and the gradient of a batch are timed for dense and sparse blocks over batch sizes from 1 to
4096, on one thread, the best of several repeats, since other programs can only make a repeat slower. A
straight line through the points, weighted so that every size counts alike, gives the cost of a call and
the cost of a stored value: t = us_per_call + ns_per_value * values.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse import random as random_sparse
from threadpoolctl import threadpool_limits

from colonnade.arrays import Floats
from colonnade.models.linear import RowKernels, rows_of
from colonnade_bench.common import Grid, kept

ROWS, COLUMNS, DENSITY = 8192, 16, 0.11  # a party's block of a9a, dense and as it is
BATCHES = (1, 4, 16, 64, 256, 1024, 4096)


@dataclass(frozen=True)
class KernelTime:
    """Microseconds of one call of a kernel on a batch."""

    kind: str
    kernel: str
    batch: int
    values: int
    us: float


@dataclass(frozen=True)
class Calibration:
    """Cost of a call and of a stored value, for dense blocks or for sparse ones."""

    kind: str
    us_per_call: float
    ns_per_value: float
    points: Sequence[KernelTime]

    def network(self) -> dict[str, float]:
        """The costs as keys of the job's [network] section."""
        return {"us_per_call": self.us_per_call, "ns_per_value": self.ns_per_value}


def words(costs: dict[str, Calibration]) -> str:
    """The costs in a sentence, with how they were measured."""
    each = ", ".join(
        f"{k}: {c.us_per_call:.2f} us a call + {c.ns_per_value:.2f} ns a value" for k, c in costs.items()
    )
    return (
        f"Compute cost calibrated on this machine ({each}): a line through the times of scores and gradients "
        f"for batches of {BATCHES[0]} to {BATCHES[-1]} rows, one thread, the best of several repeats."
    )


def calibrated(folder: Path) -> dict[str, Calibration]:
    """The costs, measured once for all that write to this folder."""
    found = kept(folder / "calibration.json", [ROWS, COLUMNS, DENSITY], lambda: _plain(calibrate()))
    return {
        kind: Calibration(kind, us, ns, [KernelTime(*point) for point in points])
        for kind, (us, ns, points) in found.items()
    }


def _plain(costs: dict[str, Calibration]) -> dict[str, object]:
    return {
        kind: (cost.us_per_call, cost.ns_per_value, [tuple(asdict(point).values()) for point in cost.points])
        for kind, cost in costs.items()
    }


def kernel_times(costs: dict[str, Calibration]) -> Grid:
    """The table of all that was timed."""
    rows = [[p.kind, p.kernel, p.batch, p.values, p.us] for cost in costs.values() for p in cost.points]
    return Grid("Calibration", ["block", "kernel", "batch", "values", "us a call"], rows, words(costs))


def calibrate(columns: int = COLUMNS, repeats: int = 7) -> dict[str, Calibration]:
    """Measures the costs of dense and of sparse blocks."""
    rng = np.random.default_rng(0)
    blocks = {
        "dense": rows_of(rng.standard_normal((ROWS, columns))),
        "sparse": rows_of(csr_array(random_sparse(ROWS, columns, DENSITY, format="csr", rng=rng))),
    }
    w, theta = rng.standard_normal(columns), rng.standard_normal(ROWS)
    costs = {}
    with threadpool_limits(1):
        for kind, rows in blocks.items():
            points = [
                KernelTime(kind, kernel, batch, rows.values(0, batch), 1e6 * best_time(call, repeats))
                for batch in BATCHES
                for kernel, call in _kernels(rows, batch, w, theta).items()
            ]
            costs[kind] = Calibration(kind, *fit([(p.values, p.us) for p in points]), points)
    return costs


def _kernels(rows: RowKernels, batch: int, w: Floats, theta: Floats) -> dict[str, Callable[[], Floats]]:
    return {
        "scores": lambda: rows.scores(0, batch, w),
        "gradient": lambda: rows.gradient(0, batch, theta[:batch]),
    }


def best_time(call: Callable[[], object], repeats: int, target_s: float = 2e-3) -> float:
    """Seconds of one call: the best of several repeats of about `target_s` each."""
    began = time.perf_counter()
    call()
    times = max(1, int(target_s / max(time.perf_counter() - began, 1e-7)))
    best = float("inf")
    for _ in range(repeats):
        began = time.perf_counter()
        for _ in range(times):
            call()
        best = min(best, (time.perf_counter() - began) / times)
    return best


def fit(points: Sequence[tuple[int, float]]) -> tuple[float, float]:
    """Microseconds of a call and nanoseconds of a value, by least squares on relative errors.

    >>> us, ns = fit([(0, 2.0), (1000, 3.0), (4000, 6.0)])
    >>> round(us, 6), round(ns, 6)
    (2.0, 1.0)
    """
    values, us = np.array(points, dtype=np.float64).T
    A = np.stack([np.ones_like(values), values], axis=1) / us[:, None]
    call, value = np.linalg.lstsq(A, np.ones_like(us), rcond=None)[0]
    return float(max(call, 0.1)), float(max(value * 1e3, 0.01))
