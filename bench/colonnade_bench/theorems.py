"""Whether the papers' theorems on convergence show: slopes in log-log of what they bound, by a run's length.

A theorem says that something falls like T^-p if the step is chosen for T. So there is a run for every T, with
the step that the theorem has for it, and the slope of log(measure) over log(T) is fitted for each seed. The
table has the mean slope with an interval of 95% over seeds. The measure is at the last weights of each run;
most theorems bound a mean over all weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t as student

from colonnade.arrays import Floats
from colonnade.losses import LOSSES
from colonnade.regularizers import REGULARIZERS
from colonnade_bench.common import Bench, Grid, Panel, Say
from colonnade_bench.kernel.rate import ROWS as KERNEL_ROWS
from colonnade_bench.kernel.rate import distance
from colonnade_bench.linear.trials import L2, Problem, Trace, problem, train

TITLE = "The papers' theorems on convergence, by their slopes"
PARTS = {
    "vfb2": "Theorems 4 to 6: nonconvex problems, SGD, SVRG and SAGA",
    "asyrevel": "Theorems 2 and 3: function values, both kinds of smoothing",
    "czofo": "Theorem 5.2: compressed outputs and replies, asynchronous clients",
    "fdskl": "Theorem 4: distance from the kernel machine's optimum",
}
LAST = ()
MINUTES = {"vfb2": 4, "asyrevel": 6, "czofo": 5, "fdskl": 2}
PARTIES, ROWS, BATCH = 4, 1_000, 50
NONCONVEX = {"regularizer": "nonconvex"}


@dataclass(frozen=True)
class Claim:
    """One theorem: what it says falls, how fast, and the job of a run of length T."""

    name: str
    says: str
    power: float
    lengths: Sequence[int]  # epochs
    measure: Callable[[int, int], float]  # of a number of epochs and a seed


def slope(lengths: Sequence[int], values: Sequence[float]) -> float:
    """Return the slope of log(values) over log(lengths).

    >>> round(slope([1, 4, 16], [1.0, 0.5, 0.25]), 3)
    -0.5
    """
    return float(np.polyfit(np.log(lengths), np.log(values), 1)[0])


def interval(slopes: Sequence[float]) -> tuple[float, float, float]:
    """Return the mean of some slopes and the ends of its interval of 95%.

    >>> interval([-0.5, -0.5, -0.5])
    (-0.5, -0.5, -0.5)
    """
    mean = float(np.mean(slopes))
    half = float(student.ppf(0.975, len(slopes) - 1) * np.std(slopes, ddof=1) / math.sqrt(len(slopes)))
    return mean, mean - half, mean + half


def pieces(quick: bool) -> list[str]:
    """What can run side by side: every part."""
    return list(PARTS)


def run(
    quick: bool, out: Path, say: Say, *, only: Sequence[str] = (), tables: Path | None = None
) -> list[Path]:
    """Measure the slopes of every part, or some, and write what there is after each."""
    bench = Bench("theorems", TITLE, quick)
    rows: list[list[Any]] = []
    note = (
        f"First {ROWS:,} rows of a9a over {PARTIES} parties, nonconvex penalty, logistic loss, batches of "
        f"{BATCH}, at the last weights; FDSKL: {KERNEL_ROWS} made-up rows, squared loss. Means over seeds, "
        "with an interval of 95%. A theorem is an upper bound: it shows where the slope is no higher than "
        "its own."
    )
    columns = ["theorem", "says", "its slope", "measured", "interval", "epochs", "seeds", "shows"]
    bench.grids.append(Grid("Slopes", columns, rows, note))
    return bench.made(only or PARTS, lambda part: _part(bench, rows, part, say, quick=quick), tables or out)


def _part(bench: Bench, rows: list[list[Any]], part: str, say: Say, *, quick: bool) -> None:
    seeds = 2 if quick else 5
    for claim in CLAIMS[part]():
        lengths = claim.lengths[:3] if quick else claim.lengths
        found = np.array([[claim.measure(T, seed) for T in lengths] for seed in range(seeds)])
        mean, low, high = interval([slope(lengths, values) for values in found])
        shows = "yes" if high <= claim.power else "within the interval" if low <= claim.power else "no"
        between, epochs = f"{low:.2f} to {high:.2f}", f"{lengths[0]} to {lengths[-1]}"
        rows.append([claim.name, claim.says, claim.power, mean, between, epochs, seeds, shows])
        say(f"{claim.name}: slope {mean:.2f} ({between}), the theorem's {claim.power:g}: {shows}")
        line = [(float(T), float(value)) for T, value in zip(lengths, found.mean(axis=0), strict=True)]
        bound = [(float(T), line[0][1] * (T / lengths[0]) ** claim.power) for T in lengths]
        lines = {"measured": line, f"T^{claim.power:g}": bound}
        bench.panels.append(Panel(claim.name, "epochs", claim.says.split(" is ")[0], lines, log=True))


@lru_cache(maxsize=1)
def _data() -> Problem:
    return problem("a9a", q=PARTIES).part(ROWS)


def gradient_squared(data: Problem, trace: Trace) -> float:
    """Return the squared length of the objective's gradient at a run's last weights."""
    w: Floats = np.concatenate([np.asarray(trace.shares[party].weights["w"]).ravel() for party in data.train])
    X = data.pooled
    theta = LOSSES["logistic"].dz(X @ w, data.y)
    gradient = X.T @ theta / data.rows + L2 * REGULARIZERS["nonconvex"].gradient(w)
    return float(gradient @ gradient)


def _trained(algorithm: str, terms: Mapping[str, Any], seed: int, **sections: Any) -> float:
    data = _data()
    more = {"batch": BATCH, "evaluate_every": 0, **NONCONVEX, **terms}
    return gradient_squared(data, train(data, algorithm, active=2, seed=seed, train=more, **sections))


def _vfb2() -> list[Claim]:
    """VFB2, Theorems 4 to 6: the step of SGD is chosen for T, those of SVRG and SAGA are constant."""
    found = []
    for number, estimator in ((4, "sgd"), (5, "svrg"), (6, "saga")):
        power = -0.5 if estimator == "sgd" else -1.0

        def measure(T: int, seed: int, how: str = estimator) -> float:
            step = 1.0 / math.sqrt(T) if how == "sgd" else 0.1
            return _trained(f"vfb2-{how}", {"epochs": T, "step": step}, seed)

        says = f"|gradient|^2 is O(T^{power:g})"
        found.append(Claim(f"VFB2 {number}, {estimator.upper()}", says, power, (4, 8, 16, 32, 64), measure))
    return found


def _asyrevel() -> list[Claim]:
    """AsyREVEL, Theorems 2 and 3: step and smoothing are chosen for T; the sphere's step has the factor d."""
    found = []
    for number, kind in ((2, "gau"), (3, "uni")):

        def measure(T: int, seed: int, kind: str = kind) -> float:
            step = 0.4 / math.sqrt(T)
            cascade = {"decay": "none", "mu": 1e-3 / math.sqrt(T), "precision": "float64", "directions": 4}
            return _trained(f"asyrevel-{kind}", {"epochs": T, "step": step}, seed, cascade=cascade)

        name = f"AsyREVEL {number}, {kind}"
        found.append(Claim(name, "|gradient|^2 is O(T^-0.5)", -0.5, (8, 16, 32, 64, 128), measure))
    return found


def _czofo() -> list[Claim]:
    """VFL-CZOFO, Theorem 5.2: step and smoothing are chosen for T, messages have 8 bits."""

    def measure(T: int, seed: int) -> float:
        cascade = {"decay": "none", "mu": 1e-2 / math.sqrt(T), "directions": 10, "per": "sample"}
        return _trained("czofo", {"epochs": T, "step": 2.0 / math.sqrt(T)}, seed, cascade=cascade)

    says = "|gradient|^2 is O(T^-0.5)"
    return [Claim("VFL-CZOFO 5.2, 8 bits, asynchronous", says, -0.5, (4, 8, 16, 32, 64), measure)]


def _fdskl() -> list[Claim]:
    """FDSKL, Theorem 4: with a step chosen for T the squared distance from the optimum is O(log(T) / T)."""
    says = "E (f - f*)^2 is O(log T / T)"
    return [Claim("FDSKL 4", says, -1.0, (4, 8, 16, 32, 64), distance)]


CLAIMS: Mapping[str, Callable[[], list[Claim]]] = {
    "vfb2": _vfb2, "asyrevel": _asyrevel, "czofo": _czofo, "fdskl": _fdskl,
}  # fmt: skip
