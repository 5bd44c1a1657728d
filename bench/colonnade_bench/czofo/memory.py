"""Outputs in few bits with and without a memory (`cascade.forward_memory`), on rows that are held back.

CIFAR-10, some of the training rows, small convnets; judged by a tenth of the training rows, no test row.

    python -m colonnade_bench.czofo.memory
"""

from __future__ import annotations

import click

from colonnade_bench.czofo.case import Case, Sections, measure
from colonnade_bench.czofo.cases import CNN
from colonnade_bench.czofo.steps import CHOSEN, THOUSAND, bits

TRIED: dict[str, Sections] = {
    "2 bits up, a memory": {**bits(2, 4, "column"), "forward_memory": True},
    "2 bits up": bits(2, 4, "column"),
    "4 bits up": bits(4, 4, "column"),
}


@click.command()
@click.option("--rows", default=3000, help="to train on")
@click.option("--epochs", default=6)
def main(rows: int, epochs: int) -> None:
    """Print the accuracy of czofo in few bits, with and without a memory."""
    step = CHOSEN["cifar10"]["deltas"]
    for name, how in TRIED.items():
        case = Case(
            part="memory", name=name, algorithm="czofo", dataset="cifar10", rows=rows, validation=True,
            train={"step": step.client, "epochs": epochs, "batch": 128, "evaluate_every": epochs},
            cascade={**THOUSAND, **step.cascade, **how}, model={**CNN, "channels": [16, 32]},
        )  # fmt: skip
        record = measure(case)
        click.echo(
            f"{name}: {record.accuracy:.2f}% of rows held back, training loss {record.last.loss:.3f}, "
            f"{record.megabytes:.2f} MB"
        )


if __name__ == "__main__":
    main()
