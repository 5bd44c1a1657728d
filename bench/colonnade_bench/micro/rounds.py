"""Steps of `lbfgs` with and without first matrices of the parties: the table of docs/algorithms/lbfgs.md.

    python -m colonnade_bench.micro.rounds [--only a9a,phishing] [--power 1.0] [--tolerance 2.5e-6]

Files as strangers bring them, `colonnade new`, `colonnade run`, as in `colonnade bench defaults`. Steps are
counted until the loss, with its penalty, is 1%, 0.3% and 0.1% above the pooled optimum, and until the run
ends by itself. A step is two rounds. `--power 1` has M^-1 for a first matrix instead of its root.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from colonnade.cli.folder import RESULT
from colonnade.cli.new import new
from colonnade.cli.run import run
from colonnade.conversations.linear.algorithm import full
from colonnade.optim import second_moments
from colonnade.optim.second_moments import OwnMetric
from colonnade.result import Result, read_result
from colonnade_bench.defaults.defaults import problems_of
from colonnade_bench.defaults.problem import Problem

GAPS = (1e-2, 3e-3, 1e-3)
COLUMNS = (
    "data | rows | parties | steps to 1%, .3%, .1% | in all | own: to 1%, .3%, .1% | in all | loss | CPU s"
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="names of data sets, with commas; all that are here")
    parser.add_argument("--power", type=float, default=second_moments.POWER, help="of M^-1")
    parser.add_argument("--tolerance", type=float, help="of runs with own matrices, where not the default")
    options = parser.parse_args()
    second_moments.POWER = options.power
    print(f"| {COLUMNS} |\n|{'---|' * 9}")
    for name, make in problems_of(()).items():
        if options.only and name not in options.only.split(","):
            continue
        with contextlib.suppress(FileNotFoundError):
            print(_line(name, next(iter(make())), options.tolerance), flush=True)


def _line(name: str, problem: Problem, tolerance: float | None) -> str:
    """Return a row of the table; its last but one is how far the loss is above that without matrices."""
    with TemporaryDirectory() as folder:
        job = _job(problem, Path(folder))
        with _without():
            before, cpu_before = _run(job, Path(folder) / "before")
        if tolerance is not None:
            said = job.read_text(encoding="utf-8")
            job.write_text(said.replace("[train]\n", f"[train]\ntolerance = {tolerance}\n"), encoding="utf-8")
        after, cpu_after = _run(job, Path(folder) / "after")
    optimum = before.metrics["objective"] - before.metrics["suboptimality"]
    more = after.metrics["objective"] / before.metrics["objective"] - 1
    steps = " | ".join(f"{_steps(each, optimum)} | {each.history[-1].epoch}" for each in (before, after))
    rows = before.data.rows["train"]
    cpu = f"{cpu_before:.2f} / {cpu_after:.2f}"
    return f"| {name} | {rows:,} | {len(before.parties)} | {steps} | {more:+.1e} | {cpu} |"


def _steps(result: Result, optimum: float) -> str:
    """Return after how many steps the loss was first this near."""
    found: list[Any] = []
    for gap in GAPS:
        near = (moment.epoch for moment in result.history if moment.loss <= optimum + gap * abs(optimum))
        found.append(next(near, "-"))
    return ", ".join(map(str, found))


@contextlib.contextmanager
def _without() -> Iterator[None]:
    """Train as version 0.2 does."""
    kept = {name: vars(full)[name] for name in ("first_matrix", "LONGER")}
    plain = {"first_matrix": lambda X, curvature, penalty: OwnMetric(np.ones(len(penalty))), "LONGER": 1}
    vars(full).update(plain)
    try:
        yield
    finally:
        vars(full).update(kept)


def _job(problem: Problem, folder: Path) -> Path:
    """Write the files and the job, all parties in one process."""
    words, _ = problem.write(folder)
    job = folder / "job.toml"
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        new.main([*words, "--clear", "--out", str(job)], standalone_mode=False)
    text = job.read_text(encoding="utf-8")
    if problem.kind == "counts":
        text = text.replace("[train]\n", '[train]\nloss = "poisson"\n')
    job.write_text(text, encoding="utf-8")
    return job


def _run(job: Path, out: Path) -> tuple[Result, float]:
    """Train; returns the result and the seconds of processor time, reading and the pooled fit included."""
    began = time.process_time()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        run.main([str(job), "--out", str(out)], standalone_mode=False)
    return read_result(out / RESULT), time.process_time() - began


if __name__ == "__main__":
    main()
