"""`colonnade predict DIR FILE`: score new rows with the model that a run kept, all shares on this machine."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from colonnade.cli.machine import note

if TYPE_CHECKING:
    from colonnade.arrays import Floats
    from colonnade.run.offline import NewRows
    from colonnade.run.run_shares import KeptModel


def predict_run(
    run: Path,
    table: Path | None,
    files: Sequence[str],
    out: Path | None,
    id_column: str | None,
    *,
    as_json: bool,
) -> None:
    """Score the rows of one table, or of one file per party, and write CSV to `out` or standard output."""
    from colonnade.data.table import count
    from colonnade.disk import drafted
    from colonnade.errors import DataError
    from colonnade.run.offline import from_files, from_table
    from colonnade.run.run_shares import KeptModel

    if as_json and out is None:
        raise DataError("--json: the scores go to the terminal as CSV; say with --out where else")
    model = KeptModel.read(run)
    if table is not None and not files:
        rows = from_table(model, table, id_column)
    elif files and table is None:
        rows = from_files(model, _by_party(files), id_column)
    else:
        raise DataError("give either one table with all columns, or --file PARTY=FILE for every party")
    z = model.scores(rows.tables)
    for remark in rows.remarks:
        note(remark)
    if out is None:
        _write(sys.stdout, model, rows, z)
        return
    with drafted(out) as draft, draft.open("w", newline="", encoding="utf-8") as file:
        _write(file, model, rows, z)
    if as_json:
        click.echo(json.dumps({"model": str(run), "file": str(out), "rows": len(z), "notes": rows.remarks}))
    else:
        click.echo(f"{out}: {count(len(z), 'row')} scored with the model of {run}", err=True)


def _by_party(files: Sequence[str]) -> dict[str, Path]:
    """Return the files of --file PARTY=FILE, by party."""
    from colonnade.errors import DataError

    found: dict[str, Path] = {}
    for each in files:
        party, equals, path = each.partition("=")
        if not equals or not path:
            raise DataError(f"--file {each}: write PARTY=FILE, e.g. --file bank=bank.csv")
        if party in found:
            raise DataError(f"--file {party}: there are two files of this party")
        found[party] = Path(path)
    return found


def _write(file: TextIO, model: KeptModel, rows: NewRows, z: Floats) -> None:
    """Write a line for every row: its id or number, its score, its probability, what is predicted."""
    names, columns = _columns(model, z)
    if rows.ids is None:
        first: tuple[str, Iterable[object]] = ("row", range(1, len(z) + 1))
    else:
        first = ("id", rows.ids.tolist())
    writer = csv.writer(file)
    writer.writerow([first[0], *names])
    writer.writerows(zip(first[1], *columns, strict=True))


def _columns(model: KeptModel, z: Floats) -> tuple[list[str], list[Iterable[object]]]:
    """Return the names and values of the columns beside the id."""
    from scipy.special import expit

    found = model.predicted(z)
    predicted: Iterable[object] = found if isinstance(found, list) else found.tolist()
    if z.ndim == 2:
        names = [f"score_{name}" for name in model.labels.classes]
        return [*names, "predicted"], [*z.T.tolist(), predicted]
    if model.loss.link == "logit":
        return ["score", "probability", "predicted"], [z.tolist(), expit(z).tolist(), predicted]
    return ["score", "predicted"], [z.tolist(), predicted]
