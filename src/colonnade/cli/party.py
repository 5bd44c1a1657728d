"""`colonnade party`: run a party's daemon, check its settings, or ask the daemon that runs for its status."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from colonnade.deploy.settings import Settings

CONFIG = click.option(
    "--config",
    "-c",
    type=click.Path(path_type=Path),
    default=Path("party.toml"),
    show_default=True,
    help="The party's settings.",
)


@click.command()
@CONFIG
@click.option(
    "--check", is_flag=True, help="Only read the settings, certificates and data, and say what is offered."
)
@click.option(
    "--status", "ask_status", is_flag=True, help="Ask the daemon that runs: peers, runs, latest events."
)
@click.option("--json", "as_json", is_flag=True, help="With --status: print JSON only.")
def party(config: Path, check: bool, ask_status: bool, as_json: bool) -> None:
    """Run this party's daemon: keep lines with its peers and take part in what its policy allows.

    It ends on Ctrl-C or SIGTERM; runs that go on then end at all parties, with the reason.

    \b
    Example:
      colonnade party --config party.toml
    """
    from colonnade.deploy.settings import read_settings

    settings = read_settings(config)
    if check:
        _check(settings)
    elif ask_status:
        _status(settings, as_json)
    else:
        from colonnade.deploy.main import run_daemon

        run_daemon(settings)


def _check(settings: Settings) -> None:
    """Print what the party offers; raises if certificates or data cannot be used."""
    from colonnade.deploy.check import survey

    settings.credentials()
    for line in survey(settings):
        click.echo(line)


def _status(settings: Settings, as_json: bool) -> None:
    """Print peers, runs and latest events of the daemon that runs."""
    import json

    from colonnade.cli.daemon import ask
    from colonnade.deploy.control import StatusRequest

    found = ask(settings, StatusRequest())
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    click.echo(f"{found['party']} runs Colonnade {found['version']}")
    for peer, line in found["peers"].items():
        state = f"connected, Colonnade {line['version']}" if line["up"] else "away"
        click.echo(f"  {peer}: {state}{': ' + line['reason'] if line['reason'] else ''}")
    for run, state in found["runs"].items():
        click.echo(f"  run {run}: {state}")
    for text in found["latest"]:
        click.echo(f"  {text}")
