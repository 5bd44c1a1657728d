"""`colonnade party`: run a party's daemon, check its settings, or ask the daemon that runs for its status."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from colonnade.cli.machine import print_json

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
    "--check", is_flag=True, help="Only check the settings, certificates and data, and list what is offered."
)
@click.option(
    "--status",
    "ask_status",
    is_flag=True,
    help="Show the peers, runs and latest events of the running daemon.",
)
@click.option("--stop", "stop_run", metavar="RUN", help="End a run that is under way, at all its parties.")
@click.option("--make-tokens", is_flag=True, help="Write the token files that the settings name.")
@click.option(
    "--reload",
    "read_again",
    is_flag=True,
    help="Make the running daemon read its settings and certificates again.",
)
@click.option("--login", is_flag=True, help="Print a link, valid once, to the page of the running daemon.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON only (but for the daemon).")
@click.pass_context
def party(
    ctx: click.Context,
    config: Path,
    check: bool,
    ask_status: bool,
    stop_run: str | None,
    make_tokens: bool,
    read_again: bool,
    login: bool,
    as_json: bool,
) -> None:
    """Run this party's daemon: connect to its peers, and take part in what its policy allows.

    It ends on Ctrl-C or SIGTERM. Runs that are under way then end at all parties, with the reason. On SIGHUP
    it reads settings and certificates again, like --reload, and runs continue.

    \b
    Example:
      colonnade party --config party.toml
    """
    from colonnade.deploy.settings import read_settings

    settings = read_settings(config)
    if check:
        ctx.exit(_check(settings, as_json))
    elif ask_status:
        _status(settings, as_json)
    elif stop_run is not None:
        _stop(settings, stop_run, as_json)
    elif make_tokens:
        _make_tokens(settings, as_json)
    elif read_again:
        _reload(settings, as_json)
    elif login:
        _login(settings, as_json)
    else:
        from colonnade.deploy.main import run_daemon

        run_daemon(settings, config)


def _check(settings: Settings, as_json: bool) -> int:
    """Print what the party offers and all that is wrong; the exit code is 2 if anything is."""
    import msgspec

    from colonnade.deploy.daemon.check import survey

    found = survey(settings)
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
    else:
        for line in found.offers:
            click.echo(line)
        for problem in found.problems:
            click.echo(f"colonnade: {' '.join(problem.split())}", err=True)
    return 2 if found.problems else 0


def _make_tokens(settings: Settings, as_json: bool) -> None:
    """Write the tokens that the settings name and that are not there yet."""
    from colonnade.deploy.tokens import make_token
    from colonnade.errors import JobError

    served = settings.serve.token_file if settings.serve is not None else None
    named = [settings.monitor_token_file, served, *(each.token_file for each in settings.people.values())]
    files = [name for name in named if name is not None]
    if not files:
        raise JobError("the settings name no token; see monitor_token_file, serve.token_file and people")
    made = {str(path): make_token(path) for path in map(settings.path, files)}
    if as_json:
        print_json([{"file": path, "written": new} for path, new in made.items()])
        return
    for path, new in made.items():
        click.echo(f"{path}: {'written' if new else 'exists and stays as it is'}")


def _login(settings: Settings, as_json: bool) -> None:
    """Print a link to the page of the daemon that runs."""
    import json

    from colonnade.cli.daemon import ask
    from colonnade.deploy.daemon.commands import LoginRequest

    link = ask(settings, LoginRequest())
    click.echo(json.dumps({"link": link}) if as_json else link)


def _reload(settings: Settings, as_json: bool) -> None:
    """Let the daemon that runs read its settings again, and print what has changed."""
    import json

    from colonnade.cli.daemon import ask
    from colonnade.deploy.daemon.commands import ReloadRequest

    said = ask(settings, ReloadRequest())
    click.echo(json.dumps({"reloaded": said}) if as_json else said)


def _stop(settings: Settings, run: str, as_json: bool) -> None:
    """End a run of the daemon that runs."""
    from colonnade.cli.daemon import ask
    from colonnade.deploy.daemon.commands import StopRequest

    decision = ask(settings, StopRequest(run))
    if as_json:
        print_json(decision)
    else:
        click.echo(f"run {decision['run']} of {decision['proposer']} is stopped: {decision['about']}")


def _status(settings: Settings, as_json: bool) -> None:
    """Print peers, runs and latest events of the daemon that runs."""
    import json

    from colonnade.cli.daemon import ask
    from colonnade.deploy.daemon.commands import StatusRequest

    found = ask(settings, StatusRequest())
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    click.echo(f"{found['party']} runs Colonnade {found['version']}")
    for peer, line in found["peers"].items():
        state = f"connected, Colonnade {line['version']}" if line["up"] else "away"
        click.echo(f"  {peer}: {state}{': ' + line['reason'] if line['reason'] else ''}")
    for name, end in found["certificates"].items():
        click.echo(f"  the certificate of {name} holds until {end}")
    for number in found["waiting"]:
        click.echo(f"  proposal {number} waits for approval; `colonnade proposals list` shows it")
    for run, state in found["runs"].items():
        click.echo(f"  run {run}: {state}")
    for text in found["latest"]:
        click.echo(f"  {text}")
    click.echo(f"  the journal ends with {found['journal']}")
