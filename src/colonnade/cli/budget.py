"""`colonnade budget`: how much of the privacy budget of this party's labels is spent, and what is left."""

from __future__ import annotations

import json
from pathlib import Path

import click

from colonnade.cli.machine import JSON
from colonnade.cli.party import CONFIG
from colonnade.cli.show import console, table


@click.command()
@CONFIG
@JSON
def budget(config: Path, as_json: bool) -> None:
    """Show the privacy budget of this party's labels: spent, reserved by runs, left.

    The budget is policy.epsilon (and policy.delta) in the party's settings; runs add up.

    \b
    Example:
      colonnade budget --config party.toml
    """
    import msgspec

    from colonnade.deploy.daemon.views import BUDGET, budget_row, budgets
    from colonnade.deploy.settings import read_settings

    settings = read_settings(config)
    found = budgets(settings)
    if as_json:
        click.echo(json.dumps(msgspec.to_builtins(found), indent=2))
        return
    if not found:
        click.echo("no entry of the catalogue has a label, so there is nothing to account for")
        return
    rows = [budget_row(each) for each in found]
    console().print(table(list(BUDGET), rows, right=(1, 2, 3, 4, 5)))
