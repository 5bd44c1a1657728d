"""`colonnade tune`: search for a job's settings on training rows, then train and measure the best."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click

from colonnade.cli.machine import note, print_json
from colonnade.job.sections import MetricName, World

if TYPE_CHECKING:
    from collections.abc import Callable

    from colonnade.job import Job
    from colonnade.run.federate import Finished
    from colonnade.run.tune import Tuning
    from colonnade.search import Search, Trial

JOURNAL = "trials.journal"
WRITTEN = "# The best settings that `colonnade tune` found; `colonnade run` trains this job.\n"
SHOWN = 5  # settings in the table at the end


@click.command()
@click.argument("job_file", metavar="JOB.toml", type=click.Path(path_type=Path))
@click.option(
    "--out", "-o", type=click.Path(path_type=Path), help="Where results go. [default: runs/JOB-tuned]"
)
@click.option(
    "--trials", type=click.IntRange(min=1), help="How many settings to try, in place of what the job says."
)
@click.option("--folds", type=click.IntRange(min=2), help="Into how many folds training rows are cut.")
@click.option(
    "--metric", type=click.Choice(get_args(MetricName)), help="The metric on held-back rows that decides."
)
@click.option(
    "--algorithms",
    metavar="A,B,...",
    help="Compare these algorithms, in place of [tune.space]; all else is as in the job.",
)
@click.option(
    "--accept",
    metavar="LEAK,...",
    help="Leave out algorithms that would reveal more than this: labels,scores,...",
)
@click.option("--no-pooled", is_flag=True, help="Do not fit the chosen model on pooled columns.")
@click.option("--world", type=click.Choice(get_args(World)), help="Run in this world, in place of the job's.")
@click.option("--seed", type=click.IntRange(min=0), help="Use this seed, in place of the job's.")
@click.option("--json", "as_json", is_flag=True, help="Print the search and the result as JSON only.")
@click.pass_context
def tune(
    ctx: click.Context,
    job_file: Path,
    out: Path | None,
    trials: int | None,
    folds: int | None,
    metric: MetricName | None,
    algorithms: str | None,
    accept: str | None,
    no_pooled: bool,
    world: World | None,
    seed: int | None,
    as_json: bool,
) -> None:
    """Search for better settings of JOB.toml, then train and measure the best.

    Settings are compared on training rows that are held back; test rows are scored once, by the model at the
    end. The section [tune] of the job says what is tried; without it, what suits the algorithm. Every trial
    is several full trainings, and reveals as much as several.

    Ctrl-C keeps what was found; the same command continues from there. Results are written as a run's are,
    with search.json (every trial) and best.toml (the job with the best settings).

    \b
    Example:
      colonnade tune job.toml --trials 20 --out runs/tuned
      colonnade tune job.toml --algorithms lbfgs,secureboost,split --accept labels,scores,nodes
    """
    from colonnade.cli.run import changed
    from colonnade.job import read_job

    job = changed(read_job(job_file, note), world, seed, no_pooled=no_pooled)
    job = _comparing(_searching(job, trials, folds, metric), algorithms, accept)
    folder = out or Path("runs") / f"{job_file.stem}-tuned"
    ctx.exit(_tune(job, folder, as_json=as_json))


def _searching(job: Job, trials: int | None, folds: int | None, metric: MetricName | None) -> Job:
    """Return the job with what the command line says of the search."""
    from msgspec.structs import replace

    search = job.tune
    return replace(
        job,
        tune=replace(
            search,
            trials=trials or search.trials,
            folds=folds or search.folds,
            held_back=None if folds else search.held_back,
            metric=metric or search.metric,
        ),
    )


def _comparing(job: Job, algorithms: str | None, accept: str | None) -> Job:
    """Return the job with the algorithms that the command line names, and with what they may open."""
    from msgspec.structs import replace

    from colonnade.run.families import names_of

    search = job.tune
    if algorithms is not None:
        search = replace(search, space={"algorithm": list(names_of(algorithms))})
    if accept is not None:
        search = replace(search, accept=names_of(accept))
    return replace(job, tune=search)


def _tune(job: Job, out: Path, *, as_json: bool) -> int:
    """Search, train the best, write the folder and show what came out; returns the exit code."""
    from dataclasses import replace

    from colonnade.cli.folder import BEST, claimed, store_run
    from colonnade.run.tune import Tuning, best_job, with_search
    from colonnade.search import FILE

    with claimed(out, also=(JOURNAL, f"{JOURNAL}.lock", FILE, BEST)) as folder:
        say = _quiet if as_json else _line
        tuning = Tuning.of(job, folder / JOURNAL, lambda trial, best, of: say(_heard(trial, best, of)))
        _announce(tuning, say)
        search = tuning.run()
        if search.best is not None:
            _keep(folder, job, search)
        if search.stopped == "user":
            return _stopped(folder, search, as_json=as_json)
        done = _train(best_job(job, search), folder, as_json=as_json)
        done = replace(done, result=with_search(done.result, search))
        files = [*store_run(folder, done, plot=False), *_keep(folder, job, search)]
    _show(done, search, files, as_json=as_json)
    return 0


def _announce(tuning: Tuning, say: Callable[[str], None]) -> None:
    """Say before anything runs how much will be told to the parties."""
    over, folds = len(tuning.search().trials), len(tuning.rows.folds)
    if over:
        say(f"going on after {over} trials of before")
    for name, why in tuning.space.left_out.items():
        say(f"{name} is left out: {why}")
    say(
        f"up to {tuning.planned} settings, {folds} trainings each: every one is a whole training among the "
        "parties, and tells them as much as any other"
    )


def _train(job: Job, folder: Path, *, as_json: bool) -> Finished:
    from colonnade.cli.progress import progress
    from colonnade.run.federate import federate

    with progress(job.train.epochs, quiet=as_json) as reporter:
        return federate(job, progress=reporter, out=folder, tell=reporter.tell)


def _keep(folder: Path, job: Job, search: Search) -> list[Path]:
    """Write all trials, and the job with the best settings."""
    from colonnade.cli.folder import BEST
    from colonnade.job.writing import as_toml
    from colonnade.run.resolve import compose
    from colonnade.run.tune import best_job
    from colonnade.search import FILE

    search.write(folder / FILE)
    best = compose(best_job(job, search)).job  # as it is trained: with what the job did not say
    (folder / BEST).write_text(WRITTEN + as_toml(best), encoding="utf-8")
    return [folder / FILE, folder / BEST]


def _stopped(folder: Path, search: Search, *, as_json: bool) -> int:
    """Say what a search that the user stopped has found."""
    from colonnade.cli import INTERRUPTED
    from colonnade.cli.folder import BEST

    if as_json:
        click.echo(search.json().decode())
        return INTERRUPTED
    best = search.best
    found = "no setting was measured" if best is None else f"the best so far is in {folder / BEST}"
    _line(f"stopped; {found}; the same command goes on from here")
    return INTERRUPTED


def _heard(trial: Trial, best: Trial | None, of: int) -> str:
    """Return a line about a trial that is over."""
    from colonnade.run.search_space import settings_text

    said = {"done": "" if trial.value is None else f"{trial.value:.6g}", "failed": f"failed: {trial.why}"}
    found = said.get(trial.state, "worse than most, left")
    star = "  (best so far)" if best is not None and best.number == trial.number else ""
    return f"{trial.number + 1}/{of}  {settings_text(trial.settings)}: {found}{star}"


def _show(done: Finished, search: Search, files: list[Path], *, as_json: bool) -> None:
    """Print the best settings and the result of the model."""
    import msgspec

    if as_json:
        print_json({"search": msgspec.Raw(search.json()), "result": done.result})
        return
    from colonnade.cli.show import console, show_result, table
    from colonnade.run.search_space import settings_text
    from colonnade.search import HIGHER

    def opened(trial: Trial) -> tuple[str, ...]:
        if not search.opens:
            return ()
        name = str(trial.settings.get("algorithm", next(iter(search.opens))))
        return (f"{name}: {', '.join(search.opens[name]) or 'nothing'}",)

    terminal = console()
    sign = -1.0 if search.metric in HIGHER else 1.0
    order = sorted((t for t in search.trials if t.value is not None), key=lambda t: sign * (t.value or 0.0))
    best, untuned = search.best, search.untuned
    shown = order[:SHOWN] if untuned is None or untuned in order[:SHOWN] else [*order[: SHOWN - 1], untuned]
    rows = []
    for t in shown:
        named = f"{settings_text(t.settings)}{'  (chosen)' if t is best else ''}"
        rows.append((f"{t.value:.6g}", f"{min(t.folds):.6g} .. {max(t.folds):.6g}", named, *opened(t)))
    opens = ["would open between companies"] if search.opens else []
    head = [f"{search.metric}, held back", "folds", "settings", *opens]
    terminal.print(table(head, rows, right=(0,), title=f"the best of {len(search.trials)} settings"))
    if verdict := search.verdict():
        terminal.print(verdict, soft_wrap=True)
    terminal.print()
    show_result(terminal, done.result)
    terminal.print(f"\nwritten: {', '.join(str(file) for file in files)}", soft_wrap=True)


def _line(text: str) -> None:
    click.echo(text, err=True)


def _quiet(text: str) -> None:
    """Say nothing."""
