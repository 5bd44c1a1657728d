"""Millions of rows: every party a process of its own, and how much memory the largest of them takes."""

from __future__ import annotations

import resource
from dataclasses import dataclass, replace

import numpy as np
from msgspec import structs

from colonnade.data.table import Table
from colonnade.job import job_from
from colonnade.result import Moment
from colonnade.run.federate import Tables, run_tables

PARTIES, COLUMNS, BINS, DEPTH, TREES = 4, 5, 32, 6, 2


@dataclass(frozen=True)
class Large:
    """Of one tree: seconds, and processor seconds of all parties; of the run: the largest process, in GB."""

    seconds: float
    processor: float
    megabytes: float
    largest: float


def large(rows: int, labels: str) -> Large:
    """Grow a few trees over so many rows in processes of their own."""
    when, sent = [], []

    def note(moment: Moment) -> None:
        when.append(moment.seconds)
        sent.append(moment.bytes / 1e6)

    job = job_from(
        {
            "algorithm": "secureboost",
            "world": "network",
            "data": {"train": "made up", "parties": PARTIES},
            "secure": {"labels": labels},
            "network": {"deadline_s": 1800},
            "train": {"epochs": TREES},
            "trees": {"max_bin": BINS, "max_depth": DEPTH},
        }
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run_tables(structs.replace(job, compare=False), _tables(rows), progress=note)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    between = slice(0, TREES)  # the last moment is measured twice
    return Large(
        float(np.diff(when[between]).mean()),
        processor / TREES,
        float(np.diff(sent[between]).mean()),
        after.ru_maxrss / 1e6,
    )


def _tables(rows: int) -> Tables:
    """Every party's columns of noise, one block after another; the label depends on the first two blocks."""
    rng = np.random.default_rng(0)
    train = {}
    score = rng.standard_normal(rows)
    for number in range(PARTIES):
        X = rng.standard_normal((rows, COLUMNS))
        if number < 2:
            score += X[:, 0] * (X[:, 1] + 1)
        names = tuple(f"c{number * COLUMNS + j}" for j in range(COLUMNS))
        train[f"party-{number}"] = Table(f"party-{number}", names, X)
    train["party-0"] = replace(train["party-0"], y=np.where(score > 0, 1.0, -1.0))
    return Tables("made up", train, None, ("party-0",))
