"""Made-up tables, each with one thing that goes wrong with strangers' files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from colonnade_bench.defaults.problem import Problem, folds, parted

Numbers = NDArray[np.float64]


def _normal(rows: int, seed: int, columns: int = 8) -> tuple[np.random.Generator, Numbers, Numbers]:
    """A generator, independent columns, and the score that they make together."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns))
    return rng, X, X @ rng.normal(size=columns)


def _frame(X: Numbers, y: Any) -> pd.DataFrame:
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])]).assign(y=y)


def _drawn(rng: np.random.Generator, score: Numbers) -> NDArray[np.int64]:
    """Labels 0 and 1 whose log-odds are the score."""
    return (rng.random(len(score)) < 1 / (1 + np.exp(-score))).astype(np.int64)


def _rare_positives() -> Iterator[Problem]:
    rng, X, z = _normal(20_000, 1)
    return parted("one positive in a hundred", _frame(X, _drawn(rng, 0.7 * z - 6.0)))


def _badly_scaled() -> Iterator[Problem]:
    rng, X, z = _normal(4_000, 2)
    return parted("scales of 1e-6 to 1e9", _frame(X * 10.0 ** np.linspace(-6, 9, 8) + 1e3, _drawn(rng, z)))


def _heavy_tails() -> Iterator[Problem]:
    rng, X, z = _normal(4_000, 3)
    return parted("heavy tails", _frame(np.sign(X) * np.exp(2.0 * np.abs(X)), _drawn(rng, z)))


def _many_texts() -> Iterator[Problem]:
    rng, X, z = _normal(6_000, 4, 3)
    worth = rng.normal(size=800)
    street = np.minimum(rng.geometric(0.006, len(z)) - 1, 799)
    town = rng.integers(0, 40, len(z))
    frame = _frame(X, _drawn(rng, 0.5 * z + worth[street] + worth[town]))
    frame.insert(1, "street", [f"street {k}" for k in street])
    frame.insert(2, "town", [f"town {k}" for k in town])
    return parted("text of 800 values", frame)


def _many_gaps() -> Iterator[Problem]:
    rng, X, z = _normal(6_000, 5)
    y = _drawn(rng, z)
    frame = _frame(X, y)
    frame["kind"] = np.array(["a", "b", "c"], dtype=object)[rng.integers(0, 3, len(y))]
    for j, part in enumerate(np.linspace(0.1, 0.7, 8)):
        frame.loc[rng.random(len(y)) < part, f"x{j}"] = np.nan
    frame.loc[rng.random(len(y)) < 0.4, "kind"] = None
    frame.loc[X[:, 0] > 1, "x0"] = np.nan  # whether it is there says something, too
    return parted("gaps in half of the cells", frame)


def _correlated() -> Iterator[Problem]:
    rng, X, z = _normal(4_000, 6, 4)
    again = np.hstack([X, X + 0.01 * rng.normal(size=X.shape), X.sum(axis=1, keepdims=True)])
    return parted("correlated columns", _frame(again, _drawn(rng, z)))


def _thirty_rows() -> Iterator[Problem]:
    rng, X, z = _normal(30, 7, 4)
    return folds("30 rows", _frame(X, np.where(_drawn(rng, 3 * z), "yes", "no")), companies=2)


def _separable() -> Iterator[Problem]:
    _, X, z = _normal(2_000, 8)
    return parted("separable classes", _frame(X, np.where(z > 0, "good", "bad")))


def _wide() -> Iterator[Problem]:
    rng, X, z = _normal(200, 9, 400)
    return folds("more columns than rows", _frame(X, _drawn(rng, z)), companies=4)


def _number_with_outliers() -> Iterator[Problem]:
    rng, X, z = _normal(3_000, 10)
    y = 1e6 + 1e5 * (z + rng.normal(size=len(z)))
    y[rng.random(len(y)) < 0.01] *= 3.0
    X[rng.random(X.shape) < 0.002] *= 50.0
    return parted("number with outliers", _frame(X, y), kind="number")


def _small_number() -> Iterator[Problem]:
    rng, X, z = _normal(1_000, 11)
    return folds("number near 1e-4", _frame(X, 1e-4 + 1e-5 * (z + rng.normal(size=len(z)))), kind="number")


def _counts() -> Iterator[Problem]:
    rng, X, z = _normal(5_000, 12, 5)
    return parted("counts", _frame(X, rng.poisson(np.exp(0.3 * z - 1.0))), kind="counts")


STRANGERS: dict[str, Callable[[], Iterator[Problem]]] = {
    "one positive in a hundred": _rare_positives,
    "scales of 1e-6 to 1e9": _badly_scaled,
    "heavy tails": _heavy_tails,
    "text of 800 values": _many_texts,
    "gaps in half of the cells": _many_gaps,
    "correlated columns": _correlated,
    "30 rows": _thirty_rows,
    "separable classes": _separable,
    "more columns than rows": _wide,
    "number with outliers": _number_with_outliers,
    "number near 1e-4": _small_number,
    "counts": _counts,
}
