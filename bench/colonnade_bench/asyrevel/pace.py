"""Figures 3 and 4 in simulated time, the server learning by values too; what a delay asks of the step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise, product
from typing import Any

import numpy as np

from colonnade.data.datasets.loading import available
from colonnade.errors import JobError
from colonnade.job import Job
from colonnade.run.federate import Tables, run_tables
from colonnade.run.resolve import compose
from colonnade_bench.asyrevel.setting import IMAGES, NETWORK, PARTIES, accuracy, job_for, tables_of
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


def figure_3(bench: Bench, say: Say, names: Sequence[str], slow_by: Sequence[float], *, quick: bool) -> None:
    """Loss against time with one slow party, in the paper's two problems: networks and linear models."""
    rows = []
    train = {"epochs": 4 if quick else 16, "evaluate_every": 1}
    for name, slower in product(names, slow_by):
        tables = _tables(name, 1500 if quick else 4000)
        net = {"speeds": [1.0] * (PARTIES - 1) + [1 - slower], "latency_ms": _latency_ms(name)}
        lines = {}
        for algorithm in ("asyrevel-gau", "asyrevel-uni", "synrevel-gau", "synrevel-uni", "tig"):
            say(f"Figure 3: {name}, {algorithm}, a party {slower:.0%} slower")
            job = job_for(tables, algorithm, "simulated", train=train, network=net)
            lines[algorithm] = curve(job, tables)
        title = f"Figure 3: {name}, a party {slower:.0%} slower"
        bench.panels.append(Panel(title, "simulated seconds", "training loss", lines))
        for kind in ("gau", "uni"):
            slow, fast = lines[f"synrevel-{kind}"], lines[f"asyrevel-{kind}"]
            goal = _reached_by_all([slow, fast])
            sync, late = time_to(slow, goal), time_to(fast, goal)
            ratio = sync / late if sync and late else None
            of_pass = slow[-1][0] / fast[-1][0]
            rows.append([name, f"{slower:.0%}", kind, goal, sync, late, ratio, of_pass])
    note = (
        f"{train['epochs']} epochs over {1500 if quick else 4000} rows at most. The server learns by values "
        "too, as in Algorithm 1, and the parties find their steps. Gaussian directions and those on the "
        "sphere are made of the same random numbers and in thousands of dimensions differ by little more "
        "than their length: their lines lie on each other. Messages take 1 ms beside networks and nothing "
        "beside linear models. TIG trains these models because they have "
        f"gradients; of a black box it says: {_refusal(names[0])}."
    )
    heads = ["data", "slower", "directions", "loss", "sync seconds", "async seconds", "sync / async"]
    heads.append("of as many passes")
    bench.grids.append(Grid("Figure 3: simulated time to the same loss", heads, rows, note))


def _latency_ms(name: str) -> float:
    """Beside the microseconds of a linear model any line would be all that counts."""
    return 1.0 if name in IMAGES else 0.0


def _reached_by_all(curves: Iterable[Sequence[tuple[float, float]]]) -> float:
    """The loss that all curves reach; near their ends, so that the start counts little."""
    return 1.001 * max(points[-1][1] for points in curves)


def _refusal(name: str) -> str:
    """What `tig` says of a model that has no gradient."""
    black_box = {"kind": "function", "path": "a:b", "parameters": 1}
    try:
        compose(job_for(_tables(name, 1), "tig", model=black_box))
    except JobError as error:
        return str(error)
    return "was not refused"


def figure_4(bench: Bench, say: Say, names: Sequence[str], *, quick: bool) -> None:
    """Simulated time to the same loss with more and more parties; networks have eight embeddings in all."""
    rows, epochs = (1000, 12) if quick else (3000, 25)
    counts, algorithms = (1, 2, 4, 8), ("asyrevel-gau", "synrevel-gau")
    table: list[list[Any]] = []
    for name in names:
        curves = {}
        for algorithm, q in product(algorithms, counts):
            say(f"Figure 4: {name}, {algorithm} with {q} parties")
            tables = _tables(name, rows, q)
            net = {"speeds": [1.0] if q == 1 else [1.0] * (q - 1) + [0.6], "latency_ms": _latency_ms(name)}
            sections: dict[str, Any] = {"network": net, "cascade": {"decay": "none"}}
            if name in IMAGES:
                sections["model"] = {**NETWORK, "outputs": 8 // q}
            train = {"epochs": epochs, "evaluate_every": 1}
            job = job_for(tables, algorithm, "simulated", train=train, **sections)
            untrained = float(np.log(10 if name in IMAGES else 2))
            curves[algorithm, q] = [(0.0, untrained), *curve(job, tables)]
        goal, lines = _reached_by_all(curves.values()), {}
        for algorithm in algorithms:
            to_goal = [time_to(curves[algorithm, q], goal) for q in counts]
            of_pass = [curves[algorithm, q][-1][0] / epochs for q in counts]
            for what, times in (("to the loss", to_goal), ("of a pass", of_pass)):
                gains = [times[0] / time if times[0] and time else None for time in times]
                table.append([name, algorithm, what, goal, *gains])
                found = [(float(q), gain) for q, gain in zip(counts, gains, strict=True) if gain is not None]
                lines[f"{algorithm}, {what}"] = found
        bench.panels.append(Panel(f"Figure 4: {name}, speed-up in q", "parties", "speed-up", lines))
    note = (
        f"{epochs} passes over {rows} rows at most. The server learns by values too. Simulated time to the "
        "loss that all runs on a set reach, and of one pass of everybody through the rows; with "
        "two parties and more, the last is 40% slower. Smaller blocks need other numbers of passes, which is "
        "why the time to a loss can gain more or less than that of a pass. The server's own client keeps the "
        "pace of the quickest other, and of two parties that is the slow one. Where parties have networks "
        "these take the time, and messages 1 ms; with small linear models, whose messages are free here, the "
        "one server does, and it has q times as many answers to give in a pass."
    )
    heads = ["data", "algorithm", "time", "loss", *(f"q={q}" for q in counts)]
    bench.grids.append(Grid("Figure 4: speed-up", heads, table, note))


@lru_cache(maxsize=4)
def _tables(name: str, rows: int, parties: int = PARTIES) -> Tables:
    return tables_of(name, rows, parties)


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
            found.metrics["objective"], accuracy(found),
        ])  # fmt: skip
    heads = [
        "slowest party", "bound", "assumed delay", "step", "mean age", "oldest", "loss", "accuracy %",
    ]  # fmt: skip
    note = (
        "a9a, linear, 8 parties. The theorems' step is 1 / (4 (tau + 1) L); '-' is the automatic step. "
        "Ages are those of outputs that answers used, in answers given since; the bound is that of the run."
    )
    bench.grids.append(Grid("The step and the delay", heads, rows, note))
