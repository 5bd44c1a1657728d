"""Table 4: federated and not, by the same rule, the accuracy is the same.

NonF, the paper's non-federated comparison, learns by function values as well: same models, same step, same
number of updates, nothing stale. Linear sets have ten trials, as in the paper: ten seeds of the order of rows
and of the directions; the rows that test stay the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from colonnade.job import Job
from colonnade.run.federate import Tables, run_tables
from colonnade_bench.asyrevel.setting import IMAGES, accuracy, job_for, non_federated, tables_of
from colonnade_bench.common import Bench, Grid, Say, kept
from colonnade_bench.papers import ASYREVEL, ASYREVEL_TABLE_4, here_or_bundled

TABLE_4 = "Table 4: losslessness"
SLOW = ("givemesomecredit", "rcv1", "w8a", "epsilon", "fashion-mnist")  # left out of a quick run
TRIALS = 10
ROWS = ("asyrevel-gau", "asyrevel-uni", "others")
"""What the table has of a set: both algorithms, and what they are compared with."""


def sets_of(quick: bool) -> list[str]:
    """The sets that are here."""
    return [name for name in here_or_bundled((*ASYREVEL, *IMAGES)).found if not (quick and name in SLOW)]


def pieces(quick: bool) -> list[str]:
    """A piece for every trial; first the first one of all sets."""
    most = 2 if quick else TRIALS
    found = [f"table4:{name}:others:0" for name in sets_of(quick)]
    for seed in range(most):
        found += [
            f"table4:{name}:{algorithm}:{seed}"
            for name in sets_of(quick)
            for algorithm in ROWS[:2]
            if seed < _trials(name, quick)
        ]
    return found


def table_4(
    bench: Bench, say: Say, names: Sequence[str], out: Path, *, quick: bool, new: bool = True
) -> None:
    """Add the table of these sets; without `new`, of the trials that are kept."""
    rows: list[list[Any]] = []
    absent = here_or_bundled((*ASYREVEL, *IMAGES)).missing
    note = (
        f"Batch 256, 4 directions, steps found by the parties, {_epochs(quick)} "
        "epochs; means and standard deviations of the trials, one trial for networks. "
        f"Not on this machine: {', '.join(absent) or 'none'}."
    )
    heads = ["data", "algorithm", "paper %", "non-federated %", "federated %", "+-", "+-", "trials"]
    bench.grids.append(Grid(TABLE_4, heads, rows, note))
    for name in names:
        for number, algorithm in enumerate(ROWS[:2]):
            found = []
            for seed in range(_trials(name, quick)):
                with suppress(LookupError):
                    found += trial(name, algorithm, seed, say, out, quick=quick, new=new)
            if found:
                theirs = ASYREVEL_TABLE_4.get(name, (None, None))[number]
                rows.append([name, algorithm, theirs, *_spread(found)])
        with suppress(LookupError):
            rows += trial(name, "others", 0, say, out, quick=quick, new=new)


def trial(
    name: str, which: str, seed: int, say: Say, out: Path, *, quick: bool, new: bool = True
) -> list[list[Any]]:
    """What one trial gave, in an earlier run or now: both accuracies, or whole rows of the `others`."""
    path = out / "trials" / f"{name}-{which}-{seed}.json"

    def answer() -> list[list[Any]]:
        tables = tables_of(name, 4000 if quick and name in IMAGES else None)
        train = {"epochs": _epochs(quick)}
        if which == "others":
            return (white_box if name in ASYREVEL else networks)(tables, train["epochs"], say)
        return [compared(job_for(tables, which, train=train, seed=seed), tables, say)]

    found: list[list[Any]] = kept(path, [name, which, seed, quick], answer if new else None)
    return found


def compared(job: Job, tables: Tables, say: Say) -> list[float]:
    """Non-federated and federated accuracy, by the same rule."""
    say(f"Table 4: {job.algorithm} on {tables.dataset}, seed {job.seed}")
    result = run_tables(job, tables).result
    both = [non_federated(job, tables, result.step, by="values"), accuracy(result)]
    say(f"    {both[1]:.2f}% federated, {both[0]:.2f}% not, by the same rule")
    return both


def _spread(found: list[list[float]]) -> list[Any]:
    """Means of both accuracies, their standard deviations, and how many trials."""
    both = np.array(found)
    spread = both.std(axis=0, ddof=1).tolist() if len(both) > 1 else [None, None]
    return [*both.mean(axis=0).tolist(), *spread, len(both)]


def _epochs(quick: bool) -> int:
    return 2 if quick else 10


def _trials(name: str, quick: bool) -> int:
    return (2 if quick else TRIALS) if name in ASYREVEL else 1


def white_box(tables: Tables, epochs: int, say: Say) -> list[list[Any]]:
    """A row for TIG: what sending gradients reaches where models have them."""
    say(f"Table 4: tig on {tables.dataset}")
    tig = accuracy(run_tables(job_for(tables, "tig", train={"epochs": epochs}), tables).result)
    return [[tables.dataset, "tig (white box)", None, None, tig, None, None, 1]]


def networks(tables: Tables, epochs: int, say: Say) -> list[list[Any]]:
    """Rows for networks: a server that propagates back, and Adam on pooled columns."""
    say(f"Table 4: first-order server, and first order on pooled columns, {tables.dataset}")
    job = job_for(tables, "asyrevel-gau", train={"epochs": epochs}, cascade={"server": "first"})
    first = accuracy(run_tables(job, tables).result)
    pooled = non_federated(job, tables, {}, by="gradient")
    say(f"    {first:.2f}% with a first-order server, {pooled:.2f}% first order on pooled columns")
    return [
        [tables.dataset, "asyrevel-gau, first-order server", None, None, first, None, None, 1],
        [tables.dataset, "first order, pooled", None, pooled, None, None, None, 1],
    ]
