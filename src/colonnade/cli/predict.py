"""`colonnade predict`: score new rows, alone with a run's model or together with the other parties."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from colonnade.cli.party import CONFIG
from colonnade.cli.sources import SOURCE, check_target, written
from colonnade.cli.train import followed

if TYPE_CHECKING:
    from colonnade.deploy.settings import Settings
    from colonnade.job.source import Source


@click.command()
@click.argument("model", metavar="DIR|MODEL")
@click.argument("rows_file", metavar="[FILE]", required=False, type=SOURCE)
@click.option("--file", "files", multiple=True, metavar="PARTY=FILE", help="DIR: one file for each party.")
@click.option("--id", "id_column", help="DIR: the column with ids. [default: as in training]")
@click.option(
    "--out",
    "-o",
    type=SOURCE,
    help="Where scores go: a file, a table of a database, or an object in a store. [default: DIR: the "
    "terminal; MODEL: scores.csv]",
)
@CONFIG
@click.option(
    "--data", help="MODEL: which catalogue entry holds the rows, at every party. [default: as in training]"
)
@click.option(
    "--explain",
    is_flag=True,
    help="Also every column's part of a score (SHAP). MODEL: of this party's own columns; trees: by party.",
)
@click.option(
    "--reasons", type=click.IntRange(min=1), metavar="N", help="Also the N columns that raise a score most."
)
@click.option("--json", "as_json", is_flag=True, help="Print what was done as JSON, and nothing else.")
def predict(
    model: str,
    rows_file: Source | None,
    files: tuple[str, ...],
    id_column: str | None,
    out: Source | None,
    config: Path,
    data: str | None,
    explain: bool,
    reasons: int | None,
    as_json: bool,
) -> None:
    """Score new rows, alone with the model of a run, or together with the other parties.

    DIR is the folder of `colonnade run`, which holds all shares of its model. FILE is a table with the
    columns of all parties, found by name, or there is a --file for each of them, joined by id. Nothing else
    runs. Writes CSV: id, score, probability, what is predicted.

    MODEL is a model that this party's daemon trained with others. Run it where the label is held. FILE (CSV,
    Excel or Parquet) needs the id columns; every party looks the rows up in its own data. An id that is not
    known to all parties has an empty score.

    With --explain a column's SHAP value stands beside the score: of linear models from the mean training row,
    of boosted trees along their paths. For MODEL, a linear one whose weights this party knows, the file has
    this party's own columns alone: it computes them from its own disk, and nobody is asked or told anything.
    For trees, where the label is held, there is a value for each party: nobody is told more than for scores.

    \b
    Example:
      colonnade predict runs/job new.csv --out scores.csv
      colonnade predict runs/job new.csv --explain --reasons 4
      colonnade predict runs/job --file bank=bank.csv --file shop=shop.csv
      colonnade predict credit new.csv --data applicants --out scores.parquet
      colonnade predict runs/job postgresql://db.bank/risk#new --out postgresql://db.bank/risk#scores
    """
    from colonnade.errors import DataError

    if out is not None:
        check_target(out)
    if Path(model).is_dir():
        from colonnade.cli.predict_run import predict_run

        if data is not None:
            raise DataError("--data: goes with a daemon's MODEL; a run's folder takes FILE or --file")
        predict_run(
            Path(model),
            rows_file,
            files,
            out,
            id_column,
            as_json=as_json,
            explain=explain,
            reasons=reasons or 0,
        )
        return
    if files or id_column or rows_file is None or Path(model).name != model:
        raise DataError(
            f"{model}: there is no such folder of a run; for a daemon's model give a FILE of ids, "
            "and neither --file nor --id"
        )
    if explain or reasons:
        from colonnade.cli.explain import by_party, explain_own

        if not reasons and by_party(model, config):
            name = out or Path("explained.csv")
            _predict_together(model, rows_file, config, name, data, explain=True, as_json=as_json)
            return
        explain_own(model, rows_file, config, out or Path("explained.csv"), data, reasons=reasons or 0)
        return
    _predict_together(model, rows_file, config, out or Path("scores.csv"), data, as_json=as_json)


def _predict_together(
    model: str,
    ids_file: Source,
    config: Path,
    out: Source,
    data: str | None,
    *,
    explain: bool = False,
    as_json: bool,
) -> None:
    """Score ids together with the other parties; with `explain` every party's value beside each score."""
    from colonnade.cli.daemon import ask
    from colonnade.data.read.files import load_ids
    from colonnade.deploy.daemon.commands import PredictRequest
    from colonnade.deploy.models.serving import Serving
    from colonnade.deploy.settings import read_settings
    from colonnade.errors import DataError

    if isinstance(out, Path) and out.suffix not in (".csv", ".parquet"):
        raise DataError(f"{out}: scores are written as .csv or .parquet")
    check_target(out)  # before anybody is asked: scores count against what a day allows
    settings = read_settings(config)
    keys = keys_of(settings, Serving(settings.state).find(model).terms.parties[settings.name].data, data)
    columns = [part.tolist() for part in load_ids(ids_file, keys)]
    with followed(quiet=as_json) as tell:
        found = ask(settings, PredictRequest(model, columns, data, explain), tell)
    write_rows(out, keys, columns, [_flat(row) for row in found["rows"]])
    scored = sum(row is not None for row in found["rows"])
    if as_json:
        said = {"model": found["model"], "file": str(out), "ids": len(columns[0]), "scored": scored}
        click.echo(json.dumps({**said, "degraded": found["degraded"]}))
        return
    without = f", without {', '.join(found['degraded'])}" if found["degraded"] else ""
    click.echo(f"{out}: {scored} of {len(columns[0])} ids scored with {found['model']}{without}")


def _flat(row: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return a scored row with every party's value in a column of its own."""
    if row is None or "parties" not in row:
        return row
    parties = row.pop("parties")
    return row | {f"shap_{party}": value for party, value in parties.items()}


def keys_of(settings: Settings, trained: str, data: str | None) -> tuple[str, ...]:
    """Return the id columns of the catalogue entry that holds the rows."""
    from colonnade.errors import JobError, suggest

    name = data or trained
    if name not in settings.data:
        raise JobError(f"--data: no entry {name!r} in the catalogue; {suggest(name, settings.data)}")
    return settings.data[name].keys


def write_rows(
    target: Source, keys: tuple[str, ...], ids: list[list[str]], rows: list[dict[str, Any] | None]
) -> None:
    """Write ids and their scores; a row without a score has empty cells."""
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
    with written(target) as draft:
        if draft.suffix == ".parquet":
            pa.parquet.write_table(table, draft)
        else:
            pa.csv.write_csv(table, draft)
