"""What every command has for programs: `--json`, after which standard output is one JSON document.

Notes to people go to standard error.
"""

from __future__ import annotations

import click

JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON only.")


def note(text: str) -> None:
    """Tell people something beside the result."""
    click.echo(f"note: {text}", err=True)


def print_json(found: object) -> None:
    """Print anything that JSON can have, structs and tuples with names as well."""
    import msgspec

    click.echo(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
