"""`colonnade run`: run one federation on this machine, from its job file to result.json."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import click

from colonnade.job import World


@click.command()
@click.argument("job_file", metavar="JOB.toml", type=click.Path(path_type=Path))
@click.option("--out", "-o", type=click.Path(path_type=Path), help="Where results go. [default: runs/JOB]")
@click.option("--plot", is_flag=True, help="Also draw the loss against time, rounds and bytes.")
@click.option("--timeline", is_flag=True, help="Also write down when each party computed and sent.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON, and nothing else.")
@click.option("--world", type=click.Choice(get_args(World)), help="Run in this world, whatever the job says.")
@click.option("--seed", type=click.IntRange(min=0), help="Use this seed, whatever the job says.")
def run(
    job_file: Path,
    out: Path | None,
    plot: bool,
    timeline: bool,
    as_json: bool,
    world: World | None,
    seed: int | None,
) -> None:
    """Run the federation that JOB.toml describes, all parties on this machine.

    The model is compared with the same one trained on pooled data. DIR/result.json holds every number.

    \b
    Example:
      colonnade run job.toml --plot --out runs/first
    """
    import msgspec

    from colonnade.cli.folder import claim, store
    from colonnade.cli.progress import progress
    from colonnade.cli.show import console, show_result
    from colonnade.job import read_job
    from colonnade.run.resolve import compose

    job = read_job(job_file)
    if world is not None:
        job = msgspec.structs.replace(job, world=world)
    if seed is not None:
        job = msgspec.structs.replace(job, seed=seed)
    composition = compose(job)  # what cannot work is said before anything is written
    folder = claim(out or Path("runs") / job_file.stem)

    from colonnade.run.federate import federate

    with progress(job.train.epochs, quiet=as_json) as report:
        done = federate(composition, progress=report, out=folder, timeline=timeline)
    files = store(folder, done.result, plot=plot, timeline=done.timeline)
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(done.result), indent=2).decode())
        return
    terminal = console()
    show_result(terminal, done.result)
    terminal.print(f"\nwritten: {', '.join(str(file) for file in files)}", soft_wrap=True)
