"""Strangers' data: `colonnade new` and `run`, Python's estimators, and scikit-learn, side by side.

Nothing is set but files, label and id (and, of counts, the loss). Every company has a file with its own part
of the rows in its own order; test rows lie in files apart. The pipeline gets the joined table: it fills gaps,
scales numbers, makes columns of texts, and fits LogisticRegression, Ridge or PoissonRegressor as they come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from colonnade.data.datasets.loading import data_folders
from colonnade_bench.common import Bench, Grid, Say
from colonnade_bench.defaults.known import KNOWN
from colonnade_bench.defaults.measure import Quality, Run, by_commands, by_pipeline, from_python
from colonnade_bench.defaults.packages import PACKAGES
from colonnade_bench.defaults.problem import Frames, Problem
from colonnade_bench.defaults.strangers import STRANGERS

POINTS, LOSS = 0.003, 0.01  # how far behind scikit-learn is near enough
QUICK_ROWS = 2_000
PARTS = {
    "known": "data sets of the literature",
    "packages": "tables of R's packages",
    "strangers": "made-up tables",
}
COLUMNS = (
    "data",
    "rows",
    "parties",
    "accuracy or R2",
    "AUC",
    "loss",
    "near",
    "converged",
    "rounds",
    "MB",
    "s",
)
NOTE = (
    "Of each measure: `colonnade run` / VerticalClassifier() or VerticalRegressor() / the pipeline. Rows are "
    "common training rows. Near: accuracy (R2 of numbers) and AUC of both of ours are at most 0.3 points "
    "behind, or the loss at most 1% above. The loss is the logistic one, the mean squared error, or the "
    "Poisson deviance."
)


@dataclass(frozen=True)
class Row:
    """One data set: the quality of each way, and what the run cost; means over folds where there are some."""

    name: str
    rows: int
    parties: int
    run: Quality
    python: Quality
    pipeline: Quality
    converged: bool
    rounds: int
    megabytes: float
    seconds: float

    def near(self) -> bool:
        """Whether both of ours are as good as the pipeline, or next to it."""
        return all(near(ours, self.pipeline) for ours in (self.run, self.python))

    def cells(self) -> list[str]:
        """The row of the table: of each measure ours by commands, from Python, and scikit-learn's."""
        return [
            *(self.name, f"{self.rows:,}", str(self.parties)),
            *(self.three(key) for key in ("accuracy", "auc", "loss")),
            *("yes" if true else "NO" for true in (self.near(), self.converged)),
            *(str(self.rounds), f"{self.megabytes:.3g}", f"{self.seconds:.1f}"),
        ]

    def three(self, key: str) -> str:
        """One measure of the three ways; a dash if there is none."""
        values = [getattr(quality, key) for quality in (self.run, self.python, self.pipeline)]
        return "-" if np.isnan(values).all() else " / ".join(f"{value:.4g}" for value in values)


def near(ours: Quality, other: Quality) -> bool:
    """Whether accuracy (or R2) and AUC are at most 0.3 points behind, or the loss at most 1% above.

    >>> near(Quality(0.5, 0.818, 0.719), Quality(0.4, 0.82, 0.72)), near(Quality(0.102), Quality(0.1))
    (True, False)
    """
    if ours.loss <= (1 + LOSS) * other.loss:
        return True
    if np.isnan(other.accuracy):
        return False
    return ours.accuracy >= other.accuracy - POINTS and not ours.auc < other.auc - POINTS


def run(quick: bool, out: Path, say: Say, only: tuple[str, ...] = ()) -> list[Path]:
    """Measure every data set that is here, and write the table."""
    bench = Bench("defaults", "Files, label and id: nothing else is set", quick)
    rows: list[Row] = []
    texts: dict[str, str] = {}
    for name, make in problems_of(only).items():
        try:
            problems = list(islice(make(), 1 if quick else None))
        except FileNotFoundError as absent:
            say(f"{name}: left out, {absent.filename} is not there")
            continue
        row, texts[name] = _measured([_smaller(each) for each in problems] if quick else problems)
        rows.append(row)
        say(_line(row))
    bench.grids.append(Grid("Test rows", COLUMNS, [row.cells() for row in rows], NOTE))
    bench.data = {"sets": [asdict(row) for row in rows], "printed": texts}
    return bench.write(out)


def problems_of(only: tuple[str, ...]) -> dict[str, Callable[[], Iterator[Problem]]]:
    """What makes each data set's problems, those of a folder's files from the first folder that is there."""
    root = next((folder for folder in data_folders() if folder.is_dir()), Path())
    known: dict[str, Callable[[], Iterator[Problem]]] = {
        name: partial(make, root) for name, make in KNOWN.items()
    }
    packages: dict[str, Callable[[], Iterator[Problem]]] = {
        name: partial(make, root) for name, make in PACKAGES.items()
    }
    parts = {"known": known, "packages": packages, "strangers": STRANGERS}
    return {
        name: make for part, some in parts.items() if part in (only or PARTS) for name, make in some.items()
    }


def _measured(problems: list[Problem]) -> tuple[Row, str]:
    """One data set's row, and what the commands printed for the first of its folds."""
    runs: list[Run] = []
    python, pipeline = [], []
    for problem in problems:
        with TemporaryDirectory() as folder:
            runs.append(by_commands(problem, Path(folder)))
        rows = problem.rows()
        python.append(from_python(problem, rows))
        pipeline.append(by_pipeline(problem, rows))
    results = [each.result for each in runs]
    row = Row(
        problems[0].name,
        results[0].data.rows["train"],
        len(results[0].parties),
        Quality.mean([each.quality for each in runs]),
        Quality.mean(python),
        Quality.mean(pipeline),
        all(result.converged for result in results),
        round(np.mean([result.cost.rounds for result in results])),
        float(np.mean([result.cost.bytes_sent for result in results])) / 1e6,
        float(np.mean([each.seconds for each in runs])),
    )
    return row, runs[0].shown


def _smaller(problem: Problem) -> Problem:
    """The same problem with few rows, taken at random: files may be sorted by their label."""

    def some(count: int) -> list[int]:
        return [int(k) for k in np.random.default_rng(0).permutation(count)[:QUICK_ROWS]]

    train, test = some(len(problem.train)), some(len(problem.test))
    if isinstance(problem, Frames):
        return replace(problem, train=problem.train.iloc[train], test=problem.test.iloc[test])
    return replace(problem, train=[problem.train[k] for k in train], test=[problem.test[k] for k in test])


def _line(row: Row) -> str:
    """A data set in one line: ours by commands, from Python, and scikit-learn's."""
    words = [f"{key} {row.three(key)}" for key in ("accuracy", "auc", "loss") if row.three(key) != "-"]
    verdict = "near" if row.near() else "BEHIND"
    ended = "converged" if row.converged else "NOT CONVERGED"
    cost = f"{row.rounds} rounds, {row.megabytes:.3g} MB, {row.seconds:.1f} s"
    return f"{row.name}: {', '.join(words)}; {verdict}, {ended}, {cost}"
