"""What checkpoints cost: the same run without any, and with as many as it has where the job says nothing."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

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
    """Seconds of every case for every interval: the best of several, taken in turn."""
    found: dict[str, dict[str, float]] = {}
    for case in CASES:
        order = order_of(case, rows=1000 if quick else 20000, epochs=10 if quick else 30, world="local")
        best = dict.fromkeys(EVERY, float("inf"))
        for _ in range(2 if quick else 4):
            for name, every in EVERY.items():
                from msgspec.structs import replace as changed

                plan = changed(order.plan, checkpoints=every)
                with tempfile.TemporaryDirectory() as out:
                    began = time.perf_counter()
                    launch(replace(order, plan=plan, out=Path(out)))
                    best[name] = min(best[name], time.perf_counter() - began)
        found[case.name] = best
        shown = ", ".join(f"{n} {s:.3f} s ({s / best['never'] - 1:+.1%})" for n, s in best.items())
        say(f"{case.name}: {shown}")
    return found
