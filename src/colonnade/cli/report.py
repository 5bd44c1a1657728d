"""`colonnade report`: write one page about finished runs, from their result.json."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("folders", metavar="DIR...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--out", "-o", type=click.Path(path_type=Path), help="HTML, PNG or SVG. [default: report.html in DIR]"
)
def report(folders: tuple[Path, ...], out: Path | None) -> None:
    """Write one page about the run in DIR, or about several side by side.

    The page needs nothing else: figures are inside it, and it loads nothing.

    \b
    Example:
      colonnade report runs/first runs/second --out both.html
    """
    from colonnade.cli.folder import REPORT
    from colonnade.errors import DataError
    from colonnade.report.dossier import read_run
    from colonnade.report.page import write_report

    if len(folders) > 1 and out is None:
        raise DataError("several runs: say with --out where their page goes")
    path = out or folders[0] / REPORT
    if not path.absolute().parent.is_dir():
        raise DataError(f"{path}: there is no folder {path.parent}; make it, or choose another --out")
    runs = {str(folder): read_run(folder) for folder in folders}
    click.echo(f"written: {write_report(runs if len(runs) > 1 else runs[str(folders[0])], path)}")
