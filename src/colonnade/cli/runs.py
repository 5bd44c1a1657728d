"""`colonnade runs`: what goes on at this party's daemon, how it ended, and waiting for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from colonnade.cli.machine import JSON, print_json
from colonnade.cli.party import CONFIG

if TYPE_CHECKING:
    from colonnade.deploy.daemon.commands import TrainRequest
    from colonnade.deploy.settings import Settings


@click.group()
def runs() -> None:
    """List the runs of this party's daemon, show one, and wait for its end."""


@runs.command("list")
@CONFIG
@JSON
def list_(config: Path, as_json: bool) -> None:
    """List the runs that go on, then the latest that ended.

    \b
    Example:
      colonnade runs list --config party.toml
    """
    found = _runs(config)
    if as_json:
        print_json(found)
        return
    if not found:
        click.echo("no run goes on, and none has ended")
    for each in found:
        click.echo(_line(each))


@runs.command()
@click.argument("run")
@CONFIG
@JSON
def show(run: str, config: Path, as_json: bool) -> None:
    """Show how far RUN is or how it ended, with the losses that this party sees.

    \b
    Example:
      colonnade runs show 5a1c20b0
    """
    from colonnade.errors import JobError

    found = next((each for each in _runs(config) if each["run"] == run), None)
    if found is None:
        raise JobError(f"no run {run} is known here; `colonnade runs list` has those that are")
    if as_json:
        print_json(found)
        return
    click.echo(_line(found))
    for line in _cost(found):
        click.echo(f"  {line}")
    for step, loss in found["losses"]:
        click.echo(f"  after {step}: loss {loss:.6f}")


@runs.command()
@click.argument("run")
@click.option("--timeout", metavar="SECONDS", type=click.FloatRange(min=0), help="Give up then, with code 4.")
@CONFIG
@JSON
def wait(run: str, timeout: float | None, config: Path, as_json: bool) -> None:
    """Wait until RUN is over and say what came of it. Ctrl-C ends the waiting, not the run.

    \b
    Example:
      colonnade runs wait 5a1c20b0 --timeout 3600
    """
    from colonnade.cli.daemon import ask
    from colonnade.cli.train import show_trained
    from colonnade.deploy.daemon.commands import WaitRequest
    from colonnade.deploy.settings import read_settings

    found = ask(read_settings(config), WaitRequest(run, timeout))
    if as_json:
        print_json(found)
    else:
        show_trained(found)


def _cost(found: dict[str, Any]) -> Iterator[str]:
    """Yield what a run that is over has cost this party, with bytes by peer and by what they were for."""
    if not found["when"] or not found["sessions"]:
        return
    many = f" in {found['sessions']} sessions" if found["sessions"] > 1 else ""
    epochs = f", {found['epochs']} epochs" if found["epochs"] else ""
    yield f"{found['seconds']:.1f} s{many}{epochs}"
    for way, by_peer in (("sent to", found["sent"]), ("received from", found["received"])):
        for peer, about in sorted(by_peer.items()):
            parts = ", ".join(f"{what} {count:,}" for what, count in about.items())
            yield f"{way} {peer}: {sum(about.values()):,} bytes ({parts})"


def begin(settings: Settings, request: TrainRequest, *, as_json: bool) -> None:
    """Propose a job, and say which run it is once all parties are asked."""
    from colonnade.cli.daemon import ask

    found = ask(settings, request)
    if as_json:
        print_json(found)
    else:
        waits = f"`colonnade runs wait {found['run']}` waits for it"
        click.echo(f"run {found['run']}: {request.terms.name} is proposed; {waits}")


def _runs(config: Path) -> list[dict[str, Any]]:
    from colonnade.cli.daemon import ask
    from colonnade.deploy.daemon.commands import RunsRequest
    from colonnade.deploy.settings import read_settings

    found: list[dict[str, Any]] = ask(read_settings(config), RunsRequest())
    return found


def _line(each: dict[str, Any]) -> str:
    more = f": {each['progress']}" if each["progress"] else ""
    ended = f", {each['when']}" if each["when"] else ""
    return f"run {each['run']}  {each['about']} of {each['proposer']}  {each['state']}{ended}{more}"
