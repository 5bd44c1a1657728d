"""`colonnade compare`: several algorithms on one split of a job's rows, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from colonnade.cli.machine import JSON, note, print_json

if TYPE_CHECKING:
    from colonnade.run.federate import Finished


@click.command()
@click.argument("job_file", metavar="JOB.toml", type=click.Path(path_type=Path))
@click.option(
    "--algorithms", "names", metavar="A,B,...", help="Algorithms to train. [default: one of each kind]"
)
@click.option(
    "--accept", metavar="LEAK,...", help="Leave out those that would reveal more than this: labels,scores,..."
)
@click.option(
    "--out", "-o", type=click.Path(path_type=Path), help="Where results go. [default: runs/JOB-compared]"
)
@JSON
def compare(job_file: Path, names: str | None, accept: str | None, out: Path | None, as_json: bool) -> None:
    """Train several algorithms on the same rows of JOB.toml, and measure them on the same test rows.

    Each run is kept in a folder of its own, and report.html shows them side by side, with what each would
    reveal between companies. The test rows choose the winner, so its figures are slightly optimistic;
    `colonnade tune --algorithms` chooses on training rows that are held back.

    \b
    Example:
      colonnade compare job.toml
      colonnade compare job.toml --algorithms lbfgs,secureboost --accept labels,scores,two-parties
    """
    from colonnade.cli.folder import REPORT
    from colonnade.job import read_job
    from colonnade.report.facts import read_run
    from colonnade.report.page import write_report
    from colonnade.run.families import each_of, names_of

    job = read_job(job_file, note)
    folder = out or Path("runs") / f"{job_file.stem}-compared"
    found: dict[str, Finished] = {}
    left: dict[str, str] = {}
    for name, made in each_of(job, names_of(names), names_of(accept) if accept else None):
        if isinstance(made, str):
            left[name] = made
            note(f"{name} is left out: {made}")
            continue
        found[name] = _run(name, made, folder / name, quiet=as_json)
    report = (
        write_report({name: read_run(folder / name) for name in found}, folder / REPORT) if found else None
    )
    if as_json:
        print_json({"runs": {name: done.result for name, done in found.items()}, "left_out": left})
        return
    _show(found, report)
    if left and len(found) < 2:
        note("to compare the others, change what these notes name in a copy of the job")


def _run(name: str, job: object, folder: Path, *, quiet: bool) -> Finished:
    """Run one algorithm and keep it."""
    from colonnade.cli.folder import claimed, store_run
    from colonnade.job import Job
    from colonnade.run.federate import federate

    if not isinstance(job, Job):
        raise TypeError(f"{name}: no job")
    if not quiet:
        note(f"training {name}")
    with claimed(folder) as place:
        done = federate(job, out=place)
        store_run(place, done, plot=False)
    return done


def _show(found: dict[str, Finished], report: Path | None) -> None:
    """Print all runs in one table, with what each would open."""
    from colonnade.cli.show import console, table
    from colonnade.report.summary import overview

    out = console()
    head, rows = overview([done.result for done in found.values()])
    opens = [", ".join(done.result.privacy.leaks) or "nothing" for done in found.values()]
    cells = [[name, *row, opened] for name, row, opened in zip(found, rows, opens, strict=True)]
    columns = ["algorithm", *head, "would open between companies"]
    out.print(table(columns, cells, right=range(1, len(head) + 1)))
    if report is not None:
        out.print(f"\nwritten: {report}", soft_wrap=True)
