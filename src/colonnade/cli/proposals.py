"""`colonnade proposals`: what peers propose and this party's operator decides."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from colonnade.cli.machine import JSON
from colonnade.cli.party import CONFIG

WHAT_FOR = {"purpose": "for", "contract": "under", "contact": "ask", "expires": "until"}


@click.group()
def proposals() -> None:
    """List, show, approve and refuse the proposals that wait here (policy approval = "ask")."""


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


@proposals.command()
@click.argument("number")
@click.option("--whole", is_flag=True, help="Also every key of the job, and what every party hears.")
@CONFIG
@JSON
def show(number: str, whole: bool, config: Path, as_json: bool) -> None:
    """Show the proposal NUMBER: what it is for, what it would give away, and the job.

    \b
    Example:
      colonnade proposals show 5a1c20b0
    """
    from colonnade.cli.daemon import ask
    from colonnade.deploy.daemon.commands import ProposalsRequest
    from colonnade.deploy.settings import read_settings
    from colonnade.errors import JobError

    waiting = ask(read_settings(config), ProposalsRequest())
    found = next((each for each in waiting if each["run"] == number), None)
    if found is None:
        raise JobError(f"no proposal {number} waits here; `colonnade proposals list` has those that do")
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    _show(found)
    for line in found["heard"] if whole else ():
        click.echo(f"  {line}")
    click.echo()
    click.echo(found["terms"] if whole else found["job_file"])


def _show(each: dict[str, Any]) -> None:
    """Print one proposal, without its job."""
    click.echo(f"proposal {each['run']}: {each['job']} ({each['algorithm']}) of {each['proposer']}")
    for key, name in WHAT_FOR.items():
        if each[key]:
            click.echo(f"  {name} {each[key]}")
    if each["runs_of_a_job"] is not None:
        click.echo(f"  was run {each['runs_before']} times, and counts for {each['runs_of_a_job']} in all")
    if each["needs"] > 1:
        click.echo(f"  approved by {', '.join(each['people']) or 'nobody'}; {each['needs']} people have to")
    click.echo(f"  refused after {each['until']}; digest {each['digest']}")
    if each["cost"]:
        click.echo(f"  cost: {each['cost']}")
    for sentence in (*each["reads"], *each["notes"], *each["gives_away"]):
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


@proposals.command()
@click.argument("number")
@CONFIG
@JSON
def revoke(number: str, config: Path, as_json: bool) -> None:
    """Take back the decision about NUMBER, for later runs of the job or later scores of the model.

    A run that is under way does not end; `colonnade party --stop` ends it.

    \b
    Example:
      colonnade proposals revoke 5a1c20b0
    """
    from colonnade.cli.daemon import ask
    from colonnade.deploy.daemon.commands import RevokeRequest
    from colonnade.deploy.settings import read_settings

    show_decision(ask(read_settings(config), RevokeRequest(number)), as_json)


def _decide(number: str, config: Path, as_json: bool, *, approve: bool, reason: str = "") -> None:
    """Tell the daemon what its operator decides, and print what it wrote down."""
    from colonnade.cli.daemon import ask
    from colonnade.deploy.daemon.commands import DecideRequest
    from colonnade.deploy.settings import read_settings

    show_decision(ask(read_settings(config), DecideRequest(number, approve, reason)), as_json)


def show_decision(found: dict[str, Any], as_json: bool) -> None:
    """Print a decision as the daemon wrote it down."""
    if as_json:
        click.echo(json.dumps(found, indent=2))
    else:
        click.echo(f"{found['what']}: {found['about']} (by {found['who']}, digest {found['digest'][:16]})")
        for word in (
            found.get("reason"),
            found.get("more") and f"{found['more']} more people have to approve",
        ):
            if word:
                click.echo(f"  {word}")
