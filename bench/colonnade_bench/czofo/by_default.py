"""Networks by default beside one network on all columns, on rows held back.

    python -m colonnade_bench.czofo.by_default [--algorithms vafl czofo] [--only moons ...]

A quarter of the rows is held back. Ours is `VerticalClassifier(algorithm)`, or the regressor, with two
parties and nothing else said; `linear` is the default algorithm, a linear model; pooled is scikit-learn's
MLP on standardised columns with its own defaults and up to 1,000 epochs. `CHOSE` chose the default, out of
32, 64 and 128 hidden units, 8 to 32 outputs, and 30 to 80 epochs; `UNSEEN` had no part in it.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from sklearn import datasets
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from colonnade import VerticalClassifier, VerticalRegressor
from colonnade.data.datasets.loading import load_dataset
from colonnade.errors import PrivacyWarning
from colonnade.models.blackbox import dense


class Rows(NamedTuple):
    """Columns and labels of a table, and whether these are numbers."""

    X: Any
    y: Any
    numbers: bool = False


def _made(**how: Any) -> Rows:
    return Rows(*datasets.make_classification(**how))


def _numbers(made: tuple[Any, Any]) -> Rows:
    return Rows(made[0], made[1], numbers=True)


def _moons() -> Rows:
    X, y = datasets.make_moons(2000, noise=0.2, random_state=0)
    return Rows(np.c_[X, np.random.default_rng(0).standard_normal((2000, 4))], y)


def _stored(name: str) -> Rows:
    raw = load_dataset(name).train
    return Rows(dense(raw.values), np.asarray(raw.y))


CHOSE: Mapping[str, Callable[[], Rows]] = {
    "20 columns, 4 clusters": lambda: _made(
        n_samples=8000, n_features=20, n_informative=10, n_clusters_per_class=4, random_state=0
    ),
    "3 classes": lambda: _made(
        n_samples=1000, n_features=12, n_informative=8, n_classes=3, random_state=1
    ),
    "moons": _moons,
    "sum of squares": lambda: Rows(*datasets.make_hastie_10_2(6000, random_state=0)),
    "300 rows": lambda: _made(n_samples=300, n_features=10, n_informative=6, random_state=2),
    "digits": lambda: Rows(*datasets.load_digits(return_X_y=True)),
    "wine": lambda: Rows(*datasets.load_wine(return_X_y=True)),
    "friedman1": lambda: _numbers(datasets.make_friedman1(3000, 10, noise=1, random_state=0)),
    "noisy labels": lambda: _made(
        n_samples=1500, n_features=30, n_informative=5, flip_y=0.2, random_state=3
    ),
    "diabetes": lambda: _numbers(datasets.load_diabetes(return_X_y=True)),
}  # fmt: skip
UNSEEN: Mapping[str, Callable[[], Rows]] = {
    "breast cancer": lambda: Rows(*datasets.load_breast_cancer(return_X_y=True)),
    "quantiles": lambda: Rows(
        *datasets.make_gaussian_quantiles(n_samples=3000, n_features=8, random_state=5)
    ),
    "friedman2": lambda: _numbers(datasets.make_friedman2(2000, noise=50, random_state=6)),
    "5 classes": lambda: _made(
        n_samples=4000, n_features=16, n_informative=9, n_classes=5, random_state=7
    ),
    "phishing": lambda: _stored("phishing"),
}  # fmt: skip


def scores(rows: Rows, algorithms: list[str]) -> dict[str, float]:
    """Return the accuracy, or R2 of a number, on the rows held back: linear, ours, and pooled."""
    X, X_test, y, y_test = train_test_split(rows.X, rows.y, test_size=0.25, random_state=0)
    ours = VerticalRegressor if rows.numbers else VerticalClassifier
    found = {"linear": ours(parties=2).fit(X, y).score(X_test, y_test)}
    for algorithm in algorithms:
        found[algorithm] = ours(algorithm, parties=2).fit(X, y).score(X_test, y_test)
    middle, unit = (np.mean(y), np.std(y)) if rows.numbers else (0, 1)
    pooled = (MLPRegressor if rows.numbers else MLPClassifier)(max_iter=1000, random_state=0)
    labels, judged = ((y - middle) / unit, (y_test - middle) / unit) if rows.numbers else (y, y_test)
    found["pooled"] = make_pipeline(StandardScaler(), pooled).fit(X, labels).score(X_test, judged)
    return found


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    given.add_argument("--algorithms", nargs="+", default=["vafl", "czofo"])
    given.add_argument("--only", nargs="+", choices=[*CHOSE, *UNSEEN], default=[*CHOSE, *UNSEEN])
    words = given.parse_args()
    warnings.simplefilter("ignore", PrivacyWarning)
    warnings.simplefilter("ignore", UserWarning)
    heads = ["set", "linear", *words.algorithms, "pooled"]
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    for name, make in {**CHOSE, **UNSEEN}.items():
        if name in words.only:
            cells = [f"{score:.3f}" for score in scores(make(), words.algorithms).values()]
            print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
