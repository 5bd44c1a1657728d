"""FDSKL's experiments: Figures 3-6 and Table 4, with the data that can be had.

Every algorithm gets the same 3:1 split of the same columns. Seconds of Table 4 are what the parties of one
process spent on training, without reading files and without measuring. Processor seconds, which other
programs on the machine change less, are those of the whole run. `fdskl` is the paper's algorithm, new random
features in every round and a constant step; `fdskl-capped` is ours. `dsg` is doubly stochastic gradients on
pooled columns, with the settings of each; `svc` is LIBSVM on pooled columns, `pp-svmv` LIBSVM on the securely
summed kernel matrix, `linear` the optimum that FD-SVRG converges to. MNIST 4 against 9 (with its own test
rows) stands for gisette, which was made from it.

The other splits of every data set come last, and what there is is written after every part, so a run that is
cut short has all figures, of fewer splits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from colonnade.conversations.kernel.gram import memory_needed
from colonnade.data.datasets import available
from colonnade.job import Job
from colonnade.run.federate import Tables
from colonnade_bench.common import Bench, Grid, Panel, Say, growth_exponent
from colonnade_bench.kernel.runs import (
    ACTIVE,
    PARTIES,
    SVC_ROWS,
    dsg_error,
    job_for,
    linear_error,
    rows_in,
    svc_error,
    tables_of,
    train_federated,
)
from colonnade_bench.kernel.topologies import figure_4
from colonnade_bench.party_tables import first_rows, held_out

SETS = ("phishing", "a9a", "cod-rna", "uci-credit", "givemesomecredit", "mnist-4v9")
# Table 4, minutes
PAPER = {
    "phishing": (1, 10),
    "a9a": (2, 15),
    "cod-rna": (1, 16),
    "uci-credit": (1, 13),
    "givemesomecredit": (3, 32),
    "mnist-4v9": (1, 46),
}
NOT_THERE = (None, None)
OURS = ("fdskl", "fdskl-capped")
POOLED = {"fdskl": "dsg", "fdskl-capped": "dsg, capped"}
KINDS = (*OURS, "linear", *POOLED.values(), "svc")
SPLITS = 3  # the paper has ten; the errors of three lie within a point of each other
SUMMED_ROWS = 9_000  # what the whole kernel matrix can be summed for in a minute


def run(quick: bool, out: Path, say: Say) -> list[Path]:
    """Measure on the data sets that are on this machine, and write what there is after every part."""
    bench = Bench("fdskl", "FDSKL: kernels over split columns", quick)
    names = [name for name in SETS if available(name)]
    missing = [name for name in SETS if name not in names]
    if missing:
        say(f"not on this machine, left out: {', '.join(missing)}")
    names = names[:2] if quick else names
    growing = names[0] if quick or "cod-rna" not in names else "cod-rna"
    splits = Splits()
    bench.grids += splits.tables()
    with threadpool_limits(1):
        traffic(bench, say)
        say("sums and results over stars and trees")
        figure_4(bench, 2**14 if quick else 2**18)
        figure_5(bench, growing, say, quick=quick)
        splits.write(bench, out)
        for name in names:
            splits.trial(name, 0, say)
            splits.write(bench, out)
        figure_3(bench, names[:1] if quick else names[:3], splits, say, quick=quick)
        for seed in range(1, 2 if quick else SPLITS):
            for name in names:
                splits.trial(name, seed, say)
                splits.write(bench, out)
    return splits.write(bench, out)


@dataclass
class Splits:
    """Figure 6 and Table 4: both algorithms and the linear model on every split, the others on the first.

    Times are by data set and algorithm.
    """

    errors: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    seconds: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    processor: dict[str, dict[str, list[float]]] = field(default_factory=dict)

    def trial(self, name: str, seed: int, say: Say) -> None:
        """Train on one more split."""
        tables = tables_of(name, seed)
        found = self.errors.setdefault(name, {kind: [] for kind in KINDS})
        for algorithm in OURS:
            done = train_federated(job_for(tables, algorithm, seed), tables)
            sent = done.run.result.cost.bytes_sent
            say(
                f"{name}, split {seed + 1}, {algorithm}: test error {done.error:.4f} after "
                f"{done.seconds:.1f} s, {sent / 1e6:.0f} MB"
            )
            found[algorithm].append(done.error)
            self.seconds.setdefault(name, {}).setdefault(algorithm, []).append(done.seconds)
            self.processor.setdefault(name, {}).setdefault(algorithm, []).append(done.processor)
            if seed == 0:
                found[POOLED[algorithm]].append(dsg_error(tables, algorithm, seed)[0])
        found["linear"].append(linear_error(tables))
        if seed == 0:
            found["svc"].append(svc_error(tables, seed)[0])

    def write(self, bench: Bench, out: Path) -> list[Path]:
        """Write the bench with what there is of these tables, which are its first two."""
        bench.grids[:2] = self.tables()
        bench.data |= {"errors": self.errors, "seconds": self.seconds, "processor": self.processor}
        return bench.write(out)

    def tables(self) -> list[Grid]:
        """Figure 6 and Table 4."""
        errors, times = [], []
        for name, found in self.errors.items():
            mean = [float(np.mean(each)) if each else None for each in found.values()]
            spread = [edge(found[algorithm]) for algorithm in OURS for edge in (min, max)]
            errors.append([name, *mean, *spread, len(found["linear"])])
            for algorithm in OURS:
                seconds = float(np.median(self.seconds[name][algorithm]))
                processor = float(np.median(self.processor[name][algorithm]))
                times.append([name, algorithm, seconds / 60, seconds, processor, *PAPER.get(name, NOT_THERE)])
        spans = [f"{edge} of {algorithm}" for algorithm in OURS for edge in ("least", "most")]
        heads = ["data set", *KINDS, *spans, "splits"]
        note = f"{PARTIES} parties. Means over the splits; dsg and svc on the first split alone, svc on "
        note += f"{SVC_ROWS} training rows at most."
        figure = Grid("Figure 6: test error", heads, errors, note)
        heads = ["data set", "algorithm", "ours [min]", "[s]", "processor [s]"]
        heads += ["paper, FDSKL [min]", "SecureBoost [min]"]
        note = "The paper used 24 cores; ours are all parties in one process, medians over the splits. "
        note += "mnist-4v9 stands for gisette."
        return [figure, Grid("Table 4: training time", heads, times, note)]


def figure_3(bench: Bench, names: list[str], splits: Splits, say: Say, *, quick: bool) -> None:
    """Test error against processor time; a point is a run of so many passes, the last one of the usual."""
    for name in names:
        tables = tables_of(name, 0)
        lines: dict[str, list[tuple[float, float]]] = {}
        for algorithm in OURS:
            points, pooled = lines.setdefault(algorithm, []), lines.setdefault(POOLED[algorithm], [])
            for epochs in (1, 4) if quick else (1, 3, 6):
                done = train_federated(job_for(tables, algorithm, 0, train={"epochs": epochs}), tables)
                points.append((done.processor, done.error))
                error, seconds = dsg_error(tables, algorithm, 0, epochs=epochs)
                pooled.append((seconds, error))
                say(f"{name}, {algorithm}, {epochs} passes: test error {done.error:.4f}, pooled {error:.4f}")
            points.append((splits.processor[name][algorithm][0], splits.errors[name][algorithm][0]))
        if rows_in(tables) <= SUMMED_ROWS and not quick:
            error, seconds = svc_error(tables, 0)
            lines["svc (pooled)"] = [(seconds, error)]
            done = train_federated(job_for(tables, "pp-svmv", 0), tables)
            lines["pp-svmv"] = [(done.processor, done.error)]
            say(f"{name}, pp-svmv: test error {done.error:.4f}, {done.processor:.1f} s of processor")
        bench.panels.append(Panel(f"Figure 3: {name}", "processor seconds", "test error", lines))


@dataclass(frozen=True)
class Growth:
    """Processor seconds of training on the first rows of a data set.

    Fractions are given, so that choosing one, which takes always the same time, does not make the growth look
    smaller than it is.
    """

    whole: Tables
    say: Say

    def capped(self, rows: int, features: int, passes: int = 10, batch: int = 256, block: int = 256) -> float:
        """Seconds of training with so many random features."""
        options = {"features": features, "fraction": 0.6, "block": block}
        job = job_for(self.whole, "fdskl-capped", 0, train={"epochs": passes, "batch": batch}, kernel=options)
        return self._processor(job, rows, f"{features} features, {passes} passes")

    def growing(self, rows: int, passes: int, batch: int, block: int) -> float:
        """Seconds of FDSKL, in which every round brings a block of features."""
        options = {"fraction": 0.6, "block": block}
        job = job_for(self.whole, "fdskl", 0, train={"epochs": passes, "batch": batch}, kernel=options)
        return self._processor(job, rows, f"{block} features a round, {passes} passes")

    def summed(self, rows: int) -> float:
        """Seconds of LIBSVM on the summed kernel matrix."""
        return self._processor(job_for(self.whole, "pp-svmv", 0, kernel={"fraction": 0.6}), rows, "pp-svmv")

    def _processor(self, job: Job, rows: int, how: str) -> float:
        test = first_rows(held_out(self.whole), 100)
        tables = replace(self.whole, train=first_rows(self.whole.train, rows), test=test)
        seconds = train_federated(job, tables).processor
        self.say(f"{self.whole.dataset}, {rows} rows, {how}: {seconds:.1f} s of processor")
        return seconds


def figure_5(bench: Bench, name: str, say: Say, *, quick: bool) -> None:
    """Time against training rows and against features, with the growth exponents fitted."""
    whole = tables_of(name, 0)
    growth, n = Growth(whole, say), rows_in(whole)
    halvings = 3 if quick else 6
    counts = [n >> k for k in reversed(range(halvings))]
    by_rows = [(float(rows), growth.capped(rows, 512 if quick else 1024)) for rows in counts]
    some = min(n, 2000 if quick else 4000)
    widths = [8192 >> k for k in reversed(range(3 if quick else 7))]
    by_features = [(float(features), growth.capped(some, features)) for features in widths]
    # 16 rounds a pass bring 32 features each, and a round looks at all features before it
    uncapped = [
        (512.0 * passes, growth.growing(1024, passes, batch=64, block=32))
        for passes in ((4, 8, 16) if quick else (2, 4, 8, 16, 32, 64))
    ]
    summed = [(float(rows), growth.summed(rows)) for rows in counts if rows <= SUMMED_ROWS]
    lines = {"fdskl-capped, 10 passes": by_rows} | ({"pp-svmv": summed} if len(summed) > 1 else {})
    bench.panels.append(Panel(f"Figure 5: {name}", "training rows", "processor seconds", lines, log=True))
    lines = {"fdskl-capped, 10 passes": by_features, "fdskl": uncapped}
    bench.panels.append(Panel(name, "random features", "processor seconds", lines, log=True))
    grown = {
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


def traffic(bench: Bench, say: Say) -> None:
    """Bytes of the first and the second pass, where projections are kept and where every visit asks again."""
    tables = tables_of("digits-odd", 0, parties=4)
    n, q, m = rows_in(tables), 4, ACTIVE

    def sent(epochs: int, cache: bool, features: int) -> int:
        options = {"features": features, "cache": cache, "block": 64}
        job = job_for(tables, "fdskl-capped", 0, train={"epochs": epochs}, kernel=options)
        return train_federated(job, tables).run.result.cost.bytes_sent

    rows = []
    for features in (128, 384):  # all of them come within the first pass
        for cache in (True, False):
            first, both = sent(1, cache, features), sent(2, cache, features)
            kind = "kept" if cache else "asked again"
            pairs = 1024 * 1023 // 2
            formula = (q - 1) * (8 * pairs + 2 * n * features + 8 * n * (m > 1)) if cache else None
            rows.append([f"{features} features, {kind}", first, formula, both - first])
            say(f"{features} features, {kind}: {first} bytes in the first pass, {both - first} in the second")
    heads = ["digits, 4 parties, 2 active", "first pass", "(q-1) (2 n D + 8 n + 8 pairs)", "second pass"]
    bench.grids.append(Grid("Bytes sent by all parties", heads, rows))
