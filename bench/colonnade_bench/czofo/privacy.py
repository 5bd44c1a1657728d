"""Beyond VFL-CZOFO's Table 8: accuracy under differential privacy that holds, beside the paper's epsilon.

For each data set: `vafl`, `czofo-coord` and `czofo` without a mechanism, `czofo` with the epsilon that the
paper's formula gives it, which bounds nothing (`czofo.paper_epsilon`); then, for every epsilon, `vafl-dp`
(noise on every gradient) and `vafl` and `czofo` on randomised labels. The settings of `vafl-dp` were chosen
on a tenth of the training rows (`czofo.steps`), those of the others as in the other tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from colonnade.data.datasets.loading import available
from colonnade_bench.common import Bench, Grid, Say
from colonnade_bench.czofo.case import Case, Record
from colonnade_bench.czofo.cases import LINEAR
from colonnade_bench.czofo.paper import PRIVACY
from colonnade_bench.czofo.paper_epsilon import claimed_epsilon
from colonnade_bench.czofo.records import Measure
from colonnade_bench.czofo.steps import HUNDRED, MLP, NOISY

EPSILONS = (8.0, 4.0, 1.0)
HEADS = [
    "algorithm", "mechanism", "epsilon", "epsilon spent", "paper %", "test accuracy %",
    "epsilon as the paper says",
]  # fmt: skip
SETTINGS: dict[str, dict[str, Any]] = {
    "a9a": {"train": {"epochs": 10}, "cascade": {"directions": 10}, "model": LINEAR},
    "mnist": {"train": {"epochs": 5, "step": 0.2}, "cascade": {**HUNDRED, "server_step": 0.3}, "model": MLP},
}


def privacy(bench: Bench, measure: Measure, say: Say, *, quick: bool) -> None:
    """Add the tables of all data sets that are on this machine; quick: on fewer rows."""
    for name in SETTINGS:
        if not available(name):
            say(f"{name} is not on this machine, left out")
            continue
        rows = {"a9a": 8000, "mnist": 6000}[name] if quick else None
        found = privacy_rows(name, measure, rows=rows)
        title = f"Table 8 and beyond: {name}, 2 clients, accuracy under differential privacy"
        bench.grids.append(Grid(title, HEADS, found, note(rows)))


def note(rows: int | None) -> str:
    """What stands below a table."""
    of = f"{rows} training rows. " if rows else ""
    paper = ", ".join(f"{PRIVACY[name][0]}% for {name}" for name in ("vafl-dp", "czofo"))
    return (
        f"{of}The paper prints {paper} (MNIST), each at what it computes as epsilon 95. Our epsilon bounds "
        "what all replies together tell about one label, at delta 1e-5 for 'gradient' and 0 for 'labels'; "
        "the last column is Theorem C.6 of the paper and bounds nothing."
    )


def privacy_rows(
    name: str, measure: Measure, *, epsilons: Sequence[float] = EPSILONS, rows: int | None = None
) -> list[list[Any]]:
    """A row for every algorithm, mechanism and epsilon, under `HEADS`."""
    cases = {trial: case_of(name, *trial, rows) for trial in trials(epsilons)}
    found = measure(list(cases.values()))
    exact = found[cases["vafl", "none", None].name]
    table = []
    for trial, case in cases.items():
        record = found[case.name]
        claimed = claim(exact, record) if trial == ("czofo", "none", None) else None
        printed = PRIVACY[trial[0]][0] if name == "mnist" and trial[1] == "none" else None
        table.append([*trial, record.epsilon, printed, record.accuracy, claimed])
    return table


def trials(epsilons: Sequence[float]) -> list[tuple[str, str, float | None]]:
    """Algorithm, mechanism and epsilon of every row."""
    private = [("vafl-dp", "gradient"), ("vafl", "labels"), ("czofo", "labels")]
    return [
        ("vafl", "none", None),
        ("czofo-coord", "none", None),
        ("czofo", "none", None),
        *((algorithm, how, epsilon) for epsilon in epsilons for algorithm, how in private),
    ]


def case_of(name: str, algorithm: str, mechanism: str, epsilon: float | None, rows: int | None) -> Case:
    """The case of a row, with the settings that were chosen for it."""
    sections = SETTINGS[name]
    train, cascade = {"evaluate_every": 0, **sections["train"]}, dict(sections["cascade"])
    if algorithm == "vafl-dp":
        noisy = NOISY[name][epsilon or 0.0]
        train, cascade = {**train, **noisy["train"]}, {**cascade, **noisy["cascade"]}
    if algorithm != "czofo":  # the others have no random directions
        cascade = {key: value for key, value in cascade.items() if key not in HUNDRED}
    return Case(
        part="privacy",
        name=f"{name} {algorithm} {mechanism}" + (f" {epsilon:g}" if epsilon else ""),
        algorithm=algorithm,
        dataset=name,
        rows=rows,
        train=train,
        cascade=cascade,
        model=sections["model"],
        privacy={} if epsilon is None else {"mechanism": mechanism, "epsilon": epsilon},
        listening=algorithm == "vafl" and mechanism == "none",
    )


def claim(exact: Record, record: Record) -> float | None:
    """The epsilon of the paper's Theorem C.6, from the gradients of the same network under `vafl`."""
    if exact.seen is None or exact.rows is None or not record.complete:
        return None
    return claimed_epsilon(
        exact.seen,
        rows=exact.rows,
        q=record.case.cascade["directions"],
        d=record.case.model["outputs"],
        step=record.step,
        replies=record.answers,  # to all clients, which may collude
    )
