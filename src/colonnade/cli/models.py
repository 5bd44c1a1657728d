"""`colonnade models`: list, show and export this party's shares of models, and say which is in use."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import click

from colonnade.cli.machine import JSON, print_json
from colonnade.cli.party import CONFIG
from colonnade.cli.proposals import show_decision
from colonnade.cli.show import console, table
from colonnade.cli.train import BY, IF_BETTER, gate_of

UNASKED = click.option(
    "--without-peers", is_flag=True, help="Do not ask the peers whether they have their shares."
)


@click.group()
def models() -> None:
    """List, show and export this party's shares of models; promote one, or roll back."""


@models.command("list")
@CONFIG
@JSON
def list_(config: Path, as_json: bool) -> None:
    """List the shares that are stored here, the oldest first.

    \b
    Example:
      colonnade models list --config party.toml
    """
    import msgspec

    from colonnade.deploy.daemon.views import stored_models
    from colonnade.deploy.settings import read_settings

    found = stored_models(read_settings(config))[::-1]
    if as_json:
        click.echo(json.dumps(msgspec.to_builtins(found), indent=2))
        return
    if not found:
        click.echo("no models yet; `colonnade train JOB.toml` makes one")
        return
    lines = [
        (
            m.model,
            m.algorithm,
            ", ".join(m.parties),
            f"{m.rows:,}",
            m.created,
            "serves" if m.serves else "in use" if m.in_use else "",
        )
        for m in found
    ]
    console().print(table(["model", "algorithm", "parties", "rows", "created", ""], lines, right=(3,)))


@models.command()
@click.argument("model", metavar="NAME-RUN")
@CONFIG
@UNASKED
@IF_BETTER
@BY
@JSON
def promote(
    model: str, config: Path, without_peers: bool, if_better: str | None, by: float, as_json: bool
) -> None:
    """Put NAME-RUN to use: its name stands for it from now on, in the service and in `predict`.

    The daemon checks that this party's share can be read and asks every peer whether it has its own of the
    same run. The service changes over without a restart. With --if-better the model in use stays where it is
    as good, which is no error and written down as `kept`.

    \b
    Example:
      colonnade models promote credit-5a1c20b0 --if-better auc
    """
    from colonnade.cli.daemon import ask
    from colonnade.deploy.daemon.commands import PromoteRequest
    from colonnade.deploy.settings import read_settings

    gate = gate_of(if_better, by)
    show_decision(ask(read_settings(config), PromoteRequest(model, not without_peers, gate)), as_json)


@models.command()
@click.argument("model", metavar="NAME-RUN")
@CONFIG
@click.option("--reason", default="", help="Why; it stands in the journal.")
@JSON
def delete(model: str, config: Path, reason: str, as_json: bool) -> None:
    """Remove this party's share of NAME-RUN for good, with its books, sheet and scores of test rows.

    Without it no party can score with the model any more. One that is in use is not deleted.

    \b
    Example:
      colonnade models delete credit-5a1c20b0 --reason "the contract has ended"
    """
    from colonnade.cli.daemon import ask
    from colonnade.deploy.daemon.commands import DeleteRequest
    from colonnade.deploy.settings import read_settings

    show_decision(ask(read_settings(config), DeleteRequest(model, reason)), as_json)


@models.command()
@click.argument("name", required=False)
@CONFIG
@UNASKED
@JSON
def rollback(name: str | None, config: Path, without_peers: bool, as_json: bool) -> None:
    """Go back to the model that was in use for NAME before the last promotion.

    \b
    Example:
      colonnade models rollback credit
    """
    from colonnade.cli.daemon import ask
    from colonnade.deploy.daemon.commands import RollbackRequest
    from colonnade.deploy.settings import read_settings

    show_decision(ask(read_settings(config), RollbackRequest(name, not without_peers)), as_json)


@models.command()
@click.argument("model")
@CONFIG
@JSON
def show(model: str, config: Path, as_json: bool) -> None:
    """Show the manifest of MODEL as JSON (a name means the one in use) after checking its files.

    It is JSON with and without --json.

    \b
    Example:
      colonnade models show credit --config party.toml
    """
    from colonnade.deploy.models.serving import Serving
    from colonnade.deploy.settings import read_settings

    print_json(Serving(read_settings(config).state).load(model).manifest)


@models.command()
@click.argument("model")
@click.argument("out", metavar="OUT", type=click.Path(path_type=Path))
@CONFIG
@click.option(
    "--part",
    type=click.Choice(["own", "server"]),
    help="Of a .safetensors file: this party's own model, or the server's on top. [default: own]",
)
@JSON
def export(model: str, out: Path, config: Path, part: Literal["own", "server"] | None, as_json: bool) -> None:
    """Write this party's share of MODEL to OUT: .json, .npz, or .safetensors of a network.

    It is one share: without the other parties' it scores nothing.

    \b
    Example:
      colonnade models export credit credit.json
    """
    from colonnade.cli.folder import check_file
    from colonnade.deploy.models.export import write
    from colonnade.deploy.models.serving import Serving
    from colonnade.deploy.settings import read_settings

    check_file(out)
    share = Serving(read_settings(config).state).load(model)
    said = write(share, out, part)
    if as_json:
        click.echo(json.dumps({"model": share.manifest.model, "file": str(out), "what": said}))
    else:
        click.echo(f"{out}: {said}")
