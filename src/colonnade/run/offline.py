"""New rows for a model whose shares all lie here: every party's columns, and all that is wrong with them.

Columns come from one table with the columns of all parties, found by name, or from one file per party that
are joined by id.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from colonnade.data.files import load
from colonnade.data.labels import category_codes
from colonnade.data.problems import Problem, gaps_of, listed
from colonnade.data.table import RawTable
from colonnade.errors import DataError, suggest
from colonnade.run.kept import KeptModel, KeptShare


@dataclass(frozen=True, eq=False)
class NewRows:
    """Every party's columns of the same rows, with their ids if the files have some, and remarks on them."""

    tables: dict[str, RawTable]
    ids: NDArray[np.str_] | None
    remarks: list[str] = field(default_factory=list)


def from_table(model: KeptModel, path: Path, id_column: str | None) -> NewRows:
    """Rows of one table that has the columns of all parties."""
    holder: dict[str, str] = {}
    for party, share in model.shares.items():
        for column in share.preparation.columns:
            if column in holder:
                raise DataError(
                    f"{path}: {holder[column]} and {party} both have a column '{column}'; give one file for "
                    f"each party, --file {holder[column]}=FILE --file {party}=FILE"
                )
            holder[column] = party
    raw = _read(
        path, tuple(model.shares.values()), id_column or _id_of(model), required=id_column is not None
    )
    return _checked(model, dict.fromkeys(model.shares, raw), raw.ids, [])


def from_files(model: KeptModel, files: Mapping[str, Path], id_column: str | None) -> NewRows:
    """The rows that the files of all parties have in common, in the order of the first party's file."""
    for party in files:
        if party not in model.shares:
            raise DataError(f"--file {party}: there is no such party; {suggest(party, model.shares)}")
    needed = [party for party, share in model.shares.items() if share.preparation.columns]
    if absent := [party for party in needed if party not in files]:
        raise DataError(f"no file of {', '.join(absent)}; add --file {absent[0]}=FILE")
    name = id_column or _id_of(model)
    if name is None and len(files) > 1:
        raise DataError("several files are joined by an id; name its column with --id")
    read = {party: _read(files[party], (model.shares[party],), name, required=True) for party in files}
    first = read[next(iter(files))]
    if first.ids is None:
        return _checked(model, {party: read.get(party, first) for party in model.shares}, None, [])
    places = [_places(raw) for raw in read.values()]
    common = [one for one in first.ids.tolist() if all(one in place for place in places)]
    if not common:
        raise DataError(
            f"the files of {', '.join(files)} have no id in common; look at their column '{name}'"
        )
    joined = {
        party: raw.take(np.array([place[one] for one in common]))
        for (party, raw), place in zip(read.items(), places, strict=True)
    }
    remarks = [
        f"{files[party]}: {raw.rows - len(common):,} of {raw.rows:,} rows are not in all files: no score"
        for party, raw in read.items()
        if raw.rows > len(common)
    ]
    any_party = next(iter(joined.values()))
    tables = {party: joined.get(party, any_party) for party in model.shares}
    return _checked(model, tables, np.array(common), remarks)


def _id_of(model: KeptModel) -> str | None:
    """The column with ids that the run's files had."""
    return next(iter(model.shares.values())).manifest.id


def _places(raw: RawTable) -> dict[str, int]:
    return {} if raw.ids is None else {one: row for row, one in enumerate(raw.ids.tolist())}


def _read(path: Path, shares: tuple[KeptShare, ...], id_column: str | None, *, required: bool) -> RawTable:
    """Read a file; an id column that is not `required` may be absent."""
    # text of categories is read letter by letter, as it was for training
    categorical = [c for share in shares for c in share.preparation.categories]
    columns = load(path, bare=True).columns
    if id_column is not None and id_column not in columns and not required:
        id_column = None
    return load(path, id=id_column, categorical=[c for c in categorical if c in columns], bare=True)


def _checked(
    model: KeptModel, tables: dict[str, RawTable], ids: NDArray[np.str_] | None, remarks: list[str]
) -> NewRows:
    """The rows with no more than the model's columns; DataError with all that is wrong with them."""
    found = [
        problem
        for party, share in model.shares.items()
        for problem in problems_of(party, share, tables[party])
    ]
    if wrong := [problem for problem in found if problem.stops]:
        raise DataError(listed(wrong))
    chosen = {party: tables[party].select(share.preparation.columns) for party, share in model.shares.items()}
    return NewRows(chosen, ids, [*remarks, *(problem.line for problem in found)])


def problems_of(party: str, share: KeptShare, raw: RawTable) -> list[Problem]:
    """All that is wrong with a party's new rows for its share: columns, text, gaps, values never seen."""
    preparation, found = share.preparation, []
    where = raw.name
    if missing := [column for column in preparation.columns if column not in raw.columns]:
        names = ", ".join(f"'{column}'" for column in missing)
        found.append(Problem(where, f"no column {names}, which {party}'s share needs"))
    for name in preparation.columns:
        if name in missing or raw.sparse:
            continue
        column, gaps = raw.column(name), gaps_of(raw.column(name))
        empty = int(gaps.sum())
        if empty and preparation.missing == "error":
            row = raw.row_number(int(gaps.argmax()))
            what = f"column '{name}' is empty in {empty:,} rows, first in row {row}, and training had no gaps"
            found.append(Problem(where, what, empty))
        if name in preparation.categories:
            known = category_codes(column, preparation.categories[name]) >= 0
            new = ~known & ~gaps
            if strangers := int(new.sum()):
                what = (
                    f"column '{name}' has values that training did not see in {strangers:,} rows, such as "
                    f"'{column[int(new.argmax())]}'; they count as none of the known ones"
                )
                found.append(Problem(where, what, strangers, stops=False))
        elif column.dtype == object:
            row = int((~gaps).argmax())
            what = f"column '{name}' is text, such as '{column[row]}', and was a number in training"
            found.append(Problem(where, what, int((~gaps).sum())))
    return found
