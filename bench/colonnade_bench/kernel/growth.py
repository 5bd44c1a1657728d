"""Figure 5 of FDSKL: how training time grows with rows and with random features.

Processor seconds of whole runs. Bandwidth and penalty are given, so that choosing them, which takes always
the same time, does not make the growth look smaller than it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from colonnade.conversations.kernel.gram import memory_needed
from colonnade.job import Job
from colonnade.run.federate import Tables
from colonnade_bench.common import Bench, Grid, Panel, Say, growth_exponent
from colonnade_bench.kernel.runs import SUMMED_ROWS, job_for, rows_in, tables_of, train_federated
from colonnade_bench.party_tables import first_rows, held_out

L2 = 1e-5
ROUNDS, BLOCK = 100, 8  # of the paper's algorithm, whatever the rows


@dataclass(frozen=True)
class Growth:
    """Processor seconds of training on the first rows of a data set."""

    whole: Tables
    say: Say

    def capped(self, rows: int, features: int, passes: int = 10, batch: int = 256, block: int = 256) -> float:
        """Seconds of training with so many random features."""
        options = {"features": features, "fraction": 0.6, "block": block}
        train = {"epochs": passes, "batch": batch, "l2": L2}
        job = job_for(self.whole, "fdskl-capped", 0, train=train, kernel=options)
        return self._processor(job, rows, f"{features} features, {passes} passes")

    def growing(self, rows: int, passes: int, batch: int, block: int) -> float:
        """Seconds of FDSKL, in which every round brings a block of features."""
        options = {"fraction": 0.6, "block": block}
        train = {"epochs": passes, "batch": batch, "l2": L2}
        job = job_for(self.whole, "fdskl", 0, train=train, kernel=options)
        return self._processor(job, rows, f"{block} features a round, {passes} passes")

    def summed(self, rows: int) -> float:
        """Seconds of LIBSVM on the summed kernel matrix."""
        job = job_for(self.whole, "pp-svmv", 0, train={"l2": L2}, kernel={"fraction": 0.6})
        return self._processor(job, rows, "pp-svmv")

    def _processor(self, job: Job, rows: int, how: str) -> float:
        test = first_rows(held_out(self.whole), 100)
        tables = replace(self.whole, train=first_rows(self.whole.train, rows), test=test)
        seconds = train_federated(job, tables).processor
        self.say(f"{self.whole.dataset}, {rows} rows, {how}: {seconds:.1f} s of processor")
        return seconds


def figure_5(bench: Bench, name: str, say: Say, *, quick: bool) -> None:
    """Time against training rows and against features, with the growth exponents fitted."""
    whole = tables_of(name, 0, rows=2000 if quick else None)
    growth, n = Growth(whole, say), rows_in(whole)
    halvings = 3 if quick else 6
    counts = [n >> k for k in reversed(range(halvings))]
    by_rows = [(float(rows), growth.capped(rows, 512 if quick else 1024)) for rows in counts]
    # as many rounds whatever the rows: four passes in a hundred rounds
    by_rows_new = [
        (float(rows), growth.growing(rows, passes=4, batch=-(-4 * rows // ROUNDS), block=BLOCK))
        for rows in counts
    ]
    some = min(n, 1000 if quick else 4000)
    widths = [8192 >> k for k in reversed(range(3 if quick else 7))]
    by_features = [(float(features), growth.capped(some, features)) for features in widths]
    # 16 rounds a pass bring 32 features each, and a round looks at all features before it
    uncapped = [
        (512.0 * passes, growth.growing(1024, passes, batch=64, block=32))
        for passes in ((4, 8, 16) if quick else (2, 4, 8, 16, 32, 64))
    ]
    summed = [(float(rows), growth.summed(rows)) for rows in counts if rows <= SUMMED_ROWS]
    lines = {"fdskl, 100 rounds": by_rows_new, "fdskl-capped, 10 passes": by_rows}
    lines |= {"pp-svmv": summed} if len(summed) > 1 else {}
    bench.panels.append(Panel(f"Figure 5: {name}", "training rows", "processor seconds", lines, log=True))
    lines = {"fdskl-capped, 10 passes": by_features, "fdskl": uncapped}
    bench.panels.append(Panel(name, "random features", "processor seconds", lines, log=True))
    grown = {
        "fdskl, rows": by_rows_new,
        "fdskl-capped, rows": by_rows,
        "fdskl-capped, features": by_features,
        "fdskl, features": uncapped,
        "pp-svmv, rows": summed,
    }
    bench.grids.append(exponents(grown, n))


def exponents(grown: Mapping[str, Sequence[tuple[float, float]]], rows: int) -> Grid:
    """The table of growth exponents, of every line with two points or more; `rows` is all rows there are."""
    table = [
        [what, growth_exponent(at), growth_exponent(at[-3:]), len(at), int(at[0][0]), int(at[-1][0])]
        for what, at in grown.items()
        if len(at) > 1
    ]
    heads = ["what", "exponent", "of the last three", "points", "from", "to"]
    note = "Processor seconds grow as this power. "
    note += f"pp-svmv at all {rows} rows would need {memory_needed(rows) / 2**30:.0f} GiB."
    return Grid("Figure 5: growth of training time", heads, table, note)
