"""`colonnade predict`: read ids from a file, score them together, and write the scores to a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from colonnade.cli.party import CONFIG
from colonnade.cli.train import followed

if TYPE_CHECKING:
    from colonnade.deploy.settings import Settings


@click.command()
@click.argument("model")
@click.argument("ids_file", metavar="IDS.csv", type=click.Path(path_type=Path))
@CONFIG
@click.option("--out", "-o", type=click.Path(path_type=Path), help="CSV or Parquet. [default: scores.csv]")
@click.option(
    "--data", help="Which catalogue entry holds the rows, at every party. [default: as in training]"
)
@click.option("--json", "as_json", is_flag=True, help="Print what was done as JSON, and nothing else.")
def predict(
    model: str, ids_file: Path, config: Path, out: Path | None, data: str | None, as_json: bool
) -> None:
    """Score the ids in IDS.csv (or .parquet) with MODEL, together with the other parties.

    Run it where the label is held. The file needs the id columns; every party looks the rows up in its own
    data. An id that is not known to all parties has an empty score.

    \b
    Example:
      colonnade predict credit new.csv --data applicants --out scores.parquet
    """
    from colonnade.cli.daemon import ask
    from colonnade.deploy.control import PredictRequest
    from colonnade.deploy.serving import Serving
    from colonnade.deploy.settings import read_settings
    from colonnade.errors import DataError

    out = out or Path("scores.csv")
    if out.suffix not in (".csv", ".parquet"):
        raise DataError(f"{out}: scores are written as .csv or .parquet")
    if not out.absolute().parent.is_dir():
        raise DataError(f"{out}: there is no folder {out.parent}; make it, or choose another --out")
    settings = read_settings(config)
    keys = _keys(settings, Serving(settings.state).find(model).terms.parties[settings.name].data, data)
    columns = _read(ids_file, keys)
    with followed(quiet=as_json) as tell:
        found = ask(settings, PredictRequest(model, columns, data), tell)
    _write(out, keys, columns, found["rows"])
    scored = sum(row is not None for row in found["rows"])
    if as_json:
        said = {"model": found["model"], "file": str(out), "ids": len(columns[0]), "scored": scored}
        click.echo(json.dumps({**said, "degraded": found["degraded"]}))
        return
    without = f", without {', '.join(found['degraded'])}" if found["degraded"] else ""
    click.echo(f"{out}: {scored} of {len(columns[0])} ids scored with {found['model']}{without}")


def _keys(settings: Settings, trained: str, data: str | None) -> tuple[str, ...]:
    """The id columns of the catalogue entry that holds the rows."""
    from colonnade.errors import JobError, suggest

    name = data or trained
    if name not in settings.data:
        raise JobError(f"--data: no entry {name!r} in the catalogue; {suggest(name, settings.data)}")
    return settings.data[name].keys


def _read(path: Path, keys: tuple[str, ...]) -> list[list[str]]:
    """The id columns of a CSV or Parquet file, as text."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    from colonnade.errors import DataError, suggest

    if not path.is_file():
        raise DataError(f"{path}: there is no such file")
    try:
        if path.suffix == ".parquet":
            table = pa.parquet.read_table(path)
        else:
            text = pa.csv.ConvertOptions(column_types=dict.fromkeys(keys, pa.string()))
            table = pa.csv.read_csv(path, convert_options=text)
    except pa.ArrowException as error:
        raise DataError(f"{path}: cannot be read: {str(error).splitlines()[0]}") from None
    for key in keys:
        if key not in table.column_names:
            raise DataError(f"{path}: no id column '{key}'; {suggest(key, table.column_names)}")
    if not table.num_rows:
        raise DataError(f"{path}: the file has a header but no rows")
    return [[str(value) for value in table[key].cast(pa.string()).to_pylist()] for key in keys]


def _write(
    path: Path, keys: tuple[str, ...], ids: list[list[str]], rows: list[dict[str, Any] | None]
) -> None:
    """Write ids and their scores as CSV or Parquet; a row without a score has empty cells."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    columns: dict[str, Any] = dict(zip(keys, ids, strict=True))
    first = next((row for row in rows if row is not None), {})
    for name, value in first.items():
        found = [None if row is None else row[name] for row in rows]
        if isinstance(value, list):  # one score per class
            for k in range(len(value)):
                columns[f"{name}_{k}"] = [None if each is None else each[k] for each in found]
        else:
            columns[name] = found
    table = pa.table(columns)
    if path.suffix == ".parquet":
        pa.parquet.write_table(table, path)
    else:
        pa.csv.write_csv(table, path)
