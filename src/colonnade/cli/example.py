"""`colonnade example`: two small files to try things on."""

from __future__ import annotations

import shlex
from pathlib import Path

import click


@click.command()
@click.argument("folder", metavar="[DIR]", default=".", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the names of the files as JSON.")
def example(folder: Path, as_json: bool) -> None:
    """Write two example files to DIR: bank.csv and shop.csv, with invented customers.

    They have text, dates and gaps, as real files do. The bank knows who did not repay (`default`);
    `customer` is the id in both files.

    \b
    Example:
      colonnade example
      colonnade new bank.csv shop.csv --label default --id customer
    """
    import json

    from colonnade.example import write_example

    files = write_example(folder)
    if as_json:
        click.echo(json.dumps([str(path) for path in files]))
        return
    click.echo(f"written: {', '.join(map(str, files))}")
    both = " ".join(shlex.quote(str(path)) for path in files)
    click.echo(f"next: colonnade new {both} --label default --id customer")
