"""`colonnade run --check`: list all that is wrong with a job, its files and its folder; run nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from colonnade.data.problems import Problem
    from colonnade.job import Job

BAD = 2


def check_job(job: Job, folder: Path, notes: Sequence[str], *, as_json: bool) -> int:
    """Show every problem with its remedy; returns the exit code, 2 if one of them stops the run.

    `notes` is what the reader of the job file told.
    """
    import msgspec

    from colonnade.cli.folder import claim
    from colonnade.data.problems import Problem
    from colonnade.errors import JobError
    from colonnade.run.examine import examine

    found = [*(Problem("", text, stops=False) for text in notes), *examine(job)]
    try:
        claim(folder)
    except JobError as error:
        where, _, what = str(error).partition(": ")
        found.append(Problem(where, what))
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
    else:
        _show(found)
    return BAD if any(problem.stops for problem in found) else 0


def _show(found: list[Problem]) -> None:
    """Print the problems that stop the run, then the others, each with its remedy below it."""
    stopping = [problem for problem in found if problem.stops]
    for problem in sorted(found, key=lambda problem: not problem.stops):
        click.echo(f"{'stops' if problem.stops else 'look '}  {problem.line}")
        if problem.remedy:
            click.echo(f"         {problem.remedy}")
    beside = len(found) - len(stopping)
    if found:
        click.echo()
    worth = f"; {beside} to look at" if beside else ""
    if stopping:
        click.echo(f"{len(stopping)} to put right before this can run{worth}")
    else:
        click.echo(f"nothing stops this run{worth}")
