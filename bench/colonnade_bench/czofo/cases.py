"""Which runs make up VFL-CZOFO's tables, with the settings that were chosen on validation rows.

Linear clients with two outputs for a9a and GiveMeSomeCredit, as in the paper; the step is the one that the
parties find. Networks: MNIST clients have 128 hidden units and 64 outputs, the server 128 hidden units;
CIFAR-10 clients are convnets with 10 outputs, the server has 64 hidden units. All rows of a table have as
many epochs: those of the paper for a9a, GiveMeSomeCredit (100) and CIFAR-10 (50), and fewer for MNIST. Rows
with other epochs are there for their bytes between processes, in a table of their own.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from colonnade_bench.czofo.case import Case, Sections
from colonnade_bench.czofo.steps import CHOSEN, HUNDRED, MLP, NOISY, ONE, THOUSAND, bits

Row = tuple[str, str, Sections, Sections]  # name, algorithm, train, cascade

LINEAR: Sections = {"outputs": 2, "server": {"kind": "linear"}}
CNN: Sections = {
    "kind": "cnn", "shape": [3, 32, 16], "channels": [64, 128, 256], "outputs": 10,
    "server": {"kind": "mlp", "hidden": [64]},
}  # fmt: skip
TABULAR = {"a9a": "a9a", "gmsc": "givemesomecredit"}
CLIENTS = {"mnist2": 2, "mnist4": 4, "mnist8": 8}
EPOCHS = {"a9a": 100, "gmsc": 100, "mnist2": 20, "mnist4": 20, "mnist8": 10, "cifar10": 50}
BETWEEN_PROCESSES = ", network"  # how the names of these cases end


def cases_of(part: str, *, quick: bool) -> list[Case]:
    """The cases of a part of the bench."""
    return CASES[part](part, quick)


def tabular(part: str, quick: bool) -> list[Case]:
    """The cases of Tables 6 and 7.

    There are four measurements an epoch, because the threshold is reached in the first.
    """
    train: Sections = {"epochs": 3 if quick else EPOCHS[part], "evaluate_every": 0.25}
    ten: Sections = {"directions": 10}
    rows: list[Row] = [
        ("split", "split", train, {}),
        ("c-vfl", "c-vfl", train, {}),
        ("vafl", "vafl", train, {}),
        ("syn-zoo-vfl", "syn-zoo-vfl", train, ONE),
        ("zoo-vfl", "zoo-vfl", train, ONE),
        ("czofo", "czofo", train, ten),
        ("czofo, 4 bits", "czofo", train, {**ten, **bits(4, 4)}),
        ("czofo, per sample", "czofo", train, {**ten, "per": "sample"}),
        ("czofo-coord", "czofo-coord", train, {}),
        ("czofo-ef", "czofo-ef", train, ten),
    ]
    cases = _cases(part, TABULAR[part], 2, rows, LINEAR)
    return [*cases, networked(cases[5], epochs=2 if quick else 10)]


def mnist(part: str, quick: bool) -> list[Case]:
    """The cases of Tables 9 and 10, and the same with two clients."""
    few, epochs = CLIENTS[part] < 8, EPOCHS[part]
    rows = [
        _row("split", "split", "mnist", "gradient", epochs, {}),
        _row("c-vfl", "c-vfl", "mnist", "local", epochs, {}),
        _row("vafl", "vafl", "mnist", "gradient", epochs, {}),
        _row("syn-zoo-vfl", "syn-zoo-vfl", "mnist", "values", epochs, ONE),
        _row("zoo-vfl", "zoo-vfl", "mnist", "values", epochs, ONE),
        _row("czofo", "czofo", "mnist", "deltas", epochs, HUNDRED),
        _row("czofo, 4 bits", "czofo", "mnist", "deltas", epochs, {**HUNDRED, **bits(4, 4)}),
        _row("czofo, per sample", "czofo", "mnist", "sample", epochs, {**HUNDRED, "per": "sample"}),
        _row("czofo-coord", "czofo-coord", "mnist", "gradient", epochs, {}),
        _row("czofo-ef", "czofo-ef", "mnist", "deltas", epochs, HUNDRED),
    ]
    if not few:
        rows = [row for row in rows if row[0] not in ("czofo, 4 bits", "czofo-coord")]
    cases = _cases(part, "mnist", CLIENTS[part], rows, MLP)
    cases += [private(case) for case in cases if case.name == "vafl"]
    if quick:
        cases = [msgspec.structs.replace(case.shortened(3), rows=4000) for case in cases]
    return [*cases, *(networked(case, epochs=1) for case in cases if case.name == "czofo")]


def private(vafl: Case) -> Case:
    """The same case with noise on every gradient, at epsilon 8."""
    noisy = NOISY["mnist"][8.0]
    return msgspec.structs.replace(
        vafl, name="vafl-dp", algorithm="vafl-dp", cascade=noisy["cascade"],
        train={**noisy["train"], "epochs": vafl.epochs}, privacy={"mechanism": "gradient", "epsilon": 8.0},
    )  # fmt: skip


def cifar(part: str, quick: bool) -> list[Case]:
    """The cases of Table 3 and of Tables 4 and 5, which vary one thing and compress nothing else."""
    epochs = EPOCHS[part]
    rows = [
        _row("split", "split", "cifar10", "gradient", epochs, {}),
        _row("c-vfl", "c-vfl", "cifar10", "local", epochs, {}),
        _row("vafl", "vafl", "cifar10", "gradient", epochs, {}),
        _row("syn-zoo-vfl", "syn-zoo-vfl", "cifar10", "values", epochs, ONE),
        _row("zoo-vfl", "zoo-vfl", "cifar10", "values", epochs, ONE),
        _row("czofo", "czofo", "cifar10", "deltas", epochs, {**THOUSAND, **bits(4, 4, "column")}),
        _row("czofo-ef", "czofo-ef", "cifar10", "deltas", epochs, {**THOUSAND, "forward_range": "column"}),
        _row("czofo, 8 bits", "czofo", "cifar10", "deltas", epochs, {**THOUSAND, **bits(8, 8, "column")}),
    ]
    if not quick:
        varied = [(q, 32, 32) for q in (1000, 500, 100)]
        varied += [(1000, up, 32) for up in (8, 4, 2, 1)] + [(1000, 32, down) for down in (8, 4, 2, 1)]
        for q, up, down in varied:
            how = {**THOUSAND, "directions": q, **bits(up, down, "column")}
            rows.append(_row(f"q = {q}, {up}/{down} bits", "czofo", "cifar10", "deltas", epochs, how))
    for _, _, train, _ in rows:
        train["batch"] = 128
    cases = _cases(part, "cifar10", 2, rows, {**CNN, "channels": [16, 32]} if quick else CNN)
    if quick:
        cases = [msgspec.structs.replace(case.shortened(3), rows=2000) for case in cases]
    return [*cases, *(networked(case, epochs=1, rows=2000) for case in cases if case.name == "czofo")]


def networked(case: Case, *, epochs: int, rows: int | None = None) -> Case:
    """The same case over mutual TLS between processes, for its bytes."""
    short = case.shortened(epochs)
    return msgspec.structs.replace(
        short, name=f"{case.name}{BETWEEN_PROCESSES}", world="network", rows=rows or case.rows
    )


def _row(name: str, algorithm: str, dataset: str, kind: str, epochs: int, cascade: Sections) -> Row:
    step = CHOSEN[dataset][kind]
    return name, algorithm, {"step": step.client, "epochs": epochs}, {**cascade, **step.cascade}


def _cases(part: str, dataset: str, clients: int, rows: list[Row], model: Sections) -> list[Case]:
    return [
        Case(
            part=part, name=name, algorithm=how, dataset=dataset, clients=clients,
            train=train, cascade=cascade, model=model,
        )
        for name, how, train, cascade in rows
    ]  # fmt: skip


CASES: dict[str, Callable[[str, bool], list[Case]]] = {
    "a9a": tabular, "gmsc": tabular, "mnist2": mnist, "mnist4": mnist, "mnist8": mnist, "cifar10": cifar,
}  # fmt: skip
