"""Table 4: federated and not, by the same rule, the accuracy is the same.

NonF, the paper's non-federated comparison, learns by function values as well: same models, same step, same
number of updates, nothing stale. Linear sets have ten trials, as in the paper: ten seeds of the order of rows
and of the directions; the rows that test stay the same.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from colonnade.job import Job
from colonnade.run.federate import Tables, run_tables
from colonnade_bench.asyrevel.setting import IMAGES, accuracy, job_for, non_federated, tables_of
from colonnade_bench.common import Bench, Grid, Say
from colonnade_bench.papers import ASYREVEL, ASYREVEL_TABLE_4, here

TABLE_4 = "Table 4: losslessness"
SLOW = ("givemesomecredit", "rcv1", "w8a", "epsilon", "fashion-mnist")  # left out of a quick run
TRIALS = 10
MANY = 16  # directions of the images' second row
Part = Callable[..., None]


def table_4(say: Say, *, quick: bool) -> list[Part]:
    """One function for every data set that is here, which adds its rows to the table."""
    rows: list[list[Any]] = []
    epochs, trials = (2, 2) if quick else (10, TRIALS)
    found, absent = here((*ASYREVEL, *IMAGES))
    names = [name for name in found if not (quick and name in SLOW)]
    if absent:
        say(f"not on this machine, left out: {', '.join(absent)}")
    note = (
        f"Batch 256, 4 directions where nothing else is said, steps found by the parties, {epochs} epochs; "
        f"means and standard deviations of {trials} trials for linear models, one trial for networks. "
        f"Not on this machine: {', '.join(absent) or 'none'}."
    )
    heads = ["data", "algorithm", "paper %", "non-federated %", "federated %", "+-", "+-", "trials"]
    grid = Grid(TABLE_4, heads, rows, note)

    def lossless(name: str, bench: Bench, say: Say, *, quick: bool) -> None:
        if grid not in bench.grids:
            bench.grids.append(grid)
        tables = tables_of(name, 4000 if quick and name in IMAGES else None)
        train = {"epochs": epochs}
        for number, algorithm in enumerate(("asyrevel-gau", "asyrevel-uni")):
            seeds = range(trials if name in ASYREVEL else 1)
            jobs = [job_for(tables, algorithm, train=train, seed=seed) for seed in seeds]
            rows.append([name, algorithm, ASYREVEL_TABLE_4[name][number], *compared(jobs, tables, say)])
        rows.extend((white_box if name in ASYREVEL else networks)(tables, epochs, say))

    return [partial(lossless, name) for name in names]


def compared(jobs: list[Job], tables: Tables, say: Say) -> list[Any]:
    """Means of non-federated and federated accuracy, their standard deviations, and how many trials."""
    found = []
    for job in jobs:
        directions = f"{job.cascade.directions} directions"
        say(f"Table 4: {job.algorithm} on {tables.dataset}, {directions}, seed {job.seed}")
        result = run_tables(job, tables).result
        found.append((non_federated(job, tables, result.step, by="values"), accuracy(result)))
    both = np.array(found)
    spread = both.std(axis=0, ddof=1).tolist() if len(both) > 1 else [None, None]
    say(f"    {both[:, 1].mean():.2f}% federated, {both[:, 0].mean():.2f}% not, by the same rule")
    return [*both.mean(axis=0).tolist(), *spread, len(both)]


def white_box(tables: Tables, epochs: int, say: Say) -> list[list[Any]]:
    """A row for TIG: what sending gradients reaches where models have them."""
    say(f"Table 4: tig on {tables.dataset}")
    tig = accuracy(run_tables(job_for(tables, "tig", train={"epochs": epochs}), tables).result)
    return [[tables.dataset, "tig (white box)", None, None, tig, None, None, 1]]


def networks(tables: Tables, epochs: int, say: Say) -> list[list[Any]]:
    """Rows for networks: more directions, a server that propagates back, and Adam on pooled columns."""
    many = job_for(tables, "asyrevel-gau", train={"epochs": epochs}, cascade={"directions": MANY})
    rows = [[tables.dataset, f"asyrevel-gau, {MANY} directions", None, *compared([many], tables, say)]]
    say(f"Table 4: first-order server, and first order on pooled columns, {tables.dataset}")
    job = job_for(tables, "asyrevel-gau", train={"epochs": epochs}, cascade={"server": "first"})
    first = accuracy(run_tables(job, tables).result)
    pooled = non_federated(job, tables, {}, by="gradient")
    say(f"    {first:.2f}% with a first-order server, {pooled:.2f}% first order on pooled columns")
    return [
        *rows,
        [tables.dataset, "asyrevel-gau, first-order server", None, None, first, None, None, 1],
        [tables.dataset, "first order, pooled", None, pooled, None, None, None, 1],
    ]
