"""The steps of VFL-CZOFO's networks: how they were chosen, on rows that were cut from the training rows.

`CHOSEN` is what the tables use. `trials` are the runs that it was chosen by: some of the training rows for a
few epochs, judged by accuracy on a tenth of the training rows that they had not seen. No test row was used.

    python -m colonnade_bench.czofo.steps mnist --clients 4 --rows 15000 --epochs 6
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import click
from msgspec import structs

from colonnade_bench.czofo.case import Case, Record, Sections, measure


class Step(NamedTuple):
    """An optimiser, the clients' first step and the server's; both fall to nought over a run."""

    optimizer: str
    client: float
    server: float

    @property
    def cascade(self) -> Sections:
        """The keys of the [cascade] section; the clients' step is one of [train]."""
        return {"server_step": self.server, "optimizer": self.optimizer}


def noisy(step: float, epochs: int, batch: int = 1024, optimizer: str = "sgd") -> dict[str, Sections]:
    """Sections of a run whose gradients are noisy: one step for clients and server."""
    return {
        "train": {"step": step, "epochs": epochs, "batch": batch},
        "cascade": Step(optimizer, step, step).cascade,
    }


class Kind(NamedTuple):
    """Algorithms that share a step: the one it is found with, its settings, and the steps that are tried."""

    algorithm: str
    cascade: Sections
    tried: tuple[Step, ...]


MLP: Sections = {"kind": "mlp", "hidden": [128], "outputs": 64, "server": {"kind": "mlp", "hidden": [128]}}
HUNDRED: Sections = {"directions": 100, "smoothing": "rademacher"}
THOUSAND: Sections = {"directions": 1000, "smoothing": "rademacher"}


def bits(up: int, down: int, per: str = "message") -> Sections:
    """The keys for bits of outputs and of replies; `per` says which outputs share a range."""
    shared = {"forward_range": per} if up < 32 and per != "message" else {}
    return {"forward_bits": up, "backward_bits": down, **shared}


ONE: Sections = {"directions": 1}  # the paper's zeroth-order frameworks have a single direction
_ZOO = (*(Step("sgd", step, step) for step in (3e-4, 1e-3, 2e-3, 4e-3)), Step("adam", 1e-3, 1e-3))
_ADAM = (Step("adam", 5e-4, 1e-3), Step("adam", 1e-3, 1e-3), Step("adam", 2e-3, 2e-3))

KINDS: dict[str, dict[str, Kind]] = {
    "mnist": {
        "gradient": Kind("vafl", {}, (Step("sgd", 0.2, 0.2), Step("sgd", 0.5, 0.5), *_ADAM[1:])),
        "local": Kind("c-vfl", {}, (Step("sgd", 0.1, 0.5), Step("adam", 2e-4, 1e-3), _ADAM[1])),
        "values": Kind("zoo-vfl", ONE, _ZOO),
        "deltas": Kind("czofo", HUNDRED, (Step("sgd", 0.2, 0.3), *_ADAM[1:], Step("adam", 4e-3, 2e-3))),
        "sample": Kind("czofo", {**HUNDRED, "per": "sample"}, (Step("sgd", 0.5, 0.5), *_ADAM[1:])),
    },
    "cifar10": {
        "gradient": Kind("vafl", {}, (Step("sgd", 0.05, 0.05), *_ADAM)),
        "local": Kind("c-vfl", {}, (Step("sgd", 0.01, 0.05), Step("adam", 2e-4, 1e-3), _ADAM[0])),
        "values": Kind("zoo-vfl", ONE, _ZOO),
        "deltas": Kind("czofo", {**THOUSAND, **bits(4, 4)}, (Step("sgd", 0.05, 0.05), *_ADAM)),
    },
}  # fmt: skip

CHOSEN: dict[str, dict[str, Step]] = {
    "mnist": {
        "gradient": Step("adam", 2e-3, 2e-3),
        "local": Step("adam", 1e-3, 1e-3),
        "values": Step("sgd", 0.002, 0.002),
        "deltas": Step("adam", 2e-3, 2e-3),
        "sample": Step("sgd", 0.5, 0.5),
    },
    "cifar10": {
        "gradient": Step("adam", 1e-3, 1e-3),
        "local": Step("adam", 5e-4, 1e-3),
        "values": Step("sgd", 0.001, 0.001),
        "deltas": Step("adam", 1e-3, 1e-3),
    },
}

# `vafl-dp`, by epsilon; on a9a nothing else than for `vafl`
NOISY: dict[str, dict[float, dict[str, Sections]]] = {
    "a9a": {epsilon: {"train": {}, "cascade": {}} for epsilon in (8.0, 4.0, 1.0)},
    "mnist": {epsilon: noisy(2e-3, 10, optimizer="adam") for epsilon in (8.0, 4.0, 1.0)},
}


def trials(dataset: str, model: Sections, *, clients: int, rows: int, epochs: int, batch: int) -> list[Case]:
    """One run for every step that is tried."""
    return [
        Case(
            part=f"steps {dataset}", name=f"{kind}, {step.optimizer} {step.client:g} {step.server:g}",
            algorithm=how.algorithm, dataset=dataset, clients=clients, rows=rows, validation=True,
            train={"step": step.client, "epochs": epochs, "batch": batch, "evaluate_every": epochs},
            cascade={**how.cascade, **step.cascade}, model=model,
        )
        for kind, how in KINDS[dataset].items()
        for step in how.tried
    ]  # fmt: skip


CHOOSING = 9  # seed of the runs that choose; those that are reported have seeds from 0


def zoo_trials(case: Case) -> list[Case]:
    """One run of a zeroth-order framework for every step of the grid, as long as the run to be reported.

    A step that is right for a short run diverges in a long one, so they cannot be shorter.
    """
    dataset = "cifar10" if case.dataset == "cifar10" else "mnist"
    return [
        structs.replace(
            case, name=f"{case.name}, {step.optimizer} {step.client:g}", validation=True, seed=CHOOSING,
            train={**case.train, "step": step.client, "evaluate_every": case.epochs},
            cascade={**case.cascade, **step.cascade},
        )
        for step in KINDS[dataset]["values"].tried
    ]  # fmt: skip


def with_step_of(case: Case, trial: Case) -> Case:
    """Return a case with the steps and the optimiser of a trial."""
    steps = {key: trial.cascade[key] for key in ("server_step", "optimizer")}
    train = {**case.train, "step": trial.train["step"]}
    return structs.replace(case, train=train, cascade={**case.cascade, **steps})


def noisy_trials(epsilon: float) -> list[Case]:
    """One run of `vafl-dp` on MNIST for every step that is tried."""
    tried = [(step, 10, 1024, "adam") for step in (1e-3, 2e-3, 4e-3)]
    return [
        Case(
            part="steps noisy", name=f"epsilon {epsilon:g}, {optimizer} {step:g}, {epochs} epochs of {batch}",
            algorithm="vafl-dp", dataset="mnist", validation=True,
            train={**sections["train"], "evaluate_every": epochs}, cascade=sections["cascade"],
            model=MLP, privacy={"mechanism": "gradient", "epsilon": epsilon},
        )
        for step, epochs, batch, optimizer in tried
        if (sections := noisy(step, epochs, batch, optimizer))
    ]  # fmt: skip


def best(dataset: str, found: Mapping[str, Record]) -> dict[str, Step]:
    """The step of every kind that was most accurate on validation rows; runs that failed do not count."""
    chosen = {}
    for kind, how in KINDS[dataset].items():
        accuracy = {
            step: found[name].accuracy
            for step in how.tried
            if (name := f"{kind}, {step.optimizer} {step.client:g} {step.server:g}") in found
        }
        if accuracy:
            chosen[kind] = max(accuracy, key=lambda step: accuracy[step])
    return chosen


@click.command()
@click.argument("dataset", type=click.Choice([*KINDS]))
@click.option("--clients", default=2)
@click.option("--rows", default=12_000, help="to train on")
@click.option("--epochs", default=4)
def main(dataset: str, clients: int, rows: int, epochs: int) -> None:
    """Print the validation accuracy of every step that is tried, and the best of every kind."""
    from colonnade_bench.czofo.cases import CNN  # it takes the chosen steps from here

    model, batch = (CNN, 128) if dataset == "cifar10" else (MLP, 64)
    found = {}
    for case in trials(dataset, model, clients=clients, rows=rows, epochs=epochs, batch=batch):
        found[case.name] = measure(case)
        click.echo(f"{case.name}: {found[case.name].accuracy:.2f}% of rows held back")
    for kind, step in best(dataset, found).items():
        click.echo(f"best of {kind}: {step.optimizer} {step.client:g}, server {step.server:g}")


if __name__ == "__main__":
    main()
