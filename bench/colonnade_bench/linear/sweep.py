"""A quasi-Newton direction beside first order, with defaults, on every set there is: does it end higher?

Every set of the catalogue whose files are here, FATE's tables, and made-up sets of many shapes. Both runs
have the job's defaults and differ in their direction alone. What is compared is the final training loss,
penalty included; sets of many numbers are cut to their first rows, which the table says.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from colonnade.data.datasets.catalogue import DATASETS
from colonnade.data.datasets.loading import available
from colonnade.data.split.assign import assign
from colonnade.data.table import Table
from colonnade.errors import ColonnadeError, Diverged
from colonnade.job import Data, job_from
from colonnade.run.federate import Tables, run_tables
from colonnade_bench.common import Bench, Grid, Say
from colonnade_bench.linear.made_up import SHAPES, made_up
from colonnade_bench.party_tables import first_rows, label_of, prepared, read_tables

PARTIES, ACTIVE = 3, 2
# first order, and the same with a quasi-Newton direction
PAIRS = {
    "svrg": ("vfb2-svrg", "vfb2-svrg"),
    "saga": ("vfb2-saga", "vfb2-saga"),
    "sgd": ("vfb2-sgd", "vfb2-sgd"),
    "asysqn-svrg": ("afsvrg-vp", "asysqn-svrg"),
    "asysqn-saga": ("afsaga-vp", "asysqn-saga"),
    "asysqn-sgd": ("afsgd-vp", "asysqn-sgd"),
}
LOSSES = {"binary": "logistic", "multiclass": "softmax", "regression": "squared"}
FATE = {"fate breast": "breast_hetero", "fate default credit": "default_credit_hetero"}
MOST_VALUES = 20_000_000  # of a dense set; of a sparse one stored values
TIE = 1e-4  # as a part of the loss: what a run's own end, at a fall of 1e-5 an epoch, leaves open


@dataclass(frozen=True, eq=False)
class Case:
    """A set to compare on: its columns over parties, its loss, and how many rows were left out."""

    name: str
    tables: Tables
    loss: str
    left_out: int = 0

    @property
    def rows(self) -> int:
        return next(iter(self.tables.train.values())).rows

    @property
    def classes(self) -> int:
        """How many different labels there are; they are numbered from 0."""
        return 1 + int(label_of(self.tables.train, self.tables.active[0]).max())


def real_cases(most: int | None, names: Sequence[str] = ()) -> Iterator[Case]:
    """Every set whose files are here, or those of these names; at most so many rows, or what is feasible."""
    for name, known in DATASETS.items():
        if available(name) and (not names or name in names):
            data = Data(train=name, parties=PARTIES, active=ACTIVE)
            yield _case(name, read_tables(data), LOSSES[known.task], most)
    folder = Path(os.environ.get("COLONNADE_DATA", "")) / "fate"
    for name, file in FATE.items():
        files = {side: str(folder / f"{file}_{side}.csv.xz") for side in ("guest", "host")}
        if Path(files["guest"]).is_file() and (not names or name in names):
            data = Data(files=files, label="y", id="id", active=["guest"])
            assigned = assign(data, label_holders=("guest",), task="binary", intercept=False, seed=0)
            yield _case(name, prepared(assigned), "logistic", most)


def set_names() -> list[str]:
    """The names of all real sets whose files are here."""
    folder = Path(os.environ.get("COLONNADE_DATA", "")) / "fate"
    fate = [name for name, file in FATE.items() if (folder / f"{file}_guest.csv.xz").is_file()]
    return [*(name for name in DATASETS if available(name)), *fate]


def _case(name: str, tables: Tables, loss: str, most: int | None) -> Case:
    """A set cut to its first rows, without the columns that are empty there."""
    rows = next(iter(tables.train.values())).rows
    if most is None:
        values = sum(
            table.X.nnz if isinstance(table.X, csr_array) else table.X.size for table in tables.train.values()
        )
        most = min(rows, MOST_VALUES * rows // values)
    train = {party: _filled(table) for party, table in first_rows(tables.train, most).items()}
    return Case(name, Tables(name, train, None, tables.active), loss, max(0, rows - most))


def _filled(table: Table) -> Table:
    """The columns of a sparse table that have a value in some row."""
    X = table.X
    if not isinstance(X, csr_array):
        return table
    kept = np.unique(X.indices)
    columns = tuple(table.columns[j] for j in kept)
    return replace(table, columns=columns, X=csr_array(X[:, kept]))


def made_up_cases(seed: int, shapes: Sequence[str] = ()) -> Iterator[Case]:
    """A made-up set of every shape, or of these."""
    for shape in shapes or SHAPES:
        tables, loss = made_up(shape, seed)
        yield Case(f"made up: {shape}", tables, loss)


def every_case(
    most: int | None, seeds: int, sets: Sequence[str] | None = None, shapes: Sequence[str] | None = None
) -> Iterator[tuple[Case, int]]:
    """Every set with every seed; only those named, where there is a list of names, be it empty."""
    if sets is None or sets:
        for case in real_cases(most, sets or ()):
            for seed in range(seeds):
                yield case, seed
    if shapes is None or shapes:
        for seed in range(seeds):
            for case in made_up_cases(seed, shapes or ()):
                yield case, seed


def final_loss(case: Case, algorithm: str, direction: str, seed: int, **train: Any) -> float:
    """The training loss that a run ends with; infinite if it ends worse than it began."""
    tables = case.tables
    if algorithm.startswith(("af", "asysqn")):  # here every party must hold the label
        y = label_of(tables.train, tables.active[0])
        everywhere = {party: replace(table, y=y) for party, table in tables.train.items()}
        tables = replace(tables, train=everywhere, active=tuple(everywhere))
    if case.loss == "softmax":
        train["classes"] = case.classes
    job = job_from(
        {
            "algorithm": algorithm,
            "world": "simulated",
            "seed": seed,
            "compare": False,
            "secure": {"labels": "clear"},  # a quasi-Newton direction needs theta
            "data": {"train": case.name, "parties": len(tables.train), "active": len(tables.active)},
            "train": {"loss": case.loss, "direction": direction, **train},
        }
    )
    try:
        return run_tables(job, tables).result.metrics["objective"]
    except Diverged:
        return float("inf")


def sweep(
    bench: Bench,
    say: Say,
    cases: Iterator[tuple[Case, int]],
    kinds: Sequence[str],
    *,
    epochs: int | None = None,
) -> None:
    """A row for every set and seed: both losses, for every estimator and conversation."""
    train = {} if epochs is None else {"epochs": epochs, "tolerance": 0.0}
    rows: list[list[Any]] = []
    for case, seed in cases:
        for kind in kinds:
            first, newton = PAIRS[kind]
            try:
                plain = final_loss(case, first, "plain", seed, **train)
                bent = final_loss(case, newton, "lbfgs", seed, **train)
            except ColonnadeError as error:
                say(f"{case.name}, {kind}: {error}")
                continue
            above = bent / plain - 1
            cut = f"{case.rows} of {case.rows + case.left_out}" if case.left_out else str(case.rows)
            rows.append([case.name, cut, seed, kind, plain, bent, f"{above:+.2%}", _verdict(above)])
            say(f"{case.name}, {cut} rows, seed {seed}, {kind}: {plain:.6g} {bent:.6g} {above:+.3%}")
    columns = ["set", "rows", "seed", "estimator", "first order", "quasi-Newton", "difference", "is"]
    length = "the defaults' epochs and end" if epochs is None else f"{epochs} epochs"
    note = (
        f"Final training loss, penalty included, with {length}; {PARTIES} parties, {ACTIVE} with the label "
        "(4 and 2 for made-up sets), asynchronous, simulated; in the pull conversation (asysqn-...) all hold "
        f"it. Differences of no more than {100 * TIE:g}% of the loss are level."
    )
    bench.grids.append(Grid("direction = 'lbfgs' beside first order", columns, rows, note))


def _verdict(above: float) -> str:
    """Whether a quasi-Newton run ended below first order, level with it, or above.

    >>> _verdict(-0.1), _verdict(5e-5), _verdict(0.01)
    ('below', 'level', 'ABOVE')
    """
    return "ABOVE" if above > TIE or np.isnan(above) else "below" if above < -TIE else "level"
