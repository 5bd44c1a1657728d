"""`colonnade bench`: a paper's tables and figures, ours beside the paper's."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import click

# a bench is a module of colonnade.bench with run(quick, out, say)
BENCHES = {
    "asyrevel": "black-box models: Tables 3-4, Figures 3-4, private replies and the attack",
    "asysqn": "quasi-Newton directions: Figures 2-4 and Tables 3-5",
    "fdskl": "kernels over split columns: Figures 3-6 and Table 4",
    "vfb2": "theta sent back to every party: Figures 2-4 and Table 2, beside pooled training",
}


@click.command()
@click.argument("name", type=click.Choice(sorted(BENCHES)))
@click.option("--quick", is_flag=True, help="Less data and fewer trials: minutes instead of an hour.")
@click.option(
    "--out", "-o", type=click.Path(path_type=Path), help="Where results go. [default: runs/bench-NAME]"
)
def bench(name: str, quick: bool, out: Path | None) -> None:
    """Reproduce a paper's experiments: JSON, tables and a figure, ours beside the paper's.

    \b
    Example:
      colonnade bench fdskl --quick
    """
    run = import_module(f"colonnade.bench.{name}").run
    files = run(quick, out or Path("runs") / f"bench-{name}", lambda line: click.echo(line))
    click.echo(f"written: {', '.join(str(file) for file in files)}")
