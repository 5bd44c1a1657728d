"""Which runs make up VFL-CZOFO's tables, with the settings that were chosen on validation rows.

Linear clients with two outputs for a9a and GiveMeSomeCredit, as in the paper; the step is the one that the
parties find. Networks: MNIST clients have 128 hidden units and 64 outputs, the server 128 hidden units;
CIFAR-10 clients are small convnets with 10 outputs. The paper trains 100 epochs (CIFAR-10: 50); ours are
fewer, so that total bytes with framing stay below the paper's without.
"""

from __future__ import annotations

from typing import Any

from colonnade.bench.czofo_case import Case, Sections

ONE: Sections = {"directions": 1}  # the paper's zeroth-order frameworks have a single direction
LINEAR: Sections = {"outputs": 2, "server": {"kind": "linear"}}
MLP: Sections = {"kind": "mlp", "hidden": [128], "outputs": 64, "server": {"kind": "mlp", "hidden": [128]}}
TABULAR = {"a9a": "a9a", "gmsc": "givemesomecredit"}


def tabular(part: str, *, quick: bool) -> list[Case]:
    """Tables 6 and 7; four measurements an epoch, because the threshold is reached in the first."""
    train = {"epochs": 3 if quick else 50, "evaluate_every": 0.25}
    ten: Sections = {"directions": 10}
    rows: list[tuple[str, str, Sections]] = [
        ("split", "split", {}),
        ("c-vfl", "c-vfl", {}),
        ("vafl", "vafl", {}),
        ("syn-zoo-vfl", "syn-zoo-vfl", ONE),
        ("zoo-vfl", "zoo-vfl", ONE),
        ("czofo", "czofo", ten),
        ("czofo, 4 bits", "czofo", {**ten, **bits(4, 4)}),
        ("czofo, per sample", "czofo", {**ten, "per": "sample"}),
        ("czofo-coord", "czofo-coord", {}),
    ]
    cases = [_case(part, TABULAR[part], 2, name, how, train, cascade, LINEAR) for name, how, cascade in rows]
    return [*cases, networked(cases[5], epochs=2 if quick else 50)]


def bits(up: int, down: int) -> Sections:
    return {"forward_bits": up, "backward_bits": down}


def networked(case: Case, *, epochs: int, rows: int | None = None) -> Case:
    """The same over mutual TLS between processes, for its bytes."""
    return _replace(
        case.shortened(epochs), name=f"{case.name}, network", world="network", rows=rows or case.rows
    )


def _case(
    part: str,
    dataset: str,
    clients: int,
    name: str,
    how: str,
    train: Sections,
    cascade: Sections,
    model: Sections,
) -> Case:
    return Case(
        part=part, name=name, algorithm=how, dataset=dataset, clients=clients,
        train=train, cascade=cascade, model=model,
    )  # fmt: skip


def _replace(case: Case, **changes: Any) -> Case:
    import msgspec

    return msgspec.structs.replace(case, **changes)
