"""FDSKL's Figure 3: test error against processor time, where a point is a run of so many passes.

The last point of a line is the usual number of passes and comes from the first split (`splits`), as do those
of LIBSVM. What a run gave stays in OUT/figure3, since all of them together take long.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from colonnade_bench.common import Bench, Grid, Panel, Say, kept
from colonnade_bench.kernel.runs import dsg_error, job_for, tables_of, train_federated
from colonnade_bench.kernel.splits import OURS, POOLED, Splits

PASSES, QUICK_PASSES = (1, 3, 6), (1, 4)
TITLE = "Figure 3: test error against processor time"


class Point(NamedTuple):
    """A run of so many passes, and the same on pooled columns: test errors and processor seconds."""

    error: float
    processor: float
    pooled: float
    pooled_processor: float


def figure_3(bench: Bench, names: Sequence[str], splits: Splits, say: Say, *, quick: bool) -> None:
    """Add the table and a panel for every set."""
    rows: list[list[Any]] = []
    note = (
        "First split. `usual` is the default number of passes; dsg is on pooled columns, svc and pp-svmv are "
        "LIBSVM."
    )
    heads = ["data set", "algorithm", "passes", "test error", "processor [s]"]
    bench.grids.append(Grid(TITLE, heads, rows, note))
    for name in names:
        lines: dict[str, list[tuple[float, float]]] = {}
        for label, passes, error, seconds in _points(splits, name, QUICK_PASSES if quick else PASSES):
            say(f"{name}, {label}, {passes} passes: test error {error:.4f}, {seconds:.0f} s of processor")
            rows.append([name, label, passes, error, seconds])
            lines.setdefault(label, []).append((seconds, error))
        bench.panels.append(Panel(f"Figure 3: {name}", "processor seconds", "test error", lines))


def _points(
    splits: Splits, name: str, counts: Sequence[int]
) -> Iterator[tuple[str, int | str, float, float]]:
    """Every point of a set, the usual ones last: algorithm, passes, test error, processor seconds."""
    for algorithm in OURS:
        for passes in counts:
            point = _point(splits, name, algorithm, passes)
            yield algorithm, passes, point.error, point.processor
            yield POOLED[algorithm], passes, point.pooled, point.pooled_processor
    for kind in (*OURS, *POOLED.values(), "svc", "pp-svmv"):
        if (found := splits.measured(name, 0, kind)) is not None:
            yield kind, "usual", found.error, found.processor


def _point(splits: Splits, name: str, algorithm: str, passes: int) -> Point:
    """What so many passes gave, in an earlier run or now."""

    def answer() -> Point:
        tables = tables_of(name, 0, rows=splits.rows)
        done = train_federated(job_for(tables, algorithm, 0, train={"epochs": passes}), tables)
        return Point(done.error, done.processor, *dsg_error(tables, algorithm, 0, epochs=passes))

    path = splits.out / "figure3" / f"{name}-{algorithm}-{passes}.json"
    return Point(*kept(path, [name, algorithm, passes, splits.rows], answer))
