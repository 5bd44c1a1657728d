"""`colonnade budget`: what runs have told peers, and what is left of the privacy budget of labels."""

from __future__ import annotations

import json
from pathlib import Path

import click

from colonnade.cli.machine import JSON
from colonnade.cli.party import CONFIG
from colonnade.cli.show import console, table


@click.command()
@CONFIG
@click.option("--opened", is_flag=True, help="Only what peers have heard; with --json, too.")
@JSON
def budget(config: Path, opened: bool, as_json: bool) -> None:
    """Show what peers have heard over all runs, and the privacy budget of this party's labels.

    What peers have heard are upper bounds by counting, and no proof of harmlessness: numbers that were told
    about labels and columns, times their bits. The budget is policy.epsilon (and policy.delta) in the party's
    settings: spent, reserved by runs, left. Runs add up.

    \b
    Example:
      colonnade budget --config party.toml
    """
    import msgspec

    from colonnade.deploy.books.opened import OpenedBooks
    from colonnade.deploy.daemon.views import BUDGET, OPENED, budget_row, budgets, opened_row
    from colonnade.deploy.settings import read_settings

    settings = read_settings(config)
    books = OpenedBooks(settings.state)
    if opened and as_json:
        known = {"since": books.since, "accounts": msgspec.to_builtins(books.accounts())}
        click.echo(json.dumps(known, indent=2))
        return
    if not as_json:
        heard = books.accounts()
        click.echo(f"what peers have heard in runs since {books.since}, at the most:")
        if heard:
            console().print(table(list(OPENED), map(opened_row, heard), right=(3, 4, 5, 6)))
        else:
            click.echo("nothing")
    if opened:
        return
    found = budgets(settings)
    if as_json:
        click.echo(json.dumps(msgspec.to_builtins(found), indent=2))
        return
    if not found:
        click.echo("no entry of the catalogue has a label, so there is nothing to account for")
        return
    rows = [budget_row(each) for each in found]
    console().print(table(list(BUDGET), rows, right=(1, 2, 3, 4, 5)))
