"""Boosted trees as they come on the tables of R's packages, beside HistGradientBoosting with its categories.

    COLONNADE_DATA=~/data python -m colonnade_bench.trees.packages [--only ames ...] [--exact] [--weight 1]
        [--trees noise=0 ...]

`Rscript bench/packages.R ~/data/packages` writes the tables, `python bench/packages.py ~/data/packages` most
of them. Ours are trained by file and from Python, theirs on all columns in one place; both have 100 rounds,
and theirs is told which columns are categories. Tables of fewer than 2,000 rows are measured in five folds,
and a figure is their mean.

With `--exact` histograms are as they are (`[trees] bits = 0`); by default derivatives are rounded, sums have
noise, and nothing is told of small nodes. `--weight` is `min_child_weight`: by default 20 where a number is
predicted, as it counts rows there and scikit-learn has as many in a leaf, and else 1. `--trees` sets any
other number of `[trees]`.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
import tempfile
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from colonnade import VerticalClassifier, VerticalRegressor
from colonnade.cli.new import new
from colonnade.cli.run import run
from colonnade.data.datasets.loading import data_folders
from colonnade.job.writing import value_text
from colonnade.test_scores import FILE, TestScores
from colonnade_bench.defaults.measure import Quality, _predicted
from colonnade_bench.defaults.packages import PACKAGES
from colonnade_bench.defaults.problem import Frames, Rows

SECUREBOOST, ROUNDS, NEAR = "secureboost", 100, 0.01
CLEAR = {"secure": {"labels": "clear"}}
DEFAULTS: Mapping[str, float] = {}


def main() -> None:
    """Print a line for every table, and how many are near."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", choices=list(PACKAGES), default=list(PACKAGES))
    parser.add_argument("--exact", action="store_true")
    parser.add_argument("--weight", type=float)
    parser.add_argument("--trees", nargs="*", default=[], metavar="KEY=NUMBER", type=_setting)
    given = parser.parse_args()
    trees: dict[str, float] = {"bits": 0} if given.exact else {}
    if given.weight is not None:
        trees["min_child_weight"] = given.weight
    trees |= dict(given.trees)
    print("| data | rows | by file | from Python | HistGradientBoosting | near | s |")
    print("|---|---|---|---|---|---|---|")
    near = count = 0
    warnings.simplefilter("ignore")  # of privacy and of new categories, which all tables have
    for name in given.only:
        try:
            problems = list(PACKAGES[name](data_folders()[0]))
        except FileNotFoundError as error:
            say = f"{name} is left out: there is no {error.filename}; bench/packages.R writes it"
            print(say, file=sys.stderr)
            continue
        if problems[0].kind == "counts":
            continue
        began = time.perf_counter()
        found = measured(problems, trees)
        rows = problems[0].rows()
        values = [each.accuracy for each in found]
        is_near = values[0] >= values[2] - NEAR or found[0].loss <= found[2].loss * 1.01
        near, count = near + is_near, count + 1
        shown = " | ".join(f"{value:.4f}" for value in values)
        seconds = time.perf_counter() - began
        print(
            f"| {name} | {len(rows.y)} | {shown} | {'yes' if is_near else 'NO'} | {seconds:.0f} |", flush=True
        )
    print(f"{near} of {count} are at most a point behind, or have no higher loss")


def _setting(text: str) -> tuple[str, float]:
    """Return the key and the number of KEY=NUMBER; whole numbers as such."""
    key, _, number = text.partition("=")
    value = float(number)
    return key, int(value) if value.is_integer() and key not in ("noise", "min_child_weight") else value


def measured(problems: Sequence[Frames], trees: Mapping[str, float] = DEFAULTS) -> list[Quality]:
    """Return what is reached by file, from Python and by scikit-learn: the mean over all folds."""
    folds = [
        (by_file(each, trees), ours(each, each.rows(), trees), theirs(each, each.rows())) for each in problems
    ]
    return [Quality.mean(list(each)) for each in zip(*folds, strict=True)]


def by_file(problem: Frames, trees: Mapping[str, float]) -> Quality:
    """Return what `colonnade new` and `colonnade run` reach."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        words, tests = problem.write(folder)
        job, out = folder / "job.toml", folder / "run"
        with contextlib.redirect_stdout(io.StringIO()) as shown, contextlib.redirect_stderr(shown):
            new.main([*words, "--clear", "--out", str(job)], standalone_mode=False)
            added = "".join(f"{key} = {value_text(value)}\n" for key, value in tests.items())
            text = job.read_text(encoding="utf-8").replace("[data]\n", f"[data]\n{added}")
            job.write_text(as_trees(text, trees), encoding="utf-8")
            run.main([str(job), "--out", str(out), "--no-pooled"], standalone_mode=False)
        scores = TestScores.read(out / FILE)
    return Quality.of(problem.kind, scores.y, _predicted(problem.kind, scores.z))


def as_trees(text: str, trees: Mapping[str, float]) -> str:
    """Return a job for trees: another algorithm, as many rounds, and none of what is for linear models."""
    lines = [line for line in text.splitlines() if not line.startswith(("l2 =", "epochs =", "tolerance ="))]
    lines = [f'algorithm = "{SECUREBOOST}"' if line.startswith("algorithm") else line for line in lines]
    lines = [f"{line}\nepochs = {ROUNDS}" if line == "[train]" else line for line in lines]
    return "\n".join([*lines, "[trees]", *(f"{key} = {value}" for key, value in trees.items())]) + "\n"


def ours(problem: Frames, rows: Rows, trees: Mapping[str, float]) -> Quality:
    """Return what the estimators reach."""
    holders = list(problem.columns.values())
    more: dict[str, Any] = {
        "columns": dict(zip(problem.columns, holders, strict=True)),
        "job": {**CLEAR, "trees": dict(trees)},
        "epochs": ROUNDS,
    }
    if problem.kind == "classes":
        model: Any = VerticalClassifier(SECUREBOOST, **more).fit(rows.X, rows.y)
        return Quality.of(problem.kind, rows.y_test, model.predict_proba(rows.X_test))
    model = VerticalRegressor(SECUREBOOST, **more).fit(rows.X, rows.y)
    return Quality.of(problem.kind, rows.y_test, model.predict(rows.X_test))


def theirs(problem: Frames, rows: Rows) -> Quality:
    """Return what scikit-learn's trees reach on all columns, categories as such."""
    train, test = categories(rows.X, rows.X_test)
    kind = HistGradientBoostingClassifier if problem.kind == "classes" else HistGradientBoostingRegressor
    model = kind(max_iter=ROUNDS, categorical_features="from_dtype", random_state=0).fit(train, rows.y)
    predict = model.predict_proba if problem.kind == "classes" else model.predict
    return Quality.of(problem.kind, rows.y_test, predict(test))


def categories(train: pd.DataFrame, test: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return both tables with text as categories of the training rows; what is not among them is a gap."""
    train, test = train.copy(), test.copy()
    for column in train.columns:
        if not pd.api.types.is_numeric_dtype(train[column]):
            known = pd.Index(train[column].dropna().astype(str).unique())[:255]
            for table in (train, test):
                text = table[column].astype(str).where(table[column].notna())
                table[column] = pd.Categorical(text.where(text.isin(known)), categories=known)
    return train, test


if __name__ == "__main__":
    main()
