"""What a step and a number of directions give AsyREVEL's MNIST networks, on training rows that are held back.

python -m colonnade_bench.asyrevel.steps --directions 16
python -m colonnade_bench.asyrevel.steps --step 0.028
"""

from __future__ import annotations

from dataclasses import replace

import click
import numpy as np
from threadpoolctl import threadpool_limits

from colonnade.errors import Diverged
from colonnade.run.federate import run_tables
from colonnade_bench.asyrevel.setting import accuracy, job_for, tables_of

HELD_BACK = 3000


@click.command()
@click.option("--step", type=float, help="of every party; found by the parties if not given")
@click.option("--directions", default=4)
@click.option("--epochs", default=10)
@click.option("--rows", default=4000, help="to train on")
def main(step: float | None, directions: int, epochs: int, rows: int) -> None:
    """Print the step that was used, and the accuracy on rows that were held back."""
    tables = tables_of("mnist")
    order = np.random.default_rng(0).permutation(tables.train["party-0"].rows)
    parts = [
        {party: table.take(some) for party, table in tables.train.items()}
        for some in (order[:rows], order[-HELD_BACK:])
    ]
    tables = replace(tables, train=parts[0], test=parts[1])
    train = {"epochs": epochs, "step": "auto" if step is None else step}
    with threadpool_limits(1):
        job = job_for(tables, "asyrevel-gau", train=train, cascade={"directions": directions})
        try:
            found = run_tables(job, tables).result
        except Diverged as error:  # a long step may, and that is an answer
            raise click.ClickException(str(error)) from error
    loss = found.metrics["objective"]
    click.echo(
        f"{directions} directions, step {found.step['party-0']:.4f}, {found.cost.rounds:,} answers: "
        f"{accuracy(found):.2f}% of {HELD_BACK:,} rows held back, training loss {loss:.3f}"
    )


if __name__ == "__main__":
    main()
