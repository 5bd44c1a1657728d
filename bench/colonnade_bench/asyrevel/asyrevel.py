"""AsyREVEL's experiments: Tables 3 and 4, Figures 3 and 4, and what the paper leaves out about privacy.

Data sets that are not on this machine are left out by name. Accuracy is measured with all
parties in this process (`local`); times of Figures 3 and 4 are simulated, so that a straggler is as slow
as it says whatever this machine does meanwhile. NonF, the paper's non-federated comparison, learns by
function values as well: same models, same step, same number of updates, nothing stale.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from colonnade.conversations.cascade.pooled import by_gradient, by_values, stack_of
from colonnade.conversations.pooling import AllColumns
from colonnade.data.catalogue import DATASETS
from colonnade.data.datasets import available
from colonnade.errors import JobError
from colonnade.job import Data, Job, job_from
from colonnade.result import Result
from colonnade.run.federate import Tables, plan_for, run_tables
from colonnade.run.resolve import compose
from colonnade_bench.asyrevel.line import line_times
from colonnade_bench.asyrevel.privacy import privacy
from colonnade_bench.common import Bench, Grid, Panel, Say
from colonnade_bench.papers import ASYREVEL, ASYREVEL_TABLE_4, here
from colonnade_bench.party_tables import first_rows, held_out, read_tables

TABLE_3, TABLE_4 = "Table 3: time of an exchange", "Table 4: losslessness"
PARTIES = 8
IMAGES = ("mnist", "fashion-mnist")
SLOW = ("givemesomecredit", "rcv1", "w8a", "epsilon", "fashion-mnist")  # left out of a quick run
NETWORK: dict[str, Any] = {"kind": "mlp", "hidden": [128], "server": {"kind": "linear"}}  # section 5.1
# Table 3: columns of a party, and how much longer sending the gradient took
PAPER_3 = {12: 1.065, 16: 1.192, 37: 1.192, 98: 1.672, 250: 1.824, 5904: 5.794}
Part = Callable[..., None]  # (bench, say, quick=...)


def run(quick: bool, out: Path, say: Say) -> list[Path]:
    """Measure everything that the data sets on this machine allow, and write it as it comes."""
    bench = Bench("asyrevel", "AsyREVEL: black-box models over split columns", quick)
    parts: list[Part] = [table_3, figure_3, figure_4, *table_4(bench, say, quick=quick)]
    if available("a9a"):
        parts.insert(0, partial(privacy, tables=tables_of("a9a")))
    with threadpool_limits(1):
        for part in parts:
            part(bench, say, quick=quick)
            bench.write(out)  # a full run takes long, and what is there can be read meanwhile
    bench.panels += panels_of(bench.grids)
    return bench.write(out)


def panels_of(grids: list[Grid]) -> list[Panel]:
    """The figures that show Tables 3 and 4."""
    panels = []
    for grid in grids:
        if grid.title == TABLE_3:
            lines = {
                name: [(float(row[0]), row[column]) for row in grid.rows]
                for column, name in enumerate(("paper", "gradient of d parameters", "one derivative"), 1)
            }
            panels.append(Panel(TABLE_3, "columns of a party", "times as long as values", lines, log=True))
        if grid.title == TABLE_4:
            pairs = [(row[1], (row[3], row[4])) for row in grid.rows if None not in row[3:]]
            lines = {name: sorted(pair for n, pair in pairs if n == name) for name, _ in pairs}
            ends = [bound(value for _, pair in pairs for value in pair) for bound in (min, max)]
            lines["the same"] = [(end, end) for end in ends]
            panels.append(Panel(TABLE_4, "non-federated, test accuracy %", "federated %", lines))
    return panels


# --- what is measured ------------------------------------------------------------------------------------


def tables_of(name: str, rows: int | None = None, parties: int = PARTIES) -> Tables:
    """The columns of a data set, split evenly; the first party holds the label and is the server."""
    centred = DATASETS[name].defaults.scale == "zscore"  # such columns cannot carry the label's mean
    tables = read_tables(Data(train=name, parties=parties, active=1, test_fraction=0.1, intercept=centred))
    return tables if rows is None else replace(tables, train=first_rows(tables.train, rows))


def job_for(tables: Tables, algorithm: str, world: str = "local", **sections: Any) -> Job:
    """A job that trains on these tables; images have ten classes, and networks as models."""
    train = {"regularizer": "nonconvex", "evaluate_every": 0, "tolerance": 0.0, **sections.pop("train", {})}
    if tables.dataset in IMAGES:
        sections.setdefault("model", NETWORK)
        train |= {"loss": "softmax", "classes": 10}
    data = {"train": tables.dataset, "parties": len(tables.train), "active": 1}
    plain = {"algorithm": algorithm, "world": world, "compare": False, "data": data, "train": train}
    return job_from({**plain, **sections})


def accuracy(result: Result) -> float:
    """Test accuracy in per cent."""
    return 100 * result.metrics["test_accuracy"]


def non_federated(job: Job, tables: Tables, steps: dict[str, float], *, by: str) -> float:
    """Test accuracy in per cent of the same models trained in one place, by values or by gradient."""
    (plan, _), server, test = plan_for(job, tables), tables.active[0], held_out(tables)
    stack = stack_of(plan, AllColumns(tables.train, test, server))
    if by == "gradient":
        by_gradient(stack)
    else:
        by_values(stack, step=float(np.mean(list(steps.values()))))
    found = stack.metrics([test[party].X for party in sorted(test)], test[server].y)
    return 100 * found["test_accuracy"]


# --- tables and figures ----------------------------------------------------------------------------------


def table_3(bench: Bench, say: Say, *, quick: bool) -> None:
    """How much longer an exchange takes whose reply is a gradient."""
    say("Table 3: sending gradients against sending values, over mutual TLS")
    rows = []
    for d, paper in PAPER_3.items():
        values, one, whole = line_times(d, 200 if quick else 2000)
        rows.append([d, paper, whole / values, one / values, 1e6 * values])
    note = (
        "Every row is one exchange of a single sample over TLS on this machine, as in the paper: two outputs "
        "up, then either two losses down, or the gradient of the party's d parameters (what the paper "
        "compares with), or the derivative of its one output (what a split model really needs)."
    )
    heads = ["d", "paper", "gradient of d / values", "derivative of the output / values", "us with values"]
    bench.grids.append(Grid(TABLE_3, heads, rows, note))


def table_4(bench: Bench, say: Say, *, quick: bool) -> list[Part]:
    """Returns one function for every data set, which adds its rows to the table."""
    rows: list[list[Any]] = []
    epochs = 2 if quick else 10
    heads = ["data", "algorithm", "paper %", "non-federated %", "federated %"]
    found, missing = here((*ASYREVEL, *IMAGES))
    note = f"Batch 256, 4 directions, steps found by the parties, {epochs} epochs. "
    note += f"Not on this machine and left out: {', '.join(missing) or 'none'}."
    grid = Grid(TABLE_4, heads, rows, note)
    names = [name for name in found if not (quick and name in SLOW)]
    for name in missing:
        say(f"{name} is not on this machine, left out")

    def lossless(name: str, bench: Bench, say: Say, *, quick: bool) -> None:
        if grid not in bench.grids:
            bench.grids.append(grid)
        tables = tables_of(name, 4000 if quick and name in IMAGES else None)
        for number, algorithm in enumerate(("asyrevel-gau", "asyrevel-uni")):
            say(f"Table 4: {algorithm} on {name}")
            job = job_for(tables, algorithm, train={"epochs": epochs})
            result = run_tables(job, tables).result
            non = non_federated(job, tables, result.step, by="values")
            rows.append([name, algorithm, ASYREVEL_TABLE_4[name][number], non, accuracy(result)])
            say(f"    {accuracy(result):.2f}% federated, {non:.2f}% not, by the same rule")
        rows.extend((white_box if name in ASYREVEL else first_order)(tables, epochs, say))

    return [partial(lossless, name) for name in names]


def white_box(tables: Tables, epochs: int, say: Say) -> list[list[Any]]:
    """A row for TIG: what sending gradients reaches where models have them."""
    say(f"Table 4: tig on {tables.dataset}")
    tig = accuracy(run_tables(job_for(tables, "tig", train={"epochs": epochs}), tables).result)
    return [[tables.dataset, "tig (white box)", None, None, tig]]


def first_order(tables: Tables, epochs: int, say: Say) -> list[list[Any]]:
    """Rows for networks: a server that propagates back through its own model, and Adam on pooled columns."""
    say(f"Table 4: first-order server, and first order on pooled columns, {tables.dataset}")
    job = job_for(tables, "asyrevel-gau", train={"epochs": epochs}, cascade={"server": "first"})
    first = accuracy(run_tables(job, tables).result)
    pooled = non_federated(job, tables, {}, by="gradient")
    say(f"    {first:.2f}% with a first-order server, {pooled:.2f}% first order on pooled columns")
    return [
        [tables.dataset, "asyrevel-gau, first-order server", None, None, first],
        [tables.dataset, "first order, pooled", None, pooled, None],
    ]


def curve(job: Job, tables: Tables) -> list[tuple[float, float]]:
    """The simulated seconds and the training loss of every measurement."""
    history = run_tables(job, tables).result.history
    return [(moment.virtual_seconds or 0.0, moment.loss) for moment in history]


def time_to(points: list[tuple[float, float]], loss: float) -> float | None:
    """The time at which the loss was first reached, by straight lines between measurements."""
    for (t0, a), (t1, b) in pairwise(points):
        if b <= loss < a:
            return t0 + (t1 - t0) * (a - loss) / (a - b)
    return None


def figure_3(bench: Bench, say: Say, *, quick: bool) -> None:
    """Loss against time with one slow party, where the parties' own models are what takes the time."""
    rows = []
    name = "mnist" if available("mnist") else "a9a"
    tables = tables_of(name, 1500 if quick else 4000)
    epochs = 4 if quick else 16
    for slower in (0.2, 0.4, 0.6):
        if quick and slower != 0.4:
            continue
        net = {"speeds": [1.0] * (PARTIES - 1) + [1 - slower], "latency_ms": 1.0}
        train = {"epochs": epochs, "evaluate_every": 1, "step": 0.05}
        lines = {}
        for algorithm in ("asyrevel-gau", "asyrevel-uni", "synrevel-gau", "synrevel-uni", "tig"):
            say(f"Figure 3: {algorithm}, a party {slower:.0%} slower")
            cascade = {"server": "first"}
            job = job_for(tables, algorithm, "simulated", train=train, network=net, cascade=cascade)
            lines[algorithm] = curve(job, tables)
        title = f"Figure 3: {name}, a party {slower:.0%} slower"
        bench.panels.append(Panel(title, "simulated seconds", "training loss", lines))
        for kind in ("gau", "uni"):
            slow, fast = lines[f"synrevel-{kind}"], lines[f"asyrevel-{kind}"]
            # the loss that both reach; near the end so that the start counts little
            goal = max(slow[-1][1], fast[-1][1]) * 1.001
            sync, late = time_to(slow, goal), time_to(fast, goal)
            ratio = sync / late if sync and late else None
            rows.append([f"{slower:.0%}", kind, goal, sync, late, ratio])
    try:
        compose(job_for(tables, "tig", model={"kind": "function", "path": "a:b", "parameters": 1}))
        refused = "was not refused"
    except JobError as error:
        refused = str(error)
    note = (
        "Gaussian directions and those on the sphere are made of the same random numbers and in thousands of "
        "dimensions differ by little more than their length: their lines lie on each other. TIG trains these "
        f"networks because they have gradients; of a black box it says: {refused}."
    )
    heads = ["slower", "directions", "loss", "sync seconds", "async seconds", "sync / async"]
    bench.grids.append(Grid("Figure 3: simulated time to the same loss", heads, rows, note))


def figure_4(bench: Bench, say: Say, *, quick: bool) -> None:
    """Simulated time to the same loss with more and more parties; eight embeddings in all."""
    if not available("mnist"):
        return
    rows, epochs, goal = (1000, 12, 2.24) if quick else (3000, 25, 2.0)
    counts = (1, 2, 4, 8)
    table, lines = [], {}
    for algorithm in ("asyrevel-gau", "synrevel-gau"):
        to_goal, per_epoch = [], []
        for q in counts:
            say(f"Figure 4: {algorithm} with {q} parties")
            tables = tables_of("mnist", rows, parties=q)
            net = {"speeds": [1.0] if q == 1 else [1.0] * (q - 1) + [0.6], "latency_ms": 1.0}
            train = {"epochs": epochs, "evaluate_every": 1}
            model, cascade = {**NETWORK, "outputs": 8 // q}, {"server": "first", "decay": "none"}
            job = job_for(
                tables, algorithm, "simulated", train=train, network=net, model=model, cascade=cascade
            )
            points = curve(job, tables)
            to_goal.append(time_to([(0.0, float(np.log(10))), *points], goal))
            per_epoch.append(points[-1][0] / epochs)
        for what, times in (("to the loss", to_goal), ("of an epoch", per_epoch)):
            gains = [times[0] / time if times[0] and time else None for time in times]
            table.append([algorithm, what, *gains])
            found = [(float(q), gain) for q, gain in zip(counts, gains, strict=True) if gain is not None]
            if found:
                lines[f"{algorithm}, {what}"] = found
    if lines:
        bench.panels.append(Panel("Figure 4: mnist, speed-up in q", "parties", "speed-up", lines))
    note = (
        f"Simulated time to a training loss of {goal}, and of one pass of everybody through the rows; with "
        "two parties and more, the last is 40% slower. Smaller blocks need other numbers of passes, which is "
        "why the time to a loss can gain more or less than that of a pass. The server's own client keeps the "
        "pace of the quickest other, and of two parties that is the slow one. The parties' networks are what "
        "takes the time here; with small linear models the one server is."
    )
    heads = ["algorithm", "time", *(f"q={q}" for q in counts)]
    bench.grids.append(Grid("Figure 4: speed-up", heads, table, note))
