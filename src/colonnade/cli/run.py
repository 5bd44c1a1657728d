"""`colonnade run`: run one federation on this machine, from its job file to result.json."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click

from colonnade.cli.machine import note, print_json
from colonnade.errors import ColonnadeError
from colonnade.job import World
from colonnade.lean import import_scipy

if TYPE_CHECKING:
    from colonnade.job import Job
    from colonnade.run.federate import Finished


@click.command()
@click.argument("job_file", metavar="JOB.toml", type=click.Path(path_type=Path))
@click.option("--out", "-o", type=click.Path(path_type=Path), help="Where results go. [default: runs/JOB]")
@click.option("--check", is_flag=True, help="Train nothing: list every problem of the job and its files.")
@click.option("--resume", is_flag=True, help="Continue where a run of this job was cut off.")
@click.option("--report", is_flag=True, help="Also write report.html, a page about the run.")
@click.option("--plot", is_flag=True, help="Also draw the loss against time, rounds and bytes.")
@click.option("--timeline", is_flag=True, help="Also record when each party computed and sent.")
@click.option("--mlflow", "uri", metavar="URI", help="Also log the run to this MLflow server or database.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON, and nothing else.")
@click.option("--no-pooled", is_flag=True, help="Do not fit the same model on pooled columns.")
@click.option("--world", type=click.Choice(get_args(World)), help="Run in this world, in place of the job's.")
@click.option("--seed", type=click.IntRange(min=0), help="Use this seed, in place of the job's.")
@click.pass_context
def run(
    ctx: click.Context,
    job_file: Path,
    out: Path | None,
    check: bool,
    resume: bool,
    report: bool,
    plot: bool,
    timeline: bool,
    uri: str | None,
    as_json: bool,
    no_pooled: bool,
    world: World | None,
    seed: int | None,
) -> None:
    """Train the model that JOB.toml describes, with all parties on this machine.

    It is compared with the same model trained on pooled columns. The folder of the run holds every number
    (result.json), each party's share of the model (models/), the scores of the test rows, and the job.
    `colonnade predict DIR new.csv` scores new rows.

    \b
    Example:
      colonnade run job.toml --check
      colonnade run job.toml --report --out runs/first
      colonnade run job.toml --report --out runs/first --resume
    """
    from colonnade.job import read_job

    notes: list[str] = []
    job = changed(read_job(job_file, notes.append), world, seed, no_pooled=no_pooled)
    folder = out or Path("runs") / job_file.stem
    if check:
        from colonnade.cli.check import check_job

        ctx.exit(check_job(job, folder, notes, as_json=as_json))
    for text in notes:
        note(text)
    if uri is not None:
        from colonnade.report.mlflow import check_mlflow

        check_mlflow(uri)  # before the run, not after it
    with ExitStack() as stack:
        if job.world == "mpi":
            from colonnade.run.mpi import follow, follows, leading

            if follows():
                follow()
                ctx.exit()
            stack.enter_context(leading(len(job.data.party_names)))
        done, files = run_to(job, folder, plot=plot, timeline=timeline, quiet=as_json, resume=resume)
    if report:
        files.append(_report(folder))
    if uri is not None:
        _log(folder, uri)
    _show(done, files, as_json=as_json)


def run_to(
    job: Job, out: Path, *, quiet: bool, plot: bool = False, timeline: bool = False, resume: bool = False
) -> tuple[Finished, list[Path]]:
    """Run a job and write its folder; returns the run and the files."""
    from colonnade.run import fork_server

    if job.world == "network" and fork_server.SUPPORTED:
        fork_server.warm()  # it imports while this process does, and reads the files

    import_scipy()
    from colonnade.cli.folder import claimed, store_run
    from colonnade.cli.progress import progress
    from colonnade.run.resolve import compose

    composition = compose(job)  # what cannot work is said before anything is written
    for key, why in composition.unused().items():
        note(f"{key} has no effect: {why}")

    from colonnade.run.federate import federate

    with claimed(out) as folder:
        before = _digests(folder)
        try:
            with progress(job.train.epochs, quiet=quiet) as reporter:
                done = federate(
                    composition,
                    progress=reporter,
                    out=folder,
                    tell=reporter.tell,
                    timeline=timeline,
                    resume=resume,
                )
        except (ColonnadeError, KeyboardInterrupt):
            if any(folder.glob("parties/*/checkpoints/*.gate")):
                note("the run has checkpoints; the same command with --resume goes on")
            raise
        for party, digest in done.result.data.digests.items():
            if before.get(party, digest) != digest:
                changed = f"its data has changed since the run that was in {folder}"
                note(f"{party}: {changed}, in rows, values or their order")
        return done, store_run(folder, done, plot=plot)


def _digests(folder: Path) -> dict[str, str]:
    """Return what every party had read in the run that is replaced, as hashes; none where there is no run."""
    from colonnade.cli.folder import RESULT
    from colonnade.errors import DataError
    from colonnade.result import read_result

    try:
        return read_result(folder / RESULT).data.digests
    except DataError:
        return {}


def _report(folder: Path) -> Path:
    """Write the page about a run."""
    from colonnade.cli.folder import REPORT
    from colonnade.report.facts import read_run
    from colonnade.report.page import write_report

    return write_report(read_run(folder), folder / REPORT)


def _log(folder: Path, uri: str) -> None:
    """Log a run to MLflow, as `colonnade track` does."""
    from colonnade.report.mlflow import EXPERIMENT, log_run

    run = log_run(folder, uri, EXPERIMENT)
    click.echo(f"MLflow: run {run} of experiment {EXPERIMENT}", err=True)


def _show(done: Finished, files: list[Path], *, as_json: bool) -> None:
    """Print what came out of a run."""
    if as_json:
        print_json(done.result)
        return
    from colonnade.cli.show import console, show_result

    terminal = console()
    show_result(terminal, done.result)
    terminal.print(f"\nwritten: {', '.join(str(file) for file in files)}", soft_wrap=True)


def changed(job: Job, world: World | None, seed: int | None, *, no_pooled: bool) -> Job:
    """Return the job with what the command line says in place of what the file says."""
    from msgspec.structs import replace

    return replace(
        job,
        world=job.world if world is None else world,
        seed=job.seed if seed is None else seed,
        compare=job.compare and not no_pooled,
    )
