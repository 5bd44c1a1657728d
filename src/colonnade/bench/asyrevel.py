"""AsyREVEL's experiments: Tables 3 and 4, Figures 3 and 4, and what the paper leaves out about privacy.

Data sets that could not be had (rcv1, w8a, epsilon) are left out by name. Accuracy is measured with all
parties in this process (`local`); times of Figures 3 and 4 are simulated, so that a straggler is as slow
as it says whatever this machine does meanwhile. NonF, the paper's non-federated comparison, learns by
function values as well: same models, same step, same number of updates, nothing stale.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from colonnade.baselines.pooled_cascade import by_gradient, by_values, stack_of
from colonnade.bench.asyrevel_line import line_times
from colonnade.bench.asyrevel_privacy import privacy
from colonnade.bench.common import Bench, Grid, Panel, Say
from colonnade.config import Data, Job, job_from
from colonnade.data.datasets import available
from colonnade.data.deal import deal
from colonnade.errors import JobError
from colonnade.federation import Setting, resolved
from colonnade.party import Assignment, Share
from colonnade.worlds import run_local, run_simulated

PARTIES = 8
LINEAR = ("uci-credit", "givemesomecredit", "a9a")
IMAGES = ("mnist", "fashion-mnist")
NETWORK: dict[str, Any] = {"kind": "mlp", "hidden": [128], "server": {"kind": "linear"}}  # section 5.1
# Table 3: columns of a party, and how much longer sending the gradient took
PAPER_3 = {12: 1.065, 16: 1.192, 37: 1.192, 98: 1.672, 250: 1.824, 5904: 5.794}
# Table 4: NonF and AsyREVEL, which are the same, in per cent
PAPER_4 = {
    "uci-credit": (81.93, 81.88), "givemesomecredit": (93.50, 93.48), "a9a": (85.16, 85.14),
    "mnist": (91.89, 91.84), "fashion-mnist": (81.32, 81.45),
}  # fmt: skip
ABSENT = "rcv1, w8a and epsilon could not be had and are left out."


def run(quick: bool, out: Path, say: Say) -> list[Path]:
    bench = Bench("asyrevel", "AsyREVEL: black-box models over split columns", quick)
    parts = [table_3, figure_3, figure_4, table_4]
    with threadpool_limits(1):
        if available("a9a"):
            privacy(bench, setting_of("a9a"), say, quick=quick)
        for part in parts:
            part(bench, say, quick=quick)
            bench.write(out)  # a full run takes long, and what is there can be read meanwhile
    return bench.write(out)


# --- what is measured ------------------------------------------------------------------------------------


def setting_of(name: str, rows: int | None = None, parties: int = PARTIES) -> Setting:
    """The columns of a data set, dealt evenly; the first party holds the label and is the server."""
    dealt = deal(Data(train=name, parties=parties, active=1, test_fraction=0.1), task=None, seed=0)
    train, test = {}, {}
    for party, hand in dealt.hands.items():
        _, table, tested = hand.prepare()
        assert tested is not None  # noqa: S101  some rows were kept for the test
        train[party] = replace(table, X=table.X[:rows], y=None if table.y is None else table.y[:rows])
        test[party] = tested
    return Setting(name, train, test, dealt.active)


def job_for(setting: Setting, algorithm: str, world: str = "local", **sections: Any) -> Job:
    multiclass = setting.dataset in IMAGES
    train = {"regularizer": "nonconvex", "evaluate_every": 0, **sections.pop("train", {})}
    if multiclass:
        sections.setdefault("model", NETWORK)
    data = {"train": setting.dataset, "parties": len(setting.train), "active": 1}
    plain = {"algorithm": algorithm, "world": world, "data": data, "train": train, **sections}
    return resolved(job_from(plain), "multiclass" if multiclass else "binary", 10 if multiclass else 2)


def train_federated(job: Job, setting: Setting) -> dict[str, Share]:
    assert setting.test is not None  # noqa: S101  settings here have test rows
    given = {
        party: Assignment(job, table, setting.test[party], setting.active)
        for party, table in setting.train.items()
    }
    launch = run_local if job.world == "local" else run_simulated
    return launch(given, lambda moment: None)


def accuracy(shares: dict[str, Share], setting: Setting) -> float:
    return 100 * shares[setting.active[0]].metrics["test_accuracy"]


def non_federated(job: Job, setting: Setting, steps: dict[str, float], *, by: str) -> float:
    stack = stack_of(job, setting.train, setting.active[0])
    if by == "gradient":
        by_gradient(stack)
    else:
        step = float(np.mean(list(steps.values())))
        by_values(stack, step=step, server_step=step / len(setting.train))
    test = setting.test or {}
    found = stack.metrics([test[party].X for party in sorted(test)], test[setting.active[0]].y)
    return 100 * found["test_accuracy"]


# --- tables and figures ----------------------------------------------------------------------------------


def table_3(bench: Bench, say: Say, *, quick: bool) -> None:
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
    bench.grids.append(Grid("Table 3: time of an exchange", heads, rows, note))


def table_4(bench: Bench, say: Say, *, quick: bool) -> None:
    rows = []
    for name in (*LINEAR, *IMAGES):
        if not available(name):
            say(f"{name} is not on this machine, left out")
            continue
        if quick and name in ("givemesomecredit", "fashion-mnist"):
            continue
        network = name in IMAGES
        setting = setting_of(name, 4000 if quick and network else None)
        epochs = 2 if quick else 10
        for number, algorithm in enumerate(("asyrevel-gau", "asyrevel-uni")):
            say(f"Table 4: {algorithm} on {name}")
            job = job_for(setting, algorithm, train={"epochs": epochs})
            shares = train_federated(job, setting)
            steps = {party: share.step for party, share in shares.items()}
            non = non_federated(job, setting, steps, by="values")
            rows.append([name, algorithm, PAPER_4[name][number], non, accuracy(shares, setting)])
            say(f"    {accuracy(shares, setting):.2f}% federated, {non:.2f}% not, by the same rule")
        if network:
            say(f"Table 4: first-order server, and first order on pooled columns, {name}")
            job = job_for(setting, "asyrevel-gau", train={"epochs": epochs}, cascade={"server": "first"})
            first = accuracy(train_federated(job, setting), setting)
            rows.append([name, "asyrevel-gau, first-order server", None, None, first])
            pooled = non_federated(job, setting, {}, by="gradient")
            rows.append([name, "first order, pooled", None, pooled, None])
            say(f"    {first:.2f}% with a first-order server, {pooled:.2f}% first order on pooled columns")
        else:
            tig = accuracy(
                train_federated(job_for(setting, "tig", train={"epochs": epochs}), setting), setting
            )
            rows.append([name, "tig (white box)", None, None, tig])
    heads = ["data", "algorithm", "paper %", "non-federated %", "federated %"]
    note = f"Batch 256, 4 directions, steps found by the parties, {2 if quick else 10} epochs. {ABSENT}"
    bench.grids.append(Grid("Table 4: losslessness", heads, rows, note))


def curve(job: Job, setting: Setting) -> list[tuple[float, float]]:
    """(simulated seconds, training loss)"""
    history = train_federated(job, setting)[setting.active[0]].history
    return [(moment.virtual_seconds or 0.0, moment.loss) for moment in history]


def time_to(points: list[tuple[float, float]], loss: float) -> float | None:
    """When the loss was first reached, by straight lines between measurements."""
    for (t0, a), (t1, b) in pairwise(points):
        if b <= loss < a:
            return t0 + (t1 - t0) * (a - loss) / (a - b)
    return None


def figure_3(bench: Bench, say: Say, *, quick: bool) -> None:
    """Loss against time with a straggler, where the parties' own models are what takes the time."""
    rows = []
    name = "mnist" if available("mnist") else "a9a"
    setting = setting_of(name, 1500 if quick else 4000)
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
            job = job_for(setting, algorithm, "simulated", train=train, network=net, cascade=cascade)
            lines[algorithm] = curve(job, setting)
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
        job_for(setting, "tig", model={"kind": "function", "path": "a:b", "parameters": 1})
        refused = "was not refused"
    except JobError as error:
        refused = str(error)
    note = f"TIG trains these networks because they have gradients; of a black box it says: {refused}."
    heads = ["slower", "directions", "loss", "sync seconds", "async seconds", "sync / async"]
    bench.grids.append(Grid("Figure 3: simulated time to the same loss", heads, rows, note))


def figure_4(bench: Bench, say: Say, *, quick: bool) -> None:
    """Simulated time to the same loss with more and more parties; eight embeddings in all."""
    if not available("mnist"):
        return
    lines: dict[str, list[tuple[float, float]]] = {}
    rows, epochs, goal = (1000, 12, 2.24) if quick else (3000, 25, 2.0)
    for algorithm in ("asyrevel-gau", "synrevel-gau"):
        times = []
        for q in (1, 2, 4, 8):
            say(f"Figure 4: {algorithm} with {q} parties")
            setting = setting_of("mnist", rows, parties=q)
            net = {"speeds": [1.0] if q == 1 else [1.0] * (q - 1) + [0.6], "latency_ms": 1.0}
            train = {"epochs": epochs, "evaluate_every": 1}
            model, cascade = {**NETWORK, "outputs": 8 // q}, {"server": "first", "decay": "none"}
            job = job_for(
                setting, algorithm, "simulated", train=train, network=net, model=model, cascade=cascade
            )
            times.append((float(q), time_to([(0.0, float(np.log(10))), *curve(job, setting)], goal)))
        alone = times[0][1]
        found = [(q, alone / t) for q, t in times if alone is not None and t is not None]
        if found:
            lines[algorithm] = found
    if lines:
        bench.panels.append(Panel("Figure 4: mnist, speed-up in q", "parties", "speed-up", lines))
    table = [[name, *(dict(points).get(q) for q in (1.0, 2.0, 4.0, 8.0))] for name, points in lines.items()]
    note = (
        f"Simulated time to a training loss of {goal}; with two parties and more, the last is 40% slower. "
        "The parties' networks are what takes the time here; with small linear models the one server is."
    )
    bench.grids.append(Grid("Figure 4: speed-up", ["algorithm", "q=1", "q=2", "q=4", "q=8"], table, note))
