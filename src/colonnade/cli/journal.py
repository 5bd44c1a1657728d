"""`colonnade journal`: this party's journal as lines for other programs, and whether it is whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from colonnade.cli.machine import JSON, print_json
from colonnade.cli.party import CONFIG


@click.group()
def journal() -> None:
    """Export and verify this party's journal: decisions, runs, comparisons, scores, what peers signed."""


@journal.command()
@CONFIG
@click.option("--since", default="", help="Only lines of this day or later, as 2026-01-31.")
@click.option(
    "--kind", "kinds", multiple=True, help="Only such lines: decision, ended, scored, statement, ..."
)
@JSON
def export(config: Path, since: str, kinds: tuple[str, ...], as_json: bool) -> None:
    """Print the journal as JSON lines, each with its number and hash, as log collectors take them.

    With --json it is one list instead.

    \b
    Example:
      colonnade journal export --config party.toml --since 2026-01-01 > journal.jsonl
    """
    from colonnade.deploy.books.audit import exported
    from colonnade.deploy.settings import read_settings

    settings = read_settings(config)
    lines = (
        line
        for line in exported(settings.name, settings.state / "journal.jsonl")
        if line["when"] >= since and (not kinds or line["type"] in kinds)
    )
    if as_json:
        print_json(list(lines))
        return
    for line in lines:
        click.echo(json.dumps(line))


@journal.command()
@CONFIG
@click.option(
    "--witness",
    "witnesses",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="What a peer exported of its own journal: the heads of this one that it has seen must be in it.",
)
@JSON
def verify(config: Path, witnesses: tuple[Path, ...], as_json: bool) -> None:
    """Check that no line was changed, dropped or added, and every signature of a peer in it.

    \b
    Example:
      colonnade journal verify --config party.toml --witness journal-of-shop.jsonl
    """
    from colonnade.deploy.books.audit import verified
    from colonnade.deploy.settings import read_settings

    settings = read_settings(config)
    lines: list[dict[str, Any]] = []
    for path in witnesses:
        lines += _lines(path)
    found = verified(settings.name, settings.state / "journal.jsonl", lines)
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    click.echo(f"{found['records']:,} records follow from each other; the last is {found['head']}")
    for peer, count in found["signed"].items():
        click.echo(f"{count:,} statements of {peer} are signed as they say")
    if witnesses:
        click.echo(f"{found['witnessed']:,} heads that peers have seen are in it")
    for odd in found["odd"]:
        click.echo(f"note: {odd}")


def _lines(path: Path) -> list[dict[str, Any]]:
    """Return the lines of an exported journal."""
    from colonnade.errors import DataError

    try:
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (ValueError, OSError) as error:
        raise DataError(f"{path}: is not an exported journal: {error}") from error
