"""`colonnade report`: write one page about finished runs, or about a model that this party has a share of."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from colonnade.cli.machine import JSON, print_json

if TYPE_CHECKING:
    from colonnade.report.facts import ReportFacts


@click.command()
@click.argument("runs", metavar="DIR...", nargs=-1, required=True)
@click.option(
    "--out", "-o", type=click.Path(path_type=Path), help="HTML or SVG. [default: report.html in DIR]"
)
@click.option(
    "--party",
    "settings",
    type=click.Path(path_type=Path),
    help="The settings of this party's daemon; then models are named instead of folders.",
)
@JSON
def report(runs: tuple[str, ...], out: Path | None, settings: Path | None, as_json: bool) -> None:
    """Write one page about the run in DIR, or about several side by side.

    The page needs nothing else: figures are inside it, and it loads nothing. With --party it is about models
    that were trained between daemons, as this party may see them.

    \b
    Example:
      colonnade report runs/first runs/second --out both.html
      colonnade report --party party.toml credit --out credit.html
    """
    from colonnade.cli.folder import REPORT, check_file
    from colonnade.errors import DataError
    from colonnade.report.facts import read_run
    from colonnade.report.page import write_report

    if len(runs) > 1 and out is None:
        raise DataError("several runs: say with --out where their page goes")
    path = out or (Path(runs[0]) / REPORT if settings is None else Path(f"{runs[0]}.html"))
    found = {run: read_run(Path(run)) if settings is None else _of_party(settings, run) for run in runs}
    check_file(path)
    written = write_report(found if len(found) > 1 else found[runs[0]], path)
    if as_json:
        print_json({"written": str(written)})
    else:
        click.echo(f"written: {written}")


def _of_party(settings: Path, model: str) -> ReportFacts:
    """Return what this party has to report of a model."""
    from colonnade.deploy.daemon.report_facts import party_facts
    from colonnade.deploy.settings import read_settings

    return party_facts(read_settings(settings), model)
