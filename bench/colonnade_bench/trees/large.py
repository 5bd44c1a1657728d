"""Millions of rows: every party a process of its own, and how much memory the largest of them takes."""

from __future__ import annotations

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
    done = run_tables(structs.replace(job, compare=False), _tables(rows), progress=note)
    shares = done.shares.values()
    between = slice(0, TREES)  # the last moment is measured twice
    return Large(
        float(np.diff(when[between]).mean()),
        sum(share.cpu_seconds or 0.0 for share in shares) / TREES,
        float(np.diff(sent[between]).mean()),
        max([share.peak_memory_mb or 0.0 for share in shares]) / 1e3,
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
