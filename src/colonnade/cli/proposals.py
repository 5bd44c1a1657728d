"""`colonnade proposals`: what peers propose and this party's operator decides."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from colonnade.cli.machine import JSON
from colonnade.cli.party import CONFIG


@click.group()
def proposals() -> None:
    """List, approve and refuse the proposals that wait here (policy approval = "ask")."""


@proposals.command("list")
@CONFIG
@JSON
def list_(config: Path, as_json: bool) -> None:
    """List the proposals that wait, with what each would give away.

    \b
    Example:
      colonnade proposals list --config party.toml
    """
    from colonnade.cli.daemon import ask
    from colonnade.deploy.daemon.commands import ProposalsRequest
    from colonnade.deploy.settings import read_settings

    found = ask(read_settings(config), ProposalsRequest())
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    if not found:
        click.echo("no proposal waits for approval")
    for each in found:
        _show(each)


def _show(each: dict[str, Any]) -> None:
    """Print one proposal."""
    click.echo(f"proposal {each['run']}: {each['job']} ({each['algorithm']}) of {each['proposer']}")
    click.echo(f"  refused after {each['until']}; digest {each['digest']}")
    click.echo(f"  cost: {each['cost']}")
    for sentence in each["gives_away"]:
        click.echo(f"  {sentence}")
    for leak, words in each["leaks"].items():
        click.echo(f"  gives away '{leak}': {words}")


@proposals.command()
@click.argument("number")
@CONFIG
@JSON
def approve(number: str, config: Path, as_json: bool) -> None:
    """Take part in the proposal NUMBER.

    \b
    Example:
      colonnade proposals approve 5a1c20b0
    """
    _decide(number, config, as_json, approve=True)


@proposals.command()
@click.argument("number")
@CONFIG
@click.option("--reason", default="", help="Why; the proposer reads it.")
@JSON
def refuse(number: str, config: Path, reason: str, as_json: bool) -> None:
    """Refuse the proposal NUMBER.

    \b
    Example:
      colonnade proposals refuse 5a1c20b0 --reason "not before June"
    """
    _decide(number, config, as_json, approve=False, reason=reason)


def _decide(number: str, config: Path, as_json: bool, *, approve: bool, reason: str = "") -> None:
    """Tell the daemon what its operator decides, and print what it wrote down."""
    from colonnade.cli.daemon import ask
    from colonnade.deploy.daemon.commands import DecideRequest
    from colonnade.deploy.settings import read_settings

    show_decision(ask(read_settings(config), DecideRequest(number, approve, reason)), as_json)


def show_decision(found: dict[str, str], as_json: bool) -> None:
    """Print a decision as the daemon wrote it down."""
    if as_json:
        click.echo(json.dumps(found, indent=2))
    else:
        click.echo(f"{found['what']}: {found['about']} (by {found['who']}, digest {found['digest'][:16]})")
