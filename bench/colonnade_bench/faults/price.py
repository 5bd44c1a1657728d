"""What checkpoints cost: the same run without any, and with one after every epoch.

At the usual pace, every 15 s, a run of minutes would show next to nothing but what else its machine does. So
runs are short and have a checkpoint after every epoch: what all of them cost, by their number, is the price
of one, and that by 15 s is the price at the usual pace. One that takes longer than a fiftieth of that comes
less often, until it does not. Both kinds take turns in one process, the other one first every second time;
medians of the differences do not mind a machine that has other things to do for a while. Processor time says
what checkpoints compute, in all parties and in the threads that write. Time by the clock has what rounds and
disks wait for each other too, and here every checkpoint waits for the one before.
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

from colonnade.conversations.gates import DEAREST, INTERVAL_S
from colonnade.records import Records
from colonnade.run.launch import launch
from colonnade.run.world import Launch
from colonnade_bench.faults.cases import BLIND, CLEAR, Case, order_of

CASES = (
    Case("vfb-saga", sections={"secure": CLEAR}),
    Case("vfb2-saga", sections={"secure": CLEAR, "train": {"ahead": 6}}),
    Case("fd-svrg"),
    Case("lbfgs", sections={"secure": CLEAR}),
    Case("vfb2-sgd", sections={"secure": BLIND}),
    Case("fdskl"),
    Case("secureboost", sections={"secure": CLEAR}),
    Case("secureboost", sections={"secure": BLIND}),
    Case("split"),
    Case("czofo"),
    Case("c-vfl"),
)
FIRST_EPOCHS, TRIES = 8, 4


@dataclass
class Spent:
    """Seconds by the clock and of the processor, and checkpoints that a party stored."""

    clock: float
    cpu: float
    stored: float


def price_of(which: int, say: Callable[[str], None], *, quick: bool) -> tuple[str, dict[str, float]]:
    """What checkpoints cost in one case: seconds of one, and that by the seconds between two."""
    case, rows = CASES[which], 4000 if quick else 20_000
    turns, seconds = (5, 1.0) if quick else (9, 3.0)
    order = _lasting(case, rows, seconds)
    pairs = [_pair(order, turn) for turn in range(turns)]
    told: dict[str, float] = {
        "epochs": order.plan.pace.epochs,
        "stored": median(often.stored for _, often in pairs),
    }
    for kind in ("clock", "cpu"):
        each = [
            (getattr(often, kind) - getattr(never, kind)) / max(often.stored, 1.0) for never, often in pairs
        ]
        low, _, high = quantiles(each, n=4)
        told |= {kind: median(each), f"{kind} low": low, f"{kind} high": high}
        told.setdefault("interval", max(INTERVAL_S, told["clock"] / DEAREST))
        told[f"{kind} price"] = told[kind] / told["interval"]
    say(
        f"{case.name}: {told['stored']:.0f} checkpoints, each {_ms(told, 'cpu')} of the processor and "
        f"{_ms(told, 'clock')} by the clock: {told['cpu price']:.2%} and {told['clock price']:.2%} of "
        f"{told['interval']:.0f} s"
    )
    return case.name, told


def _ms(told: dict[str, float], kind: str) -> str:
    low, middle, high = (1e3 * told[name] for name in (f"{kind} low", kind, f"{kind} high"))
    return f"{middle:.1f} ms ({low:.1f} to {high:.1f})"


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
    """What a run takes without checkpoints, or with one after every epoch."""
    plan = structs.replace(order.plan, checkpoints=1 if often else None)
    with tempfile.TemporaryDirectory() as out, _counted() as written:
        began = time.perf_counter(), time.process_time()
        launch(replace(order, plan=plan, out=Path(out)))
        clock, cpu = time.perf_counter() - began[0], time.process_time() - began[1]
    return Spent(clock, cpu, len(written) / len(order.data))


@contextmanager
def _counted() -> Iterator[list[int]]:
    """See which checkpoints are written meanwhile."""
    write, written = Records.write, list[int]()

    def counted(self: Records, gate: int, *rest: Any) -> None:
        write(self, gate, *rest)
        written.append(gate)

    with patch.object(Records, "write", counted):
        yield written
