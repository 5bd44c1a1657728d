"""What checkpoints cost: the same run without any, and with as many as it has where the job says nothing.

Runs take turns and the best of each counts. Processor time says it where the machine has other things to do;
what a disk makes a run wait is in the time by the clock alone.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from msgspec import structs

from colonnade.run.launch import launch
from colonnade_bench.faults.cases import CLEAR, Case, order_of

CASES = (
    Case("vfb-saga", sections={"secure": CLEAR}),
    Case("vfb2-saga", sections={"secure": CLEAR, "train": {"ahead": 6}}),
    Case("lbfgs", sections={"secure": CLEAR}),
    Case("split"),
    Case("secureboost", sections={"secure": CLEAR}),
)
EVERY = {"never": None, "auto": "auto", "epoch": 1}


def price(say: Callable[[str], None], *, quick: bool) -> dict[str, dict[str, float]]:
    """Seconds of every case for every interval, by the clock and of the processor."""
    found: dict[str, dict[str, float]] = {}
    for case in CASES:
        order = order_of(case, rows=4000 if quick else 20000, epochs=30, world="local")
        best = {(name, kind): float("inf") for name in EVERY for kind in ("clock", "cpu")}
        for _ in range(3 if quick else 5):
            for name, every in EVERY.items():
                plan = structs.replace(order.plan, checkpoints=every)
                with tempfile.TemporaryDirectory() as out:
                    began = time.perf_counter(), time.process_time()
                    launch(replace(order, plan=plan, out=Path(out)))
                    ended = time.perf_counter(), time.process_time()
                for kind, one, other in zip(("clock", "cpu"), began, ended, strict=True):
                    best[name, kind] = min(best[name, kind], other - one)
        found[case.name] = {f"{name} {kind}": seconds for (name, kind), seconds in best.items()}
        for name in EVERY:
            more = [best[name, kind] / best["never", kind] - 1 for kind in ("clock", "cpu")]
            say(
                f"{case.name}, {name}: {best[name, 'clock']:.2f} s ({more[0]:+.1%}, processor {more[1]:+.1%})"
            )
    return found
