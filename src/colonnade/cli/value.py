"""`colonnade value`: what every party's columns are worth to a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from colonnade.cli.machine import JSON, note, print_json
from colonnade.cli.party import CONFIG

if TYPE_CHECKING:
    from colonnade.describe.prospects import Prospects
    from colonnade.result import Worth


@click.command()
@click.argument("target", metavar="JOB.toml|DIR", type=click.Path(path_type=Path))
@click.option(
    "--before", is_flag=True, help="Train nothing: print a bound, from columns' weight of evidence."
)
@click.option(
    "--out", "-o", type=click.Path(path_type=Path), help="Where results go. [default: runs/JOB-value]"
)
@CONFIG
@JSON
def value(target: Path, before: bool, out: Path | None, config: Path, as_json: bool) -> None:
    """Measure what each party adds: Shapley values of accuracy, AUC and loss on the test rows.

    The job is trained for every coalition of its parties (with more than eight, for a sample of coalitions),
    in its own world, and blind if it is blind. DIR is the folder of a run, whose job is used. All parties
    learn the values, rounded to their intervals. Results are written as a run's are.

    A job with [parties] is proposed to the daemons of other companies, whose policies must accept 'values'.
    Every training counts in their books. With --before they weigh their columns and train nothing.

    \b
    Example:
      colonnade value job.toml
      colonnade value job.toml --before
      colonnade value credit.toml --config party.toml
    """
    from msgspec.structs import replace

    from colonnade.cli.folder import JOB
    from colonnade.errors import JobError
    from colonnade.job import read_job, read_toml

    path = target / JOB if target.is_dir() else target
    if "parties" in read_toml(path, "there is no such job file"):
        if before:
            _before_between(path, config, as_json=as_json)
            return
        _between_daemons(path, config, as_json=as_json)
        return
    job = read_job(path, note)
    if before:
        _before(path, as_json=as_json)
        return
    from colonnade.cli.run import run_to

    usual = target if target.is_dir() else Path("runs") / path.stem
    done, files = run_to(
        replace(job, value=True), out or usual.with_name(f"{usual.name}-value"), quiet=as_json
    )
    if done.result.worth is None:
        raise JobError("value: the run has no worth of parties")
    if as_json:
        print_json(done.result.worth)
        return
    _show(done.result.worth)
    click.echo(f"\nwritten: {', '.join(map(str, files))}")


def _between_daemons(path: Path, config: Path, *, as_json: bool) -> None:
    """Propose a job whose coalitions are trained, and show what this party is told."""
    from msgspec.structs import replace

    from colonnade.cli.daemon import ask_to_train
    from colonnade.cli.train import followed
    from colonnade.deploy.daemon.commands import TrainRequest
    from colonnade.deploy.programs.training import read_cost
    from colonnade.deploy.settings import read_settings
    from colonnade.deploy.terms.contract import check_terms, read_terms
    from colonnade.errors import ShareError

    terms = replace(read_terms(path, note), value=True)
    check_terms(terms, str(path))
    settings = read_settings(config)
    with followed(quiet=as_json) as tell:
        found = ask_to_train(settings, TrainRequest(terms), tell)
    worth = read_cost(settings.state, found["model"]).train.worth
    if worth is None:
        raise ShareError(f"{found['model']}: its books do not say what parties are worth")
    if as_json:
        print_json(worth)
        return
    _show(worth)


def _show(worth: Worth) -> None:
    """Print what every party is worth."""
    from colonnade.cli.show import console, table
    from colonnade.report.summary import worth_line, worth_table

    head, rows = worth_table(worth)
    out = console()
    out.print(table(head, rows, right=range(1, len(head))))
    out.print(f"\n{worth_line(worth)}", soft_wrap=True)


def _before(path: Path, *, as_json: bool) -> None:
    """Print what the weight of evidence of every party's columns says before anything is trained."""
    from colonnade.describe.prospects import Prospect, Prospects
    from colonnade.job import read_job
    from colonnade.run.federate import weigh_columns_of

    weighed = weigh_columns_of(read_job(path, untold_twice))
    parties = [
        Prospect.of_columns(party, {each.bins.column: each.iv for each in done.columns})
        for party, done in weighed.items()
    ]
    _show_prospects(Prospects.among(path.stem, parties), as_json=as_json)


def _before_between(path: Path, config: Path, *, as_json: bool) -> None:
    """Propose that all parties weigh their columns, and print what these may be worth."""
    from colonnade.cli.daemon import ask_to_train
    from colonnade.cli.train import followed
    from colonnade.deploy.daemon.commands import TrainRequest
    from colonnade.deploy.programs.prospecting import before_training, stored_prospects
    from colonnade.deploy.settings import read_settings
    from colonnade.deploy.terms.contract import check_terms, read_terms

    terms = before_training(read_terms(path, note))
    check_terms(terms, str(path))
    settings = read_settings(config)
    with followed(quiet=as_json) as tell:
        found = ask_to_train(settings, TrainRequest(terms), tell)
    _show_prospects(stored_prospects(settings, found["model"]), as_json=as_json)


def _show_prospects(found: Prospects, *, as_json: bool) -> None:
    from colonnade.cli.show import console, table

    if as_json:
        print_json(found.parties)
        return
    head = ["party", "columns", "IV", "AUC at most", "best column", "its IV", "its AUC at most"]
    rows = [
        (
            each.party,
            str(each.columns),
            f"{each.iv:.4f}",
            f"{each.auc_at_most:.4f}",
            each.best,
            f"{each.best_iv:.4f}",
            f"{each.best_auc_at_most:.4f}",
        )
        for each in found.parties
    ]
    out = console()
    out.print(table(head, rows, right=(1, 2, 3, 5, 6)))
    how = f" Counts had noise, and IV is told in steps of {found.step:g}, rounded up." if found.step else ""
    out.print(
        "\nIf a party's columns are independent within each class, no score made of their bins has a higher "
        f"AUC on these rows. Columns that interact can do more. Nothing was trained.{how}",
        soft_wrap=True,
    )


def untold_twice(text: str) -> None:
    """Drop a note on the job: it was told when the job was read first."""
