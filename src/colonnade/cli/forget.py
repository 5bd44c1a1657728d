"""`colonnade forget`: a model without some rows."""

from __future__ import annotations

from pathlib import Path

import click

from colonnade.cli.machine import JSON, note, print_json
from colonnade.cli.sources import SOURCE
from colonnade.job.source import Source


@click.command()
@click.argument("run", metavar="DIR", type=click.Path(path_type=Path))
@click.argument("ids_file", metavar="IDS", type=SOURCE)
@click.option("--out", "-o", type=click.Path(path_type=Path), help="Where results go. [default: DIR-forgot]")
@JSON
def forget(run: Path, ids_file: Source, out: Path | None, as_json: bool) -> None:
    """Remove rows from the model of a run: those whose ids are in the file IDS.

    IDS has the job's id columns. A model of `lbfgs` with clear labels continues from its optimum; any other
    is trained from the beginning on the rows that remain. At least ten rows are removed at once, because
    two models that differ by fewer reveal those rows. The first model and the files stay until you delete
    them.

    Companies that trained with `colonnade train` take the rows out of their files and train again.

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
    from colonnade.run.forget import remember

    if not (run / JOB).is_file():
        raise DataError(
            f"{run}: there is no run in it; `colonnade run JOB.toml --out {run}` makes one. A model of "
            "several daemons is trained again by `colonnade train`, after the rows are out of the files"
        )
    job = read_job(run / JOB, note)
    with claimed(out or run.with_name(f"{run.name}-forgot")) as folder:
        say = note if not as_json else _quiet
        done, rows = without(job, run, ids_file, say, folder)
        files = store_run(folder, done, plot=False)
        remember(run, folder, rows)
    if as_json:
        print_json(done.result)
        return
    terminal = console()
    show_result(terminal, done.result)
    terminal.print(f"\nwritten: {', '.join(map(str, files))}", soft_wrap=True)
    terminal.print(
        f"{run} still has a model of these {count(len(rows), 'row')}: delete it, and the rows in the files"
    )


def _quiet(text: str) -> None:
    """Tell nobody."""
