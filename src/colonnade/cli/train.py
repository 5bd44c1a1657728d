"""`colonnade train`: propose a job to the other parties and follow it to its end."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from colonnade.cli.machine import note
from colonnade.cli.party import CONFIG

if TYPE_CHECKING:
    from colonnade.deploy.models.gate import Gate
    from colonnade.deploy.programs.training import Trained
    from colonnade.deploy.session.session import Event
    from colonnade.deploy.settings import Settings
    from colonnade.deploy.terms.terms import Terms

IF_BETTER = click.option(
    "--if-better",
    metavar="METRIC",
    help="Promote the model if this metric on its test rows is better, e.g. auc.",
)
BY = click.option(
    "--by", type=click.FloatRange(min=0), default=0.0, show_default=True, help="Better by more than this."
)


@click.command()
@click.argument("job_file", metavar="JOB.toml", type=click.Path(path_type=Path))
@CONFIG
@click.option(
    "--digest", is_flag=True, help="Only print the job's digest, for policy.approved at the others."
)
@click.option(
    "--estimate", is_flag=True, help="Only print what it would cost: rounds, bytes, minutes. Nobody is asked."
)
@click.option("--timeline", is_flag=True, help="Also record when this party computed, sent and waited.")
@click.option(
    "--detach", is_flag=True, help="Return once all parties are asked; follow it with `colonnade runs`."
)
@click.option("--alone", is_flag=True, help="Refuse if this job is already under way: exit code 4.")
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=click.FloatRange(min=0, min_open=True),
    help="Give up after this time, at all parties: exit code 4.",
)
@IF_BETTER
@BY
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON, and nothing else.")
def train(
    job_file: Path,
    config: Path,
    digest: bool,
    estimate: bool,
    timeline: bool,
    detach: bool,
    alone: bool,
    timeout: float | None,
    if_better: str | None,
    by: float,
    as_json: bool,
) -> None:
    """Propose JOB.toml to its parties and train, if all of them accept.

    This party's daemon must run. Ctrl-C ends the run at all parties. If a daemon dies the run goes on
    once it is back, and so does this command. With --detach nothing waits here: an approval may take days.
    With --if-better the model takes the place of the one in use, if its metric on test rows is better.

    \b
    Example:
      colonnade train credit.toml --config party.toml
    """
    from colonnade.deploy.terms.contract import check_terms, read_terms
    from colonnade.deploy.terms.paced import paces_itself

    terms = read_terms(job_file, note)
    if digest:
        if paces_itself(check_terms(terms, "job")):
            note("over a slow line its daemon chooses train.batch and train.ahead; say both for this digest")
        click.echo(json.dumps({"digest": terms.digest()}) if as_json else terms.digest())
        return
    from colonnade.cli.daemon import ask_to_train
    from colonnade.deploy.daemon.commands import TrainRequest
    from colonnade.deploy.settings import read_settings

    settings = read_settings(config)
    if estimate:
        _estimate(settings, terms, as_json=as_json)
        return
    gate = gate_of(if_better, by)
    request = TrainRequest(terms, timeline, detach=detach, alone=alone, timeout=timeout, gate=gate)
    if detach:
        from colonnade.cli.runs import begin

        begin(settings, request, as_json=as_json)
        return
    if not as_json:
        click.echo(f"{terms.name} ({terms.algorithm}) with {', '.join(sorted(terms.parties))}", err=True)
    with followed(quiet=as_json) as tell:
        found = ask_to_train(settings, request, tell)
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    show_trained(found)


def _estimate(settings: Settings, terms: Terms, *, as_json: bool) -> None:
    """Print what a job would cost."""
    import msgspec

    from colonnade.cli.daemon import ask
    from colonnade.deploy.daemon.commands import EstimateCommand
    from colonnade.deploy.process.estimating import Estimate

    found = ask(settings, EstimateCommand(terms))
    click.echo(json.dumps(found, indent=2) if as_json else msgspec.convert(found, Estimate).line())


def gate_of(metric: str | None, by: float) -> Gate | None:
    """Return the gate that options ask for, if they do."""
    from colonnade.deploy.models.gate import Gate

    return None if metric is None else Gate(metric, by)


def show_trained(found: Trained) -> None:
    """Print what came of a training."""
    rows = found["rows"]
    click.echo(f"model {found['model']}: {rows['common']} common rows, {rows['train']} trained on")
    for name, value in found["metrics"].items():
        click.echo(f"  {name.replace('_', ' ')}  {value:.4f}")
    if not found["metrics"]:
        click.echo("  the metrics are known where the label is")
    if found["converged"] is not None:
        ended = "the loss had stopped falling" if found["converged"] else "not converged; raise train.epochs"
        click.echo(f"  {ended}")
    if found["gate"]:
        click.echo(f"  {found['gate']}")


@contextmanager
def followed(*, quiet: bool = False) -> Iterator[Callable[[Event], None]]:
    """The function to call with every event, which shows it on standard error.

    On a terminal that is a status line. Anywhere else it is a line for what is new, and for what goes on one
    every few seconds; `quiet` drops the lines.
    """
    import time

    from rich.console import Console

    from colonnade.cli.progress import EVERY_S
    from colonnade.deploy.runs.run import event_line

    console = Console(stderr=True)
    if console.is_terminal:
        with console.status("") as status:
            yield lambda event: status.update(event_line(event))
        return
    if quiet:
        yield lambda event: None
        return
    what, shown = "", float("-inf")
    waiting: Event | None = None  # the latest one of what goes on, as long as it is not shown

    def flush() -> None:
        if waiting is not None:
            click.echo(event_line(waiting), err=True)

    def line(event: Event) -> None:
        nonlocal what, shown, waiting
        now = time.monotonic()
        if event.what == what and now - shown < EVERY_S:
            waiting = event
            return
        if event.what != what:
            flush()
        click.echo(event_line(event), err=True)
        what, shown, waiting = event.what, now, None

    try:
        yield line
    finally:
        flush()
