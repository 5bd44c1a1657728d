"""Beyond VFL-CZOFO's Table 8: accuracy under differential privacy that holds, beside the paper's epsilon.

For each data set: `vafl` and `czofo` without a mechanism, `czofo` with the epsilon that the paper's formula
gives it, which bounds nothing (`privacy.paper_epsilon`); then, for every epsilon, `vafl-dp` (noise on every
gradient) and `vafl` and `czofo` on randomised labels. The settings of `vafl-dp` were chosen on a tenth of the
training rows, at epsilon 4, those of the others as in the other tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from colonnade.attacks.split_labels import gradients_heard
from colonnade.attacks.transcript import Transcript
from colonnade.bench.common import Bench, Grid, Say
from colonnade.bench.czofo_case import Case, job_of
from colonnade.bench.czofo_data import dealt, prepared
from colonnade.config import Job
from colonnade.data.datasets import available
from colonnade.federation import Setting
from colonnade.party import Assignment, Share
from colonnade.privacy.paper_epsilon import Observed, claimed_epsilon
from colonnade.worlds import run_local

Floats = NDArray[Any]

CLIENT = "party-0"
EPSILONS = (8.0, 4.0, 1.0)
HEADS = ["algorithm", "mechanism", "epsilon", "epsilon spent", "test accuracy %", "epsilon as the paper says"]
SETTINGS: dict[str, dict[str, Any]] = {
    "a9a": {
        "train": {"epochs": 10, "evaluate_every": 0},
        "cascade": {"directions": 10},
        "model": {"kind": "linear", "outputs": 2, "server": {"kind": "linear"}},
    },
    "mnist": {
        "train": {"epochs": 5, "step": 0.2, "evaluate_every": 0},
        "cascade": {"directions": 100, "smoothing": "rademacher", "server_step": 0.3},
        "model": {"kind": "mlp", "hidden": [128], "outputs": 64, "server": {"kind": "mlp", "hidden": [128]}},
    },
}
# noise on every gradient wants large batches and few passes
NOISY: dict[str, dict[str, Any]] = {
    "a9a": {"train": {"batch": 1024}},
    "mnist": {"train": {"batch": 1024, "epochs": 3}, "cascade": {"server_step": 0.2}},
}


def privacy(bench: Bench, say: Say, *, quick: bool, device: str = "cpu") -> None:
    """The tables of all data sets that are here; quick: on fewer rows."""
    for name in SETTINGS:
        if available(name):
            rows = {"a9a": 8000, "mnist": 6000}[name] if quick else None
            found = privacy_rows(name, say, rows=rows, device=device)
            title = f"Table 8 and beyond: {name}, 2 clients, accuracy under differential privacy"
            bench.grids.append(Grid(title, HEADS, found, note(name, rows)))


def note(name: str, rows: int | None) -> str:
    of = f"{rows} training rows. " if rows else ""
    return (
        f"{of}Epsilon bounds what all replies together tell about one label, at delta 1e-5 for 'gradient' "
        "and 0 for 'labels'; the last column is Theorem C.6 of the paper and bounds nothing."
    )


def privacy_rows(
    name: str, say: Say, *, epsilons: Sequence[float] = EPSILONS, rows: int | None = None, device: str = "cpu"
) -> list[list[Any]]:
    """A row for every algorithm, mechanism and epsilon, under `HEADS`."""
    deal = dealt(name, 2, rows=rows)
    setting, classes = prepared(deal), len(deal.labels.classes)
    found: list[list[Any]] = []
    seen: Observed | None = None
    for algorithm, mechanism, epsilon in trials(epsilons):
        say(f"privacy, {name}: {algorithm}, {mechanism}" + (f", epsilon {epsilon:g}" if epsilon else ""))
        job = job_of(case_of(name, algorithm, mechanism, epsilon), classes, device)
        transcript = Transcript(CLIENT)
        shares = run(job, setting, transcript)
        server = shares[setting.active[0]]
        claimed = None
        if algorithm == "vafl" and mechanism == "none":
            seen = observed(transcript, job, setting)
        if algorithm == "czofo" and mechanism == "none" and seen is not None:
            claimed = claim(seen, job, shares[CLIENT], setting.train[CLIENT].rows)
        accuracy = 100 * server.metrics["test_accuracy"]
        found.append([algorithm, mechanism, epsilon, server.epsilon, accuracy, claimed])
    return found


def trials(epsilons: Sequence[float]) -> list[tuple[str, str, float | None]]:
    private = [("vafl-dp", "gradient"), ("vafl", "labels"), ("czofo", "labels")]
    return [
        ("vafl", "none", None),
        ("czofo", "none", None),
        *((algorithm, how, epsilon) for epsilon in epsilons for algorithm, how in private),
    ]


def case_of(name: str, algorithm: str, mechanism: str, epsilon: float | None) -> Case:
    sections = SETTINGS[name]
    train, cascade = dict(sections["train"]), dict(sections["cascade"])
    if algorithm == "vafl-dp":
        train |= NOISY[name]["train"]
        cascade |= NOISY[name].get("cascade", {})
    if algorithm != "czofo":
        cascade = {key: value for key, value in cascade.items() if key not in ("directions", "smoothing")}
    return Case(
        part="privacy",
        name=f"{name} {algorithm} {mechanism} {epsilon}",
        algorithm=algorithm,
        dataset=name,
        train=train,
        cascade=cascade,
        model=sections["model"],
        privacy={} if epsilon is None else {"mechanism": mechanism, "epsilon": epsilon},
    )


def run(job: Job, setting: Setting, transcript: Transcript) -> dict[str, Share]:
    test = setting.test or {}
    given = {
        party: Assignment(job, table, test.get(party), setting.active)
        for party, table in setting.train.items()
    }
    return run_local(given, lambda moment: None, transcript.tap)


def observed(transcript: Transcript, job: Job, setting: Setting) -> Observed:
    """The gradients of single rows that a client of `vafl` is told, which the paper's formula asks for."""
    rows = setting.train[CLIENT].rows
    heard = [gradients for _, gradients in gradients_heard(transcript, job, sorted(setting.train), rows)]
    return Observed.of(np.concatenate(heard))


def claim(seen: Observed, job: Job, client: Share, rows: int) -> float:
    return claimed_epsilon(
        seen,
        rows=rows,
        q=job.cascade.directions,
        d=job.model.outputs,
        step=client.step,
        replies=client.rounds,  # to all clients, which may collude
    )
