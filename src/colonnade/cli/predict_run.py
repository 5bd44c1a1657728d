"""`colonnade predict DIR FILE`: score new rows with the model that a run kept, all shares on this machine."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from colonnade.cli.machine import note
from colonnade.cli.sources import written
from colonnade.job.source import source_of

if TYPE_CHECKING:
    from colonnade.arrays import Floats
    from colonnade.job.source import Source
    from colonnade.run.offline import NewRows
    from colonnade.run.run_shares import KeptModel


def predict_run(
    run: Path,
    table: Source | None,
    files: Sequence[str],
    out: Source | None,
    id_column: str | None,
    *,
    as_json: bool,
    explain: bool = False,
    reasons: int = 0,
) -> None:
    """Score the rows of one table, or of one file per party, and write CSV to `out` or standard output.

    With `explain` beside every score what each column did to it, with `reasons` those that raise it most.
    """
    from colonnade.data.table import count
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
    columns = {**_first(rows, len(z)), **_columns(model, z)}
    if explain or reasons:
        columns |= _explained(run, model, rows, explain=explain, reasons=reasons)
    if out is None:
        _write(sys.stdout, columns)
        return
    with written(out) as draft:
        if draft.suffix == ".parquet":
            _write_parquet(draft, columns)
        else:
            with draft.open("w", newline="", encoding="utf-8") as file:
                _write(file, columns)
    if as_json:
        click.echo(json.dumps({"model": str(run), "file": str(out), "rows": len(z), "notes": rows.remarks}))
    else:
        click.echo(f"{out}: {count(len(z), 'row')} scored with the model of {run}", err=True)


def _by_party(files: Sequence[str]) -> dict[str, Source]:
    """Return the files of --file PARTY=FILE, by party."""
    from colonnade.errors import DataError

    found: dict[str, Source] = {}
    for each in files:
        party, equals, path = each.partition("=")
        if not equals or not path:
            raise DataError(f"--file {each}: write PARTY=FILE, e.g. --file bank=bank.csv")
        if party in found:
            raise DataError(f"--file {party}: there are two files of this party")
        found[party] = source_of(path)
    return found


def _explained(
    run: Path, model: KeptModel, rows: NewRows, *, explain: bool, reasons: int
) -> dict[str, Iterable[object]]:
    """Return SHAP values and reason codes as columns, by name."""
    from colonnade.cli.credit_model import training_rows
    from colonnade.credit.attribution import of_model

    linear = any(share.manifest.kind == "linear" for share in model.shares.values())
    found = of_model(model, rows.tables, training_rows(run) if linear else None)
    columns: dict[str, Iterable[object]] = {}
    count = len(found.values)
    if explain:
        classes = [f"_{name}" for name in model.labels.classes] if found.values.ndim == 3 else [""]
        values, base = found.values.reshape(count, len(found.columns), -1), found.base.reshape(-1)
        for k, name in enumerate(classes):
            columns[f"base{name}"] = [float(base[k])] * count
            for place, (party, column) in enumerate(found.columns):
                columns[f"shap_{party}.{column}{name}"] = values[:, place, k].tolist()
    given = found.reasons(reasons) if reasons else []
    for k in range(reasons):
        at = [each[k] if k < len(each) else None for each in given]
        columns[f"reason_{k + 1}"] = ["" if one is None else f"{one[0]}.{one[1]}" for one in at]
        columns[f"effect_{k + 1}"] = [None if one is None else one[2] for one in at]
    return columns


def _write(file: TextIO, columns: Mapping[str, Iterable[object]]) -> None:
    """Write a line for every row: its id or number, its score, its probability, what is predicted."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))


def _write_parquet(path: Path, columns: Mapping[str, Iterable[object]]) -> None:
    """Write the same as Parquet."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({name: pa.array(list(values)) for name, values in columns.items()}), path)


def _first(rows: NewRows, count: int) -> dict[str, Iterable[object]]:
    """Return the ids of the rows, or their numbers."""
    return {"row": range(1, count + 1)} if rows.ids is None else {"id": rows.ids.tolist()}


def _columns(model: KeptModel, z: Floats) -> dict[str, Iterable[object]]:
    """Return the columns beside the id, by name."""
    from scipy.special import expit, softmax

    found = model.predicted(z)
    predicted: Iterable[object] = found if isinstance(found, list) else found.tolist()
    if z.ndim == 2:
        names = [f"score_{name}" for name in model.labels.classes]
        scores = dict(zip(names, z.T.tolist(), strict=True))
        if not model.loss.has_probabilities:
            return {**scores, "predicted": predicted}
        likely = [f"probability_{name}" for name in model.labels.classes]
        each = softmax(z, axis=1).T.tolist()
        return {**scores, **dict(zip(likely, each, strict=True)), "predicted": predicted}
    if model.loss.link == "logit":
        return {"score": z.tolist(), "probability": expit(z).tolist(), "predicted": predicted}
    return {"score": z.tolist(), "predicted": predicted}
