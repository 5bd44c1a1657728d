"""Engines inside a party: how long scores and gradients of a block take, by the number of workers.

    colonnade bench engines [--quick] [--only KIND]

The block is dense, wide and of many classes, so that arithmetic dominates: 2 x rows x columns x classes
operations for scores, and as many for the gradient. The best of several passes counts, and every outcome is
compared with that of one process, bit by bit.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from colonnade.arrays import Floats
from colonnade.engines.engine import INLINE, engine_of
from colonnade.job import EngineTerms
from colonnade.models.linear import SHARD, RowKernels
from colonnade.models.threads import single_threaded

PARTS = dict.fromkeys(("processes", "ray", "mpi"), "")
WORKERS = (1, 2, 4, 8, 16)
PASSES = 3


def run(
    quick: bool, out: Path, say: Callable[[str], None], only: tuple[str, ...] = ("processes",)
) -> list[Path]:
    """Time every number of workers that the machine has processors for, and write the times."""
    shards, columns, classes = (8, 256, 16) if quick else (32, 2048, 64)
    X, w, theta = _made(shards, columns, classes)
    workers = [count for count in WORKERS if count <= (os.cpu_count() or 1)]
    say(f"{len(X):,} rows x {columns} columns, {classes} classes; {os.cpu_count()} processors")
    with single_threaded():
        best, (scores, gradient) = _timed(INLINE.rows(X), w, theta)
        say(f"inline: {best:.3f} s")
        made = [{"kind": "inline", "workers": 1, "seconds": best, "speedup": 1.0, "equal": True}]
        for kind in only:
            for count in workers:
                with engine_of(EngineTerms(kind=kind, workers=count)) as engine:  # type: ignore[arg-type]
                    seconds, found = _timed(engine.rows(X), w, theta)
                equal = bool(np.array_equal(found[0], scores) and np.array_equal(found[1], gradient))
                made.append(
                    {
                        "kind": kind,
                        "workers": count,
                        "seconds": seconds,
                        "speedup": best / seconds,
                        "equal": equal,
                    }
                )
                same = "the same to the last bit" if equal else "NOT the same"
                say(f"{kind}, {count} workers: {seconds:.3f} s, {best / seconds:.2f} times as fast; {same}")
    out.mkdir(parents=True, exist_ok=True)
    path = out / "engines.json"
    path.write_text(json.dumps({"block": [len(X), columns, classes], "times": made}, indent=2) + "\n")
    return [path]


def _made(shards: int, columns: int, classes: int) -> tuple[Floats, Floats, Floats]:
    """A block of so many shards, weights, and a theta for every row."""
    rng = np.random.default_rng(0)
    X = np.tile(rng.standard_normal((SHARD, columns)), (shards, 1))
    return X, rng.standard_normal((columns, classes)), rng.standard_normal((len(X), classes))


def _timed(rows: RowKernels, w: Floats, theta: Floats) -> tuple[float, tuple[Floats, Floats]]:
    """The least time for scores and gradient of all rows, and these; the first pass only starts workers."""
    best, found = float("inf"), (w, theta)
    for number in range(PASSES + 1):
        began = time.perf_counter()
        found = rows.scores(0, len(theta), w), rows.gradient(0, len(theta), theta)
        if number:
            best = min(best, time.perf_counter() - began)
    return best, found
