"""Figures 3 and 4 in simulated time, the server learning by values too; what a delay asks of the step."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from colonnade.data.datasets import available
from colonnade.errors import JobError
from colonnade.job import Job
from colonnade.run.federate import Tables, run_tables
from colonnade.run.resolve import compose
from colonnade_bench.asyrevel.setting import NETWORK, PARTIES, accuracy, job_for, tables_of
from colonnade_bench.common import Bench, Grid, Panel, Say

# the slowest party's speed, train.max_delay, and the delay that the step is shortened for
DELAYS: tuple[tuple[float, int | None, int | str | None], ...] = (
    (0.4, None, None), (0.4, None, 0), (0.4, None, 8), (0.4, None, 64), (0.4, None, "bound"),
    (0.05, 263_168, None),
)  # fmt: skip


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


def slower_of(quick: bool) -> Sequence[float]:
    """By how much the slow party is slower."""
    return (0.4,) if quick else (0.2, 0.4, 0.6)


def figure_3(bench: Bench, say: Say, slow_by: Sequence[float], *, quick: bool) -> None:
    """Loss against time with one slow party, where the parties' own models are what takes the time."""
    rows = []
    name = "mnist" if available("mnist") else "a9a"
    tables = tables_of(name, 1500 if quick else 4000)
    epochs = 4 if quick else 16
    for slower in slow_by:
        net = {"speeds": [1.0] * (PARTIES - 1) + [1 - slower], "latency_ms": 1.0}
        train = {"epochs": epochs, "evaluate_every": 1}
        lines = {}
        for algorithm in ("asyrevel-gau", "asyrevel-uni", "synrevel-gau", "synrevel-uni", "tig"):
            say(f"Figure 3: {algorithm}, a party {slower:.0%} slower")
            job = job_for(tables, algorithm, "simulated", train=train, network=net)
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
        "The server learns by values too, as in Algorithm 1, and the parties find their steps. "
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
            model, cascade = {**NETWORK, "outputs": 8 // q}, {"decay": "none"}
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
        "The server learns by values too. "
        f"Simulated time to a training loss of {goal}, and of one pass of everybody through the rows; with "
        "two parties and more, the last is 40% slower. Smaller blocks need other numbers of passes, which is "
        "why the time to a loss can gain more or less than that of a pass. The server's own client keeps the "
        "pace of the quickest other, and of two parties that is the slow one. The parties' networks are what "
        "takes the time here; with small linear models the one server is."
    )
    heads = ["algorithm", "time", *(f"q={q}" for q in counts)]
    bench.grids.append(Grid("Figure 4: speed-up", heads, table, note))


def delays(bench: Bench, say: Say, *, quick: bool) -> None:
    """What shortening the step for the delay, as Theorems 2 and 3 do, costs and gains on a9a."""
    if not available("a9a"):
        return
    tables = tables_of("a9a", 4000 if quick else None)
    rows = []
    for slowest, most, assumed in ((1.0, None, "sync"), *DELAYS):
        say(f"delay: slowest {slowest:g}, max_delay {most}, assumed {assumed}")
        sync = assumed == "sync"
        train = {"epochs": 4 if quick else 10, **({} if most is None else {"max_delay": most})}
        cascade = {} if sync or assumed is None else {"assumed_delay": assumed}
        net = {"speeds": [1.0] * (PARTIES - 1) + [slowest], "latency_ms": 1.0}
        name = "synrevel-gau" if sync else "asyrevel-gau"
        result = run_tables(
            job_for(tables, name, "simulated", train=train, cascade=cascade, network=net), tables
        )
        found = result.result
        step = max(found.step.values())
        late = found.staleness
        rows.append([
            slowest, late.bound, "-" if assumed is None else assumed, step, late.mean, late.max,
            found.metrics["train_loss"], accuracy(found),
        ])  # fmt: skip
    heads = [
        "slowest party", "bound", "assumed delay", "step", "mean age", "oldest", "loss", "accuracy %",
    ]  # fmt: skip
    note = (
        "a9a, linear, 8 parties. The theorems' step is 1 / (4 (tau + 1) L); '-' is the automatic step. "
        "Ages are those of outputs that answers used, in answers given since; the bound is that of the run."
    )
    bench.grids.append(Grid("The step and the delay", heads, rows, note))
