"""Which runs make up VFL-CZOFO's tables, with the settings that were chosen on validation rows.

Linear clients with two outputs for a9a and GiveMeSomeCredit, as in the paper; the step is the one that the
parties find. Networks: MNIST clients have 128 hidden units and 64 outputs, the server 128 hidden units;
CIFAR-10 clients are convnets with 10 outputs, the server has 64 hidden units. The paper trains 100 epochs
(CIFAR-10: 50); ours are fewer, as the tables say.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from colonnade.bench.czofo_case import Case, Sections

Row = tuple[str, str, Sections, Sections]  # name, algorithm, train, cascade

ONE: Sections = {"directions": 1}  # the paper's zeroth-order frameworks have a single direction
LINEAR: Sections = {"outputs": 2, "server": {"kind": "linear"}}
MLP: Sections = {"kind": "mlp", "hidden": [128], "outputs": 64, "server": {"kind": "mlp", "hidden": [128]}}
CNN: Sections = {
    "kind": "cnn", "shape": [3, 32, 16], "channels": [64, 128, 256], "outputs": 10,
    "server": {"kind": "mlp", "hidden": [64]},
}  # fmt: skip
TABULAR = {"a9a": "a9a", "gmsc": "givemesomecredit"}
CLIENTS = {"mnist2": 2, "mnist4": 4, "mnist8": 8}


def cases_of(part: str, *, quick: bool) -> list[Case]:
    return CASES[part](part, quick)


def tabular(part: str, quick: bool) -> list[Case]:
    """Tables 6 and 7; four measurements an epoch, because the threshold is reached in the first."""
    train: Sections = {"epochs": 3 if quick else 50, "evaluate_every": 0.25}
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
    ]
    cases = _cases(part, TABULAR[part], 2, rows, LINEAR)
    return [*cases, networked(cases[5], epochs=3 if quick else 50)]


def mnist(part: str, quick: bool) -> list[Case]:
    """Tables 9 and 10, and the same with two clients."""
    hundred: Sections = {"directions": 100, "smoothing": "rademacher", "server_step": 0.5}
    first: Sections = {"server_step": 0.5}
    rows: list[Row] = [
        ("split", "split", _train(0.5, 30), first),
        ("c-vfl", "c-vfl", _train(0.1, 30), first),
        ("vafl", "vafl", _train(0.5, 30), first),
        ("syn-zoo-vfl", "syn-zoo-vfl", _train(0.002, 30), {**ONE, "server_step": 0.002}),
        ("zoo-vfl", "zoo-vfl", _train(0.002, 30), {**ONE, "server_step": 0.002}),
        ("czofo", "czofo", _train(0.2, 30), hundred),
        ("czofo, 4 bits", "czofo", _train(0.2, 30), {**hundred, **bits(4, 4)}),
        ("czofo, per sample", "czofo", _train(0.5, 15), {**hundred, "per": "sample"}),
        ("czofo-coord", "czofo-coord", _train(0.5, 15), first),
    ]
    if part == "mnist2":
        rows = [row for row in rows if "zoo" not in row[0]]
    if part == "mnist8":
        rows = rows[:-1]
    cases = _cases(part, "mnist", CLIENTS[part], rows, MLP)
    if quick:
        cases = [msgspec.structs.replace(case.shortened(3), rows=4000) for case in cases]
    named = {case.name: case for case in cases}
    return [*cases, networked(named["czofo"], epochs=1)]


def cifar(part: str, quick: bool) -> list[Case]:
    """Table 3, and the ablations of Tables 4 and 5, uncompressed but where compression is what varies."""
    epochs = 30
    first: Sections = {"server_step": 0.05}
    thousand: Sections = {"directions": 1000, "smoothing": "rademacher", **first}
    train = {**_train(0.05, epochs), "batch": 128}
    rows: list[Row] = [
        ("split", "split", train, first),
        ("c-vfl", "c-vfl", {**train, "step": 0.01}, first),
        ("vafl", "vafl", train, first),
        ("syn-zoo-vfl", "syn-zoo-vfl", {**train, "step": 0.001}, {**ONE, "server_step": 0.001}),
        ("zoo-vfl", "zoo-vfl", {**train, "step": 0.001}, {**ONE, "server_step": 0.001}),
        ("czofo", "czofo", train, {**thousand, **bits(4, 4)}),
        ("czofo, 8 bits", "czofo", train, {**thousand, **bits(8, 8)}),
        ("q = 1000, 32/32 bits", "czofo", train, {**thousand, **bits(32, 32)}),
        *(
            (f"q = {q}, 32/32 bits", "czofo", train, {**thousand, "directions": q, **bits(32, 32)})
            for q in (500, 100)
        ),
        *(
            (f"q = 1000, {up}/{down} bits", "czofo", train, {**thousand, **bits(up, down)})
            for up, down in ((8, 32), (4, 32), (2, 32), (1, 32), (32, 8), (32, 4), (32, 2), (32, 1))
        ),
    ]
    cases = _cases(part, "cifar10", 2, rows, CNN)
    if quick:
        small: Sections = {**CNN, "channels": [16, 32]}
        cases = [
            msgspec.structs.replace(case.shortened(3), rows=2000, model=small)
            for case in cases
            if "q =" not in case.name
        ]
    return [*cases, networked(cases[5], epochs=1, rows=2000)]


def bits(up: int, down: int) -> Sections:
    return {"forward_bits": up, "backward_bits": down}


def networked(case: Case, *, epochs: int, rows: int | None = None) -> Case:
    """The same over mutual TLS between processes, for its bytes."""
    short = case.shortened(epochs)
    return msgspec.structs.replace(
        short, name=f"{case.name}, network", world="network", rows=rows or case.rows
    )


def _train(step: float, epochs: int) -> Sections:
    return {"step": step, "epochs": epochs}


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
