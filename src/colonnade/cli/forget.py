"""`colonnade forget`: a model without some rows."""

from __future__ import annotations

from pathlib import Path

import click

from colonnade.cli.machine import JSON, note, print_json
from colonnade.cli.party import CONFIG
from colonnade.cli.sources import SOURCE
from colonnade.job.source import Source


@click.command()
@click.argument("model", metavar="DIR|MODEL")
@click.argument("ids_file", metavar="IDS", type=SOURCE)
@click.option("--out", "-o", type=click.Path(path_type=Path), help="DIR: where. [default: DIR-forgot]")
@CONFIG
@JSON
def forget(model: str, ids_file: Source, out: Path | None, config: Path, as_json: bool) -> None:
    """Train a model on without the rows whose ids are in IDS, a file with the id columns.

    A linear model of lbfgs in clear goes on from its optimum; all others are trained from the beginning, on
    the rows that are left. At least ten rows are forgotten at once: the model before and after fewer tells
    what these rows are. The model in DIR has seen them and stays until it is deleted; so do the files.

    \b
    Example:
      colonnade forget runs/job ids.csv --out runs/without
    """
    from colonnade.cli.folder import JOB, claimed, store_run
    from colonnade.cli.show import console, show_result
    from colonnade.data.table import count
    from colonnade.errors import DataError
    from colonnade.job import read_job
    from colonnade.run.forget import forget as without

    run = Path(model)
    if not (run / JOB).is_file():
        raise DataError(f"{model}: there is no such folder of a run")
    job = read_job(run / JOB, note)
    with claimed(out or run.with_name(f"{run.name}-forgot")) as folder:
        say = note if not as_json else _quiet
        done = without(job, run, ids_file, say, folder)
        files = store_run(folder, done, plot=False)
    if as_json:
        print_json(done.result)
        return
    terminal = console()
    show_result(terminal, done.result)
    told = done.result.forgot
    rows = 0 if told is None else told.rows
    terminal.print(f"\nwritten: {', '.join(map(str, files))}", soft_wrap=True)
    terminal.print(
        f"{run} still has a model of these {count(rows, 'row')}: delete it, and them from the files"
    )


def _quiet(text: str) -> None:
    """Tell nobody."""
