"""FDSKL's Figure 6 and Table 4: test errors and training times on splits of every set, kept cell by cell.

Both algorithms, the linear model and boosted trees are trained on every split, the others on the first. A
cell is one algorithm on one split; what it gave stays in OUT/splits, so that processes can work for a table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from colonnade.errors import Diverged
from colonnade.run.federate import Tables
from colonnade_bench.common import Bench, Grid, Say
from colonnade_bench.common import kept as kept_answer
from colonnade_bench.kernel.runs import (
    PARTIES,
    SUMMED_ROWS,
    SVC_SECONDS,
    Trained,
    dsg_error,
    fd_svrg,
    job_for,
    rows_in,
    svc_error,
    tables_of,
    train_federated,
)
from colonnade_bench.papers import FDSKL_TABLE_4, WORDS, stands_for

NOT_THERE = (None, None)
OURS = ("fdskl", "fdskl-capped")
POOLED = {"fdskl": "dsg", "fdskl-capped": "dsg, capped"}
TUNED = {"fdskl, tuned": "fdskl", "fdskl-capped, tuned": "fdskl-capped", "fd-svrg, tuned": "fd-svrg"}
"""What has settings of a grid instead of automatic ones."""
EVERY = (*OURS, "fd-svrg", *TUNED, "secureboost")
"""What is trained on every split."""
KINDS = (*OURS, *POOLED.values(), "svc", "pp-svmv", "fd-svrg", *TUNED, "secureboost")
TIMED = (*OURS, "fdskl, tuned", "secureboost")

CHOOSING = 10  # seed of the split whose training rows choose settings; what is reported has seeds below
CHOOSERS = 5  # one row of so many trains, and as many others judge
PENALTIES = (1e-4, 1e-5, 1e-6)
FRACTIONS = (0.25, 0.4, 0.6, 1.0)
GRIDS: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "fd-svrg": [{"train": {"l2": l2}} for l2 in (1e-3, *PENALTIES)],
    **{
        ours: [
            {"train": {"l2": l2}, "kernel": {"fraction": fraction}}
            for fraction, l2 in product(FRACTIONS, PENALTIES)
        ]
        for ours in OURS
    },
}
"""The settings that are tried: sections of a job."""


class Measured(NamedTuple):
    """What an algorithm gave on a split: test error, seconds, those of the processor, megabytes sent."""

    error: float
    seconds: float
    processor: float
    megabytes: float = 0.0

    @staticmethod
    def of(done: Trained) -> Measured:
        """The figures of a federated run."""
        return Measured(done.error, done.seconds, done.processor, done.run.result.cost.bytes_sent / 1e6)


@dataclass(frozen=True)
class Splits:
    """The cells of both tables. `rows` are the training rows of a set, None: all.

    Where `new` is off, nothing is trained that is not kept.
    """

    out: Path
    rows: int | None = None
    new: bool = True

    def kept(self) -> Splits:
        """The same, of what is there."""
        return replace(self, new=False)

    @staticmethod
    def kinds(seed: int) -> Sequence[str]:
        """What is trained on a split."""
        return KINDS if seed == 0 else EVERY

    def measured(self, name: str, seed: int, kind: str) -> Measured | None:
        """What an algorithm gave on a split, in an earlier run or now; None where it would take too long."""
        path = self.out / "splits" / f"{name}-{seed}-{kind.replace(', ', '-')}.json"
        question = [name, seed, kind, self.rows]
        found = kept_answer(path, question, (lambda: self._train(name, seed, kind)) if self.new else None)
        return None if found is None else Measured(*found)

    def setting(self, name: str, algorithm: str) -> Mapping[str, Any]:
        """Return the setting of the grid that errs least on training rows that were held back."""
        errors = [self.error_held_back(name, algorithm, at) for at in range(len(GRIDS[algorithm]))]
        return GRIDS[algorithm][int(np.argmin(errors))]

    def error_held_back(self, name: str, algorithm: str, at: int) -> float:
        """Return the error of a setting of the grid, by its place, on rows that were held back."""
        setting = GRIDS[algorithm][at]
        path = self.out / "splits" / f"{name}-grid-{algorithm}-{at}.json"
        compute = partial(_error_held_back, name, algorithm, setting, self.rows)
        error: float = kept_answer(path, [name, algorithm, self.rows, setting], compute if self.new else None)
        return error

    def _train(self, name: str, seed: int, kind: str) -> Measured | None:
        tables = _tables(name, seed, self.rows)
        match kind:
            case _ if kind in TUNED:
                setting = self.setting(name, TUNED[kind])
                return Measured.of(trained(tables, TUNED[kind], seed, setting))
            case "dsg" | "dsg, capped":
                (algorithm,) = (ours for ours, pooled in POOLED.items() if pooled == kind)
                error, seconds = dsg_error(tables, algorithm, seed)
                return Measured(error, seconds, seconds)
            case "svc":
                libsvm = svc_error(tables, seed)
                return None if libsvm is None else Measured(libsvm[0], libsvm[1], libsvm[1])
            case "pp-svmv" if rows_in(tables) > SUMMED_ROWS:
                return None
            case "secureboost":
                job = job_for(tables, kind, seed, train={"loss": "logistic"})
                return Measured.of(train_federated(job, tables))
            case _:
                return Measured.of(trained(tables, kind, seed, {}))

    def add(self, bench: Bench, names: Sequence[str], splits: int, say: Say) -> None:
        """Add both tables of so many splits, or put them in the place of those of fewer."""
        found: dict[str, dict[str, list[Measured]]] = {}
        for seed in range(splits):
            for name in names:
                cells = found.setdefault(name, {kind: [] for kind in KINDS})
                for kind in self.kinds(seed):
                    if (cell := self._known(name, seed, kind)) is not None:
                        cells[kind].append(cell)
                        say(
                            f"{name}, split {seed + 1}, {kind}: test error {cell.error:.4f} after "
                            f"{cell.seconds:.1f} s, {cell.megabytes:.0f} MB"
                        )
        tables = self.tables(found)
        titles = {grid.title for grid in tables}
        bench.grids[:] = [*tables, *(grid for grid in bench.grids if grid.title not in titles)]
        bench.data["splits"] = found

    def _known(self, name: str, seed: int, kind: str) -> Measured | None:
        try:
            return self.measured(name, seed, kind)
        except LookupError:
            return None

    def tables(self, found: dict[str, dict[str, list[Measured]]]) -> list[Grid]:
        """Figure 6 and Table 4."""
        errors: list[list[Any]] = []
        times: list[list[Any]] = []
        for name, cells in found.items():
            each = {kind: [cell.error for cell in some] for kind, some in cells.items()}
            mean = [float(np.mean(some)) if some else None for some in each.values()]
            spread = [edge(each[kind], default=None) for kind in OURS for edge in (min, max)]
            errors.append([name, *mean, *spread, *(len(each[kind]) for kind in OURS)])
            fdskl, secureboost = FDSKL_TABLE_4.get(stands_for(name), NOT_THERE)
            for kind in (timed for timed in TIMED if cells[timed]):
                middle = np.median([cell[1:] for cell in cells[kind]], axis=0)
                theirs = secureboost if kind == "secureboost" else fdskl
                times.append([name, kind, middle[0] / 60, *middle.tolist(), theirs])
        spans = [f"{edge} of {kind}" for kind in OURS for edge in ("least", "most")]
        heads = ["data set", *KINDS, *spans, *(f"splits of {kind}" for kind in OURS)]
        note = f"{PARTIES} parties. Tuned: settings of the grid below. "
        note += "Means over the splits; dsg, svc and pp-svmv on the first split: svc "
        note += f"where it ends within {SVC_SECONDS / 60:.0f} minutes, pp-svmv of {SUMMED_ROWS} rows at most."
        if self.rows is not None:
            note += f" {self.rows} training rows of every set."
        figure = Grid("Figure 6: test error", heads, errors, note)
        grid = self.grid(found)
        heads = ["data set", "algorithm", "ours [min]", "[s]", "processor [s]", "MB sent"]
        heads.append("paper, FDSKL and SecureBoost [min]")
        note = "The paper used 24 cores; ours are all parties in one process, medians over the splits. "
        note += "".join(f"{name} {WORDS[name]}. " for name in found if name in WORDS)
        return [figure, grid, Grid("Table 4: training time", heads, times, note)]

    def grid(self, names: Sequence[str] | Mapping[str, Any]) -> Grid:
        """Return what the grids are, and what was chosen of them."""
        rows: list[list[Any]] = []
        for name, algorithm in product(names, GRIDS):
            try:
                chosen = self.kept().setting(name, algorithm)
            except LookupError:
                continue
            rows.append([name, algorithm, len(GRIDS[algorithm]), _words(chosen)])
        note = (
            f"l2 of {_values(PENALTIES)} (fd-svrg also 1e-3) and, of kernels, bandwidths of "
            f"{_values(FRACTIONS)} times the median distance. Chosen by the error on a part of the training "
            f"rows of split {CHOOSING}, which is not reported, after training on another: one row of "
            f"{CHOOSERS} each. Steps are automatic everywhere."
        )
        return Grid("Settings that were tried", ["data set", "algorithm", "settings", "chosen"], rows, note)


def trained(tables: Tables, algorithm: str, seed: int, setting: Mapping[str, Any]) -> Trained:
    """Train one of the algorithms that have a grid, with a setting of it or automatic ones."""
    if algorithm == "fd-svrg":
        return fd_svrg(tables, seed, **setting)
    return train_federated(job_for(tables, algorithm, seed, **setting), tables)


def _error_held_back(name: str, algorithm: str, setting: Mapping[str, Any], rows: int | None) -> float:
    """Train on a part of the training rows of a split that is not reported; the error on another part."""
    whole = _tables(name, CHOOSING, rows)
    order = np.random.default_rng(CHOOSING).permutation(rows_in(whole))
    size = max(1, len(order) // CHOOSERS)
    train, judged = (
        {party: table.take(np.sort(part)) for party, table in whole.train.items()}
        for part in (order[:size], order[size : 2 * size])
    )
    try:
        return trained(replace(whole, train=train, test=judged), algorithm, CHOOSING, setting).error
    except Diverged:
        return 1.0  # as bad as any


def _values(numbers: Sequence[float]) -> str:
    return ", ".join(f"{number:g}" for number in numbers)


def _words(setting: Mapping[str, Any]) -> str:
    """Return a setting as the tables say it.

    >>> _words({"train": {"l2": 1e-05}, "kernel": {"fraction": 0.4}})
    'l2 1e-05, fraction 0.4'
    """
    return ", ".join(f"{key} {value:g}" for keys in setting.values() for key, value in keys.items())


@lru_cache(maxsize=1)
def _tables(name: str, seed: int, rows: int | None) -> Tables:
    return tables_of(name, seed, rows=rows)
