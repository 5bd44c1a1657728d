"""`colonnade models`: list, show and export this party's shares of models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import click

from colonnade.cli.party import CONFIG
from colonnade.cli.show import console, table


@click.group()
def models() -> None:
    """List, show and export this party's shares of models."""


@models.command("list")
@CONFIG
@click.option("--json", "as_json", is_flag=True, help="Print JSON only.")
def list_(config: Path, as_json: bool) -> None:
    """List the shares that are stored here, the oldest first.

    \b
    Example:
      colonnade models list --config party.toml
    """
    from colonnade.deploy.settings import read_settings
    from colonnade.deploy.shares import listing

    found = listing(read_settings(config).state / "models")
    if as_json:
        rows = [{"model": m.model, "algorithm": m.terms.algorithm, "created": m.created} for m in found]
        click.echo(json.dumps(rows, indent=2))
        return
    if not found:
        click.echo("no models yet; `colonnade train JOB.toml` makes one")
        return
    lines = [
        (m.model, m.terms.algorithm, ", ".join(sorted(m.terms.parties)), f"{m.rows['train']:,}", m.created)
        for m in found
    ]
    console().print(table(["model", "algorithm", "parties", "rows", "created"], lines, right=(3,)))


@models.command()
@click.argument("model")
@CONFIG
def show(model: str, config: Path) -> None:
    """Show the manifest of MODEL (a name means the newest) after checking its files.

    \b
    Example:
      colonnade models show credit --config party.toml
    """
    import msgspec

    from colonnade.deploy.settings import read_settings
    from colonnade.deploy.shares import load

    share = load(read_settings(config).state / "models", model)
    click.echo(msgspec.json.format(msgspec.json.encode(share.manifest), indent=2).decode())


@models.command()
@click.argument("model")
@click.argument("out", metavar="OUT", type=click.Path(path_type=Path))
@CONFIG
@click.option(
    "--part",
    type=click.Choice(["own", "server"]),
    help="Of a .safetensors file: this party's own model, or the server's on top. [default: own]",
)
def export(model: str, out: Path, config: Path, part: Literal["own", "server"] | None) -> None:
    """Write this party's share of MODEL to OUT: .json, .npz, or .safetensors of a network.

    It is one share: without the other parties' it scores nothing.

    \b
    Example:
      colonnade models export credit credit.json
    """
    from colonnade.deploy.export import write
    from colonnade.deploy.settings import read_settings
    from colonnade.deploy.shares import load

    share = load(read_settings(config).state / "models", model)
    click.echo(f"{out}: {write(share, out, part)}")
