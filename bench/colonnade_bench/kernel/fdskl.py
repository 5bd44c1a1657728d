"""FDSKL's experiments: Figures 3-6 and Table 4, with the data that can be had.

Every algorithm gets the same 3:1 split of the same columns. Seconds of Table 4 are what the parties of one
process spent on training, without reading files and without measuring. Processor seconds, which other
programs on the machine change less, are those of the whole run. `fdskl` is the paper's algorithm, new random
features in every round and a constant step; `fdskl-capped` is ours. `dsg` is doubly stochastic gradients on
pooled columns, with the settings of each; `svc` is LIBSVM on all pooled rows, where it ends within the hour;
`pp-svmv` is LIBSVM on the securely summed kernel matrix, where its rows are few enough; `fd-svrg` is the
linear model. The sets are those of the paper that are on this machine (`papers`); MNIST 4 against 9, with its
own test rows, stands in for gisette.

The quick form draws 1,000 training rows and as many test rows of every set, and makes one split. Of the full
form the other splits come last, and what there is is written after every part, so a run that is cut short has
all figures, of fewer splits.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from colonnade.data.datasets import available
from colonnade_bench.common import Bench, Grid, Panel, Say
from colonnade_bench.kernel.growth import figure_5
from colonnade_bench.kernel.made_up import SETS as MADE_UP
from colonnade_bench.kernel.runs import (
    PARTIES,
    SUMMED_ROWS,
    SVC_SECONDS,
    dsg_error,
    fd_svrg,
    job_for,
    rows_in,
    svc_error,
    tables_of,
    train_federated,
)
from colonnade_bench.kernel.topologies import figure_4
from colonnade_bench.kernel.traffic import COMPARED, bits_compared, traffic
from colonnade_bench.papers import FDSKL, FDSKL_TABLE_4, WORDS, here, stands_for

NOT_THERE = (None, None)
OURS = ("fdskl", "fdskl-capped")
POOLED = {"fdskl": "dsg", "fdskl-capped": "dsg, capped"}
KINDS = (*OURS, *POOLED.values(), "svc", "pp-svmv", "fd-svrg")
SPLITS = 3  # the paper has ten; the errors of three lie within a point of each other
QUICK_ROWS = 1_000


def run(quick: bool, out: Path, say: Say) -> list[Path]:
    """Measure on the data sets that are on this machine, and write what there is after every part."""
    bench = Bench("fdskl", "FDSKL: kernels over split columns", quick)
    names, missing = here(FDSKL)
    if missing:
        say(f"not on this machine, left out or stood in for: {', '.join(missing)}")
    growing = names[0] if quick or "cod-rna" not in names else "cod-rna"
    splits = Splits(rows=QUICK_ROWS if quick else None)
    bench.grids += splits.tables()
    with threadpool_limits(1):
        for name in names:
            splits.trial(name, 0, say)
            splits.write(bench, out)
        figure_3(bench, names[:1] if quick else names[:3], splits, say, quick=quick)
        compared = [name for name in COMPARED if name in MADE_UP or available(name)]
        bench.grids.append(bits_compared(compared, splits.rows, say))
        splits.write(bench, out)
        figure_5(bench, growing, say, quick=quick)
        splits.write(bench, out)
        traffic(bench, say)
        say("sums and results over stars and trees")
        figure_4(bench, 2**14 if quick else 2**18)
        for seed in range(1, 1 if quick else SPLITS):
            for name in names:
                splits.trial(name, seed, say)
                splits.write(bench, out)
    return splits.write(bench, out)


@dataclass
class Splits:
    """Figure 6 and Table 4: both algorithms and the linear model on every split, the others on the first.

    Times are by data set and algorithm. `rows` are the training rows of a set, None: all.
    """

    rows: int | None = None
    errors: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    seconds: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    processor: dict[str, dict[str, list[float]]] = field(default_factory=dict)

    def trial(self, name: str, seed: int, say: Say) -> None:
        """Train on one more split."""
        tables = tables_of(name, seed, rows=self.rows)
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
        found["fd-svrg"].append(fd_svrg(tables, seed).error)
        if seed > 0:
            return
        if (libsvm := svc_error(tables, seed)) is not None:
            found["svc"].append(libsvm[0])
        if rows_in(tables) <= SUMMED_ROWS:
            found["pp-svmv"].append(train_federated(job_for(tables, "pp-svmv", seed), tables).error)
        others = ", ".join(f"{kind} {errors[0]:.4f}" for kind, errors in found.items() if errors)
        say(f"{name}, split 1, all: {others}")

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
            errors.append([name, *mean, *spread, len(found["fd-svrg"])])
            for algorithm in OURS:
                seconds = float(np.median(self.seconds[name][algorithm]))
                processor = float(np.median(self.processor[name][algorithm]))
                paper = FDSKL_TABLE_4.get(stands_for(name), NOT_THERE)
                times.append([name, algorithm, seconds / 60, seconds, processor, *paper])
        spans = [f"{edge} of {algorithm}" for algorithm in OURS for edge in ("least", "most")]
        heads = ["data set", *KINDS, *spans, "splits"]
        note = f"{PARTIES} parties. Means over the splits; dsg, svc and pp-svmv on the first split: svc "
        note += f"where it ends within {SVC_SECONDS / 60:.0f} minutes, pp-svmv of {SUMMED_ROWS} rows at most."
        if self.rows is not None:
            note += f" {self.rows} training rows of every set."
        figure = Grid("Figure 6: test error", heads, errors, note)
        heads = ["data set", "algorithm", "ours [min]", "[s]", "processor [s]"]
        heads += ["paper, FDSKL [min]", "SecureBoost [min]"]
        note = "The paper used 24 cores; ours are all parties in one process, medians over the splits. "
        note += "".join(f"{name} {WORDS[name]}. " for name in self.errors if name in WORDS)
        return [figure, Grid("Table 4: training time", heads, times, note)]


def figure_3(bench: Bench, names: list[str], splits: Splits, say: Say, *, quick: bool) -> None:
    """Test error against processor time; a point is a run of so many passes, the last one of the usual."""
    for name in names:
        tables = tables_of(name, 0, rows=splits.rows)
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
        if (libsvm := svc_error(tables, 0)) is not None:
            lines["svc (pooled)"] = [(libsvm[1], libsvm[0])]
        if rows_in(tables) <= SUMMED_ROWS:
            done = train_federated(job_for(tables, "pp-svmv", 0), tables)
            lines["pp-svmv"] = [(done.processor, done.error)]
            say(f"{name}, pp-svmv: test error {done.error:.4f}, {done.processor:.1f} s of processor")
        bench.panels.append(Panel(f"Figure 3: {name}", "processor seconds", "test error", lines))
