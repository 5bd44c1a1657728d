"""FDSKL's Figure 6 and Table 4: test errors and training times on splits of every set, kept cell by cell.

Both algorithms, the linear model and boosted trees are trained on every split, the others on the first. A
cell is one algorithm on one split; what it gave stays in OUT/splits, so that processes can work for a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

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
EVERY = (*OURS, "fd-svrg", "secureboost")
"""What is trained on every split."""
KINDS = (*OURS, *POOLED.values(), "svc", "pp-svmv", "fd-svrg", "secureboost")
TIMED = (*OURS, "secureboost")


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

    def _train(self, name: str, seed: int, kind: str) -> Measured | None:
        tables = _tables(name, seed, self.rows)
        match kind:
            case "dsg" | "dsg, capped":
                (algorithm,) = (ours for ours, pooled in POOLED.items() if pooled == kind)
                error, seconds = dsg_error(tables, algorithm, seed)
                return Measured(error, seconds, seconds)
            case "svc":
                libsvm = svc_error(tables, seed)
                return None if libsvm is None else Measured(libsvm[0], libsvm[1], libsvm[1])
            case "pp-svmv" if rows_in(tables) > SUMMED_ROWS:
                return None
            case "fd-svrg":
                return Measured.of(fd_svrg(tables, seed))
            case "secureboost":
                job = job_for(tables, kind, seed, train={"loss": "logistic"})
                return Measured.of(train_federated(job, tables))
            case _:
                return Measured.of(train_federated(job_for(tables, kind, seed), tables))

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
        note = f"{PARTIES} parties. Means over the splits; dsg, svc and pp-svmv on the first split: svc "
        note += f"where it ends within {SVC_SECONDS / 60:.0f} minutes, pp-svmv of {SUMMED_ROWS} rows at most."
        if self.rows is not None:
            note += f" {self.rows} training rows of every set."
        figure = Grid("Figure 6: test error", heads, errors, note)
        heads = ["data set", "algorithm", "ours [min]", "[s]", "processor [s]", "MB sent"]
        heads.append("paper, FDSKL and SecureBoost [min]")
        note = "The paper used 24 cores; ours are all parties in one process, medians over the splits. "
        note += "".join(f"{name} {WORDS[name]}. " for name in found if name in WORDS)
        return [figure, Grid("Table 4: training time", heads, times, note)]


@lru_cache(maxsize=1)
def _tables(name: str, seed: int, rows: int | None) -> Tables:
    return tables_of(name, seed, rows=rows)
