"""The same job beside other programs: scikit-learn, XGBoost and SPU, run live with their versions.

Every program gets the same prepared columns of a9a and one thread, in an environment of its own
(`environments`); processor seconds are those of training alone, of all parties together where there are
several. Ours are 8 parties in one process; what protection they have is in the row. A program that cannot be
installed here has a row that says so. FATE and FedTree have no wheel for this Python and are not here.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from colonnade.data.datasets.loading import load_dataset
from colonnade.errors import DataError
from colonnade.job import job_from
from colonnade.run.federate import federate, prepare
from colonnade.run.resolve import compose
from colonnade_bench.common import Bench, Grid, Panel, Say
from colonnade_bench.micro.throughput import pooled_kernels, pooled_loop
from colonnade_bench.peers import scripts
from colonnade_bench.peers.environments import Environment, NotInstalled
from colonnade_bench.trees.accuracy import BINS, DEPTH, RATE

TITLE = "The same training beside other programs"
PARTS = {
    "linear": "logistic regression to the optimum",
    "sgd": "logistic regression in equal batches, beside SPU and our own pooled loops",
    "trees": "boosted trees",
}
LAST = ()
CHARTS = {
    "linear": "Logistic regression, to the optimum",
    "sgd": "Logistic regression, equal batches",
    "trees": "Boosted trees",
}
MINUTES = {"linear": 0.2, "sgd": 0.5, "trees": 0.5}
HEADS = ("what", "protection", "processor [s]", "beside the first", "test accuracy", "versions")
SCIKIT = Environment("scikit-learn", ("scikit-learn", "numpy"))
XGB = Environment("xgboost", ("xgboost", "scikit-learn", "numpy"))
SPU = Environment("spu", ("spu", "jax", "numpy"))
BATCH, STEP = 1024, 1.0

Row = list[Any]


def pieces(quick: bool) -> list[str]:
    """What can run side by side: every part."""
    return list(PARTS)


def run(
    quick: bool, out: Path, say: Say, *, only: Sequence[str] = (), tables: Path | None = None
) -> list[Path]:
    """Measure every part, or some, and write what there is after each."""
    bench = Bench("peers", TITLE, quick)
    with tempfile.TemporaryDirectory() as folder, threadpool_limits(1):
        write_columns(Path(folder))
        return bench.made(
            only or PARTS, lambda part: _part(bench, part, folder, say, quick=quick), tables or out
        )


def _part(bench: Bench, part: str, folder: str, say: Say, *, quick: bool) -> None:
    rows = MEASURED[part](folder, say, quick=quick)
    first = next((row[2] for row in rows if row[2] is not None), None)
    table = [
        [*row[:3], None if row[2] is None or first is None else row[2] / first, *row[3:]] for row in rows
    ]
    bench.grids.append(Grid(f"{PARTS[part]}: a9a", HEADS, table, "One thread each."))
    bench.data[part] = [dict(zip(HEADS, row, strict=True)) for row in table]
    bench.panels.append(chart(CHARTS[part], rows))


def chart(title: str, rows: Sequence[Row]) -> Panel:
    """Return the processor seconds of every program as bars, ours apart from others.

    >>> rows = [["XGBoost", "none", 2.0, 0.9, "xgboost 3"], ["lbfgs", "labels", None, 0.9, ""]]
    >>> made = chart("trees", rows)
    >>> made.lines, made.marked
    ({'XGBoost': [(2.0, 0.0)]}, [])
    """
    names = [what if hides in ("none", "") else f"{what},\n{hides} hidden" for what, hides, *_ in rows]
    found = [(name, row[2], row[-1]) for name, row in zip(names, rows, strict=True) if row[2] is not None]
    lines = {name: [(seconds, 0.0)] for name, seconds, _ in found}
    marked = [name for name, _, versions in found if versions.startswith("Colonnade")]
    return Panel(title, "processor seconds", "", lines, bars=True, marked=marked)


def linear(folder: str, say: Say, *, quick: bool) -> list[Row]:
    """Train to the optimum: scikit-learn's fit, and L-BFGS over parties, clear, blind and between two."""
    epochs = {"epochs": 5} if quick else {}
    return [
        rival("scikit-learn, L-BFGS", SCIKIT, scripts.LOGISTIC, say, folder),
        ours("lbfgs", "none", say, parties=8, labels="clear", train=epochs),
        ours("lbfgs", "labels and columns", say, parties=8, labels="blind", train=epochs),
        ours("lbfgs", "labels, columns, scores", say, parties=2, labels="blind", train=epochs),
    ]


def sgd(folder: str, say: Say, *, quick: bool) -> list[Row]:
    """Train on equal batches with one step: pooled loops, SPU on secret shares, and ours."""
    epochs = 1 if quick else 10
    train = {"batch": BATCH, "epochs": epochs, "step": STEP, "l2": 0.0}
    raw = load_dataset("a9a").train
    y = np.asarray(raw.y, dtype=float)
    rows: list[Row] = []
    for name, loop in (("NumPy and SciPy, pooled", pooled_loop), ("our kernels, pooled", pooled_kernels)):
        rows.append([name, "none", loop(raw.values, y, BATCH, epochs).cpu, None, ""])
        say(f"{name}: {rows[-1][2]:.3f} s")
    return [
        *rows,
        ours("vfb-sgd", "none", say, parties=8, labels="clear", train=train),
        ours("vfb-sgd", "labels", say, parties=8, labels="blind", train=train),
        ours("vfb-sgd", "labels and scores", say, parties=8, labels="blind", scores="hidden", train=train),
        rival("SPU, SEMI2K", SPU, scripts.SPU, say, folder, str(BATCH), str(epochs)),
    ]


def trees(folder: str, say: Say, *, quick: bool) -> list[Row]:
    """Grow as many trees of one shape: scikit-learn, XGBoost, and ours, clear and blind."""
    rounds = 3 if quick else 50
    words = [str(word) for word in (rounds, RATE, DEPTH, BINS)]
    shape = {"learning_rate": RATE, "max_depth": DEPTH, "max_bin": BINS}
    shapes: dict[str, Any] = {"train": {"epochs": rounds}, "trees": shape}
    return [
        rival("scikit-learn, histograms", SCIKIT, scripts.SCIKIT_TREES, say, folder, *words),
        rival("XGBoost, histograms", XGB, scripts.XGBOOST, say, folder, *words),
        ours("secureboost", "none", say, parties=8, labels="clear", **shapes),
        ours("secureboost", "labels", say, parties=8, labels="blind", **shapes),
    ]


MEASURED: Mapping[str, Callable[..., list[Row]]] = {"linear": linear, "sgd": sgd, "trees": trees}


def rival(what: str, environment: Environment, script: str, say: Say, *words: str) -> Row:
    """Run another program; a row that says why where it cannot be had."""
    try:
        versions = environment.made(say)
        found = environment.run(script, *words)
    except NotInstalled as error:
        say(f"{what}: {error}")
        return [what, "", None, None, f"not here: {error}"]
    protection = "labels, columns, scores" if environment is SPU else "none"
    named = ", ".join(f"{name} {version}" for name, version in versions.items())
    say(f"{what}: {found['processor']:.2f} s, {found['accuracy']:.4f} ({named})")
    return [what, protection, found["processor"], found["accuracy"], named]


def ours(
    algorithm: str,
    protection: str,
    say: Say,
    *,
    parties: int,
    labels: str,
    scores: str = "open",
    **sections: Any,
) -> Row:
    """Train with parties of one process; the processor time of all."""
    job: dict[str, Any] = {
        "algorithm": algorithm,
        "compare": False,
        "data": {"train": "a9a", "parties": parties},
        "secure": {"labels": labels, **({"scores": scores} if scores != "open" else {})},
        **sections,
    }
    done = federate(job_from({**job, "world": "local"}))
    spent = sum(share.cpu_seconds or 0.0 for share in done.shares.values())
    accuracy = done.result.metrics["test_accuracy"]
    what = f"{algorithm}, {parties} parties"
    say(f"{what}, {labels}: {spent:.2f} s, {accuracy:.4f}")
    return [what, protection, spent, accuracy, f"Colonnade {done.result.version}"]


def write_columns(folder: Path) -> None:
    """Write all columns of a9a as our parties have them, and the label as 0 and 1."""
    plain = {"algorithm": "vfb-sgd", "data": {"train": "a9a", "parties": 1}, "secure": {"labels": "clear"}}
    _, order = prepare(compose(job_from(plain)))
    (data,) = order.ready().data.values()
    made = data.prepare()
    for name, table in (("", made.train), ("_test", made.test)):
        if table is None:
            raise DataError("a9a: its test file is not on this machine")
        X = table.X if isinstance(table.X, np.ndarray) else table.X.toarray()
        np.save(folder / f"X{name}.npy", X.astype(np.float32))
        np.save(folder / f"y{name}.npy", (np.asarray(table.y) > 0).astype(np.float32))
