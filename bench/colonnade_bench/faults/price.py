"""What checkpoints cost: the same run without any, and with ten times as many as usual.

A run of minutes would show next to nothing but what else its machine does. So runs are short, their
checkpoints come every 1.5 s instead of 15, and a tenth of what these cost is the price at the usual pace.
Both kinds take turns in one process, the other one first every second time, and each pair gives a ratio: the
median of many does not mind a machine that has other things to do for a while. Processor time says what
checkpoints compute, in all parties and in the threads that write; what rounds and disks wait for each other
is in the time by the clock.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median, quantiles
from typing import Any
from unittest.mock import patch

from msgspec import structs

from colonnade.conversations import gates
from colonnade.records import Records
from colonnade.run.launch import launch
from colonnade.run.world import Launch
from colonnade_bench.faults.cases import BLIND, CLEAR, Case, order_of

CASES = (
    Case("vfb-saga", sections={"secure": CLEAR}),
    Case("vfb2-saga", sections={"secure": CLEAR, "train": {"ahead": 6}}),
    Case("fd-svrg"),
    Case("vfb2-sgd", sections={"secure": BLIND}),
    Case("fdskl"),
    Case("secureboost", sections={"secure": CLEAR}),
    Case("secureboost", sections={"secure": BLIND}),
    Case("split"),
    Case("czofo"),
    Case("c-vfl"),
)
"""One of every conversation but `lbfgs`, whose runs are over before their first checkpoint."""
OFTENER = 10
FIRST_EPOCHS, TRIES = 8, 5


@dataclass
class Spent:
    """Seconds by the clock and of the processor, and checkpoints that a party stored."""

    clock: float
    cpu: float
    stored: float = 0.0


def price_of(which: int, say: Callable[[str], None], *, quick: bool) -> tuple[str, dict[str, float]]:
    """What checkpoints cost in one case: medians of ratios at the usual pace, and seconds of one."""
    case, rows = CASES[which], 4000 if quick else 20_000
    turns, seconds = (5, 3.0) if quick else (7, 6.0)
    order = _lasting(case, rows, seconds)
    pairs = [_pair(order, turn) for turn in range(turns)]
    stored = median(often.stored for _, often in pairs)
    told: dict[str, float] = {
        "epochs": order.plan.pace.epochs,
        "seconds": median(never.clock for never, _ in pairs),
        "stored": stored,
    }
    for kind in ("clock", "cpu"):
        ratios = [(getattr(often, kind) / getattr(never, kind) - 1) / OFTENER for never, often in pairs]
        low, _, high = quantiles(ratios, n=4)
        told |= {kind: median(ratios), f"{kind} low": low, f"{kind} high": high}
    each = median((often.cpu - never.cpu) / max(often.stored, 1.0) for never, often in pairs)
    told["seconds of one"] = each
    say(
        f"{case.name}: {told['epochs']:.0f} epochs in {told['seconds']:.1f} s, {stored:.0f} checkpoints; at "
        f"the usual pace {told['cpu']:+.2%} of the processor (half of the pairs {told['cpu low']:+.2%} to "
        f"{told['cpu high']:+.2%}), {told['clock']:+.2%} by the clock ({told['clock low']:+.2%} to "
        f"{told['clock high']:+.2%}); {1e3 * each:.1f} ms of the processor for one"
    )
    return case.name, told


def _lasting(case: Case, rows: int, seconds: float) -> Launch:
    """The run of a case with as many epochs as take about so long."""
    train = {**case.sections.get("train", {}), "tolerance": 0.0}  # a run lasts as long as its epochs say
    case, epochs = replace(case, sections={**case.sections, "train": train}), FIRST_EPOCHS
    _spent(order_of(case, rows=rows, epochs=epochs, world="local"), often=False)  # imports take their time
    for _ in range(TRIES):
        order = order_of(case, rows=rows, epochs=epochs, world="local")
        taken = _spent(order, often=False).cpu  # whatever else the machine does
        if taken > 0.7 * seconds:
            break
        epochs = int(epochs * min(10.0, seconds / taken)) + 1
    return order


def _pair(order: Launch, turn: int) -> tuple[Spent, Spent]:
    """A run without checkpoints and one with many, in an order that turns round."""
    found = {often: _spent(order, often=often) for often in ((False, True) if turn % 2 else (True, False))}
    return found[False], found[True]


def _spent(order: Launch, *, often: bool) -> Spent:
    """What a run takes without checkpoints, or with many."""
    plan = structs.replace(order.plan, checkpoints="auto" if often else None)
    with tempfile.TemporaryDirectory() as out, _counted() as written:
        began = time.perf_counter(), time.process_time()
        launch(replace(order, plan=plan, out=Path(out)))
        clock, cpu = time.perf_counter() - began[0], time.process_time() - began[1]
    return Spent(clock, cpu, len(written) / len(order.data))


@contextmanager
def _counted() -> Iterator[list[int]]:
    """Have checkpoints so much oftener than usual for a while, and see which are written."""
    usual, write = gates.INTERVAL_S, Records.write
    written: list[int] = []

    def counted(self: Records, gate: int, *rest: Any) -> None:
        write(self, gate, *rest)
        written.append(gate)

    with patch.object(gates, "INTERVAL_S", usual / OFTENER), patch.object(Records, "write", counted):
        yield written
