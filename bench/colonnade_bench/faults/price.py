"""What checkpoints cost: the same run without any, as often as usual, and every epoch.

Runs of all kinds take turns, in the opposite order every second time, and each is compared with the one
without checkpoints of its own turn: the median of these ratios does not mind a machine that has other things
to do for a while. Processor time says what checkpoints compute; what a disk makes a run wait is in the time
by the clock. What one checkpoint costs is the difference between every epoch and never, by epoch.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from msgspec import structs

from colonnade.conversations.gates import INTERVAL_S
from colonnade.run.launch import launch
from colonnade.run.world import Launch
from colonnade_bench.faults.cases import CLEAR, Case, order_of

CASES = (
    Case("vfb-saga", sections={"secure": CLEAR}),
    Case("vfb2-saga", sections={"secure": CLEAR, "train": {"ahead": 6}}),
    Case("lbfgs", sections={"secure": CLEAR}),
    Case("split"),
    Case("secureboost", sections={"secure": CLEAR}),
)
EVERY = {"never": None, "auto": "auto", "epoch": 1}
FIRST_EPOCHS, MOST_EPOCHS = 10, 20_000


@dataclass
class Spent:
    """Seconds by the clock and of the processor."""

    clock: float
    cpu: float


def price_of(which: int, say: Callable[[str], None], *, quick: bool) -> tuple[str, dict[str, float]]:
    """What checkpoints cost in one case: medians of ratios, and seconds of one checkpoint."""
    case, rows = CASES[which], 4000 if quick else 20000
    turns, seconds = (5, 2.0) if quick else (5, 1.4 * INTERVAL_S)
    tried = order_of(case, rows=rows, epochs=FIRST_EPOCHS, world="local")
    epochs = int(FIRST_EPOCHS * seconds / _spent(tried, "never").clock)
    epochs = max(FIRST_EPOCHS, min(MOST_EPOCHS, epochs))
    order = order_of(case, rows=rows, epochs=epochs, world="local")
    found = [_turn(order, turn) for turn in range(turns)]
    told: dict[str, float] = {"epochs": epochs, "seconds": median(each["never"].clock for each in found)}
    for name in ("auto", "epoch"):
        for kind in ("clock", "cpu"):
            ratios = [getattr(each[name], kind) / getattr(each["never"], kind) - 1 for each in found]
            told |= {f"{name} {kind}": median(ratios), f"{name} {kind} spread": max(ratios) - min(ratios)}
    each = median((turn["epoch"].cpu - turn["never"].cpu) / epochs for turn in found)
    told["seconds of one"] = each
    clock, cpu, spread = (f"{told[f'auto {kind}']:+.1%}" for kind in ("clock", "cpu", "cpu spread"))
    say(
        f"{case.name}: {epochs} epochs in {told['seconds']:.1f} s; auto {clock} by the clock, {cpu} of the "
        f"processor (medians of {turns}, which lie {spread} apart); every epoch {told['epoch cpu']:+.1%}, "
        f"{1e3 * each:.1f} ms each: {each / INTERVAL_S:.2%} of {INTERVAL_S:g} s"
    )
    return case.name, told


def _turn(order: Launch, turn: int) -> dict[str, Spent]:
    """One run of every kind, in an order that turns round."""
    names = list(EVERY) if turn % 2 else list(reversed(EVERY))
    return {name: _spent(order, name) for name in names}


def _spent(order: Launch, every: str) -> Spent:
    """What a run takes with a checkpoint so often."""
    plan = structs.replace(order.plan, checkpoints=EVERY[every])
    with tempfile.TemporaryDirectory() as out:
        began = time.perf_counter(), time.process_time()
        launch(replace(order, plan=plan, out=Path(out)))
        return Spent(time.perf_counter() - began[0], time.process_time() - began[1])
