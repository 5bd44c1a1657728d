"""New rows for a model whose shares all lie here: every party's columns, and all that is wrong with them.

Columns come from one table with the columns of all parties, found by name, or from one file per party that
are joined by id.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from colonnade.data.prepare.categories import gaps_in
from colonnade.data.prepare.labels import category_codes
from colonnade.data.prepare.prepare import Preparation
from colonnade.data.problems import Problem, listed
from colonnade.data.read.files import load
from colonnade.data.read.recognise import numbers_of
from colonnade.data.table import RawTable, count
from colonnade.errors import DataError, suggest
from colonnade.job.source import Source
from colonnade.run.run_shares import KeptModel, KeptShare


@dataclass(frozen=True, eq=False)
class NewRows:
    """Every party's columns of the same rows, with their ids if the files have some, and remarks on them."""

    tables: dict[str, RawTable]
    ids: NDArray[np.str_] | None
    remarks: list[str] = field(default_factory=list)


def from_table(model: KeptModel, path: Source, id_column: str | None) -> NewRows:
    """Return rows of one table that has the columns of all parties."""
    holder: dict[str, str] = {}
    for party, share in model.shares.items():
        for column in share.preparation.needed:
            if column in holder:
                raise DataError(
                    f"{path}: {holder[column]} and {party} both have a column '{column}'; give one file for "
                    f"each party, --file {holder[column]}=FILE --file {party}=FILE"
                )
            holder[column] = party
    ids = _ids_of(model, next(iter(model.shares)), id_column)
    raw = _read(model, path, tuple(model.shares), ids, required=id_column is not None)
    return _checked(model, dict.fromkeys(model.shares, raw), [])


def from_files(model: KeptModel, files: Mapping[str, Source], id_column: str | None) -> NewRows:
    """Return the rows that the files of all parties have in common, in the order of the first party's
    file."""
    for party in files:
        if party not in model.shares:
            raise DataError(f"--file {party}: there is no such party; {suggest(party, model.shares)}")
    needed = [party for party, share in model.shares.items() if share.preparation.needed]
    if absent := [party for party in needed if party not in files]:
        raise DataError(f"no file of {', '.join(absent)}; add --file {absent[0]}=FILE")
    ids = {party: _ids_of(model, party, id_column) for party in files}
    joins = all(ids.values())
    if not joins and len(files) > 1:
        raise DataError("several files are joined by an id; name its column with --id")
    read = {party: _read(model, path, (party,), ids[party], required=True) for party, path in files.items()}
    places = [
        {one: row for row, one in enumerate([] if raw.ids is None else raw.ids.tolist())}
        for raw in read.values()
    ]
    common = [one for one in places[0] if all(one in place for place in places)] if joins else []
    if joins and not common:
        which = ", ".join(dict.fromkeys(name for names in ids.values() for name in names))
        raise DataError(f"the files of {', '.join(files)} have no id in common; see '{which}'")
    joined = {
        party: raw.take(np.array([place[one] for one in common])) if joins else raw
        for (party, raw), place in zip(read.items(), places, strict=True)
    }
    remarks = [
        f"{files[party]}: {raw.rows - joined[party].rows:,} of {raw.rows:,} are not in all files: no score"
        for party, raw in read.items()
        if raw.rows > joined[party].rows
    ]
    any_party = next(iter(joined.values()))
    return _checked(model, {party: joined.get(party, any_party) for party in model.shares}, remarks)


def _ids_of(model: KeptModel, party: str, id_column: str | None) -> tuple[str, ...]:
    """Return the columns that are an id together: the one that is named, or those that the party's file
    had."""
    return (id_column,) if id_column is not None else model.shares[party].manifest.id


def _read(
    model: KeptModel, path: Source, parties: Sequence[str], ids: tuple[str, ...], *, required: bool
) -> RawTable:
    """Read a file; id columns that are not `required` may be absent."""
    shares = [model.shares[party] for party in parties]
    # what the job says holds for new files, too; what 1,234 means in one is what it meant in training
    dates = {c: pattern for share in shares for c, pattern in share.preparation.dates.items()}
    dialect = replace(shares[0].manifest.written, usual=_decimal(shares), dates=dates)
    columns = load(path, bare=True, dialect=dialect).columns
    if not required and any(name not in columns for name in ids):
        ids = ()
    return load(
        path,
        id=ids or None,
        keys=(shares[0].manifest.keys or None) if ids == shares[0].manifest.id else None,
        # text of categories is read letter by letter, as it was for training
        categorical=[c for share in shares for c in share.preparation.categories if c in columns],
        bare=True,
        dialect=dialect,
    )


def _decimal(shares: Sequence[KeptShare]) -> str | None:
    """Return the decimal mark of the files that these shares were trained on, if they had one for sure."""
    marks = {share.preparation.decimal for share in shares} - {None}
    return marks.pop() if len(marks) == 1 else None


def _checked(model: KeptModel, tables: dict[str, RawTable], remarks: list[str]) -> NewRows:
    """Return the rows with no more than the model's columns; DataError with all that is wrong with them."""
    found = [
        problem
        for party, share in model.shares.items()
        for problem in problems_of(party, share, tables[party])
    ]
    if wrong := [problem for problem in found if problem.stops]:
        raise DataError(listed(wrong))
    chosen = {party: tables[party].select(share.preparation.needed) for party, share in model.shares.items()}
    read = {id(raw): raw for raw in tables.values()}.values()  # one table may be that of all parties
    said = [f"{raw.name}: {text}" for raw in read for text in (*raw.reading.said, *raw.reading.warned)]
    ids = next(iter(tables.values())).ids
    return NewRows(chosen, ids, [*said, *remarks, *(problem.line for problem in found)])


def problems_of(party: str, share: KeptShare, raw: RawTable) -> list[Problem]:
    """Return all that is wrong with a party's new rows for its share: columns, text, gaps, values never
    seen."""
    preparation, found = share.preparation, []
    missing = [column for column in preparation.needed if column not in raw.columns]
    if missing:
        names = ", ".join(f"'{column}'" for column in missing)
        found.append(Problem(raw.name, f"no column {names}, which {party}'s share needs"))
    for name in () if raw.sparse else preparation.needed:
        if name not in missing:
            found += column_problems(preparation, raw, name)
    return found


def column_problems(preparation: Preparation, raw: RawTable, name: str) -> Iterator[Problem]:
    """Yield what is wrong with one column of new rows."""
    column = raw.column(name)
    gaps = gaps_in(column)
    if preparation.missing == "error" and gaps.any():
        row = raw.row_number(int(gaps.argmax()))
        what = f"column '{name}' is empty in {count(int(gaps.sum()), 'row')}, first in row {row}"
        yield Problem(raw.name, f"{what}, and training had no gaps", int(gaps.sum()))
    if name in preparation.categories:
        if name in preparation.constant:
            return  # it adds nothing, with any values
        strange = (category_codes(column, preparation.categories[name]) < 0) & ~gaps
        if strange.any():
            what = (
                f"column '{name}' has values unknown to training in {count(int(strange.sum()), 'row')}, "
                f"such as '{column[int(strange.argmax())]}'; they count as none or as other"
            )
            yield Problem(raw.name, what, int(strange.sum()), stops=False)
    elif column.dtype == object and name not in preparation.dates and numbers_of(column.tolist()) is None:
        example = column[int((~gaps).argmax())]
        what = f"column '{name}' is text, such as '{example}', and was a number in training"
        yield Problem(raw.name, what, int((~gaps).sum()))
