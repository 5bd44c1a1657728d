"""Outputs in few bits: rounded by chance, to the nearest, or with a memory (`cascade.forward_memory`).

CIFAR-10, some of the training rows; judged by a tenth of the training rows, no test row. `--wide` has the
convnets of the tables, otherwise they are small.

    python -m colonnade_bench.czofo.memory --rows 9000 --epochs 20 --wide --seeds 3 --device auto
"""

from __future__ import annotations

import click
import numpy as np

from colonnade_bench.czofo.case import Case, Sections, measure
from colonnade_bench.czofo.cases import CNN
from colonnade_bench.czofo.steps import CHOSEN, THOUSAND, bits

TRIED: dict[str, Sections] = {
    "32 bits up": bits(32, 4),
    "4 bits up, by chance": bits(4, 4, "column"),
    "2 bits up, by chance": bits(2, 4, "column"),
    "2 bits up, nearest": {**bits(2, 4, "column"), "forward_rounding": "nearest"},
    "2 bits up, a memory": {**bits(2, 4, "column"), "forward_memory": True},
}


@click.command()
@click.option("--rows", default=3000, help="to train on")
@click.option("--epochs", default=6)
@click.option("--seeds", default=1)
@click.option("--wide", is_flag=True, help="the convnets of the tables")
@click.option("--device", default="cpu", help="cpu, cuda, or auto: a GPU where torch sees one")
@click.option("--only", multiple=True, type=click.Choice(list(TRIED)), help="one of them, or several")
def main(rows: int, epochs: int, seeds: int, wide: bool, device: str, only: tuple[str, ...]) -> None:
    """Print the accuracy of czofo in few bits, with and without a memory."""
    step = CHOSEN["cifar10"]["deltas"]
    for name in only or TRIED:
        how, found = TRIED[name], []
        for seed in range(seeds):
            case = Case(
                part="memory", name=name, algorithm="czofo", dataset="cifar10", rows=rows, validation=True,
                seed=seed, cascade={**THOUSAND, **step.cascade, **how},
                train={"step": step.client, "epochs": epochs, "batch": 128, "evaluate_every": epochs},
                model=CNN if wide else {**CNN, "channels": [16, 32]},
            )  # fmt: skip
            record = measure(case, device)
            found.append([record.accuracy, record.last.loss])
        accuracy, loss = np.mean(found, axis=0)
        each = ", ".join(f"{one:.2f}" for one, _ in found)
        click.echo(
            f"{name}: {accuracy:.2f}% of rows held back ({each}), training loss {loss:.3f}, "
            f"{record.megabytes:.2f} MB"
        )


if __name__ == "__main__":
    main()
