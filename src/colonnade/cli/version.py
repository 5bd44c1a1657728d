"""`colonnade --version`, and with `--verbose` what it runs on and which of its files are compiled."""

from __future__ import annotations

import platform
from importlib import import_module

import click

from colonnade import __version__

COMPILED = ("models._rows", "net._line", "secure._words", "secure.lattice._lattice")


def show_version(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    """Print the version and end, if it was asked for."""
    if not asked or ctx.resilient_parsing:
        return
    click.echo(f"colonnade {__version__}")
    if ctx.params.get("verbose"):
        click.echo(f"Python {platform.python_version()} on {platform.system()} {platform.machine()}")
        for module in COMPILED:
            click.echo(f"{module}: {'compiled' if is_compiled(module) else 'not compiled, slower'}")
    ctx.exit()


def is_compiled(module: str) -> bool:
    """Return whether a module in C is there and can be loaded."""
    try:
        import_module(f"colonnade.{module}")
    except ImportError:
        return False
    return True
