"""Reading one data file of any format: the file's name says which it is."""

from __future__ import annotations

import hashlib
import lzma
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from colonnade.data.read import formats
from colonnade.data.read.dialect import Dialect
from colonnade.data.read.formats import Wanted
from colonnade.data.read.ids import identified, parts_of
from colonnade.data.read.idx import read_idx
from colonnade.data.read.libsvm import read_libsvm
from colonnade.data.read.objects import copied
from colonnade.data.read.source import is_stream, stream
from colonnade.data.table import Column, RawTable, count
from colonnade.errors import DataError, suggest
from colonnade.job import Key
from colonnade.job.source import Address, Source, source_of

NO_LABEL = "no label"
AS_FOUND = Dialect()  # how a file is written is found out
# of formats that are not read; a name with any other ending is taken for a LIBSVM file
OTHERS = {
    *(".zip", ".7z", ".tar", ".xls", ".xlsb", ".ods", ".json", ".jsonl", ".xml", ".html"),
    *(".feather", ".arrow", ".orc", ".avro", ".h5", ".hdf5", ".npy", ".npz", ".pkl", ".pickle"),
    *(".dta", ".sav", ".sas7bdat", ".rds", ".rda", ".rdata"),
}


def _excel(path: Path, wanted: Wanted, dialect: Dialect) -> RawTable:
    from colonnade.data.read.excel import read_excel

    return read_excel(path, wanted, dialect)


READERS: dict[str, Callable[[Path, Wanted, Dialect], RawTable]] = {
    ".csv": formats.read_csv,
    ".tsv": formats.read_csv,
    ".parquet": formats.read_parquet,
    ".pq": formats.read_parquet,
    ".xlsx": _excel,
    ".xlsm": _excel,
}
"""Formats of tables with named columns, by how a file's name ends."""


def load(
    path: str | Source,
    *,
    label: str | None = None,
    id: str | Sequence[str] | None = None,  # noqa: A002
    keys: Sequence[Key] | None = None,
    n_features: int | None = None,
    categorical: Sequence[str] = (),
    bare: bool = False,
    dialect: Dialect = AS_FOUND,
) -> RawTable:
    """Read a database, or LIBSVM, CSV, TSV, Parquet, Excel or IDX, plain or packed as .gz, .xz or .bz2.

    `label` and `id` name columns of files that name theirs; several are an id together, and `keys` say how
    each is brought into one form. `n_features` is for LIBSVM, where a file cannot say how many columns there
    are beyond the last one it uses: give a test file its training file's number. `categorical` columns are
    read as text, letter by letter. A file with nothing but label and id is refused unless it may be `bare`.

    Rows without an id or a label, and rows that are there twice, are left out and counted.
    """
    ids = () if id is None else (id,) if isinstance(id, str) else tuple(id)
    raw = _opened(source_of(path), Wanted(label, ids, tuple(categorical)), n_features, dialect)
    if not raw.columns and not bare:
        raise DataError(
            f"{path}: no columns besides the label and the id; a party that only deals random words "
            "(secure.helper) has columns = [] in the job"
        )
    return _labelled(identified(raw, keys or [Key()] * len(ids), ids))


def load_ids(path: Source, names: Sequence[str]) -> list[NDArray[np.str_]]:
    """Return the id columns of a file as they are written, every row in its place; DataError if one is
    empty."""
    ids = _opened(path, Wanted(ids=tuple(names)), None, AS_FOUND).ids
    if ids is None:
        raise DataError(f"{path}: its columns have no names; give CSV, Parquet or Excel with {names[0]}")
    if gaps := int((ids == "").sum()):
        first = int((ids == "").argmax()) + 1
        raise DataError(f"{path}: {count(gaps, 'row')} without an id, first row {first}; remove them")
    return parts_of(ids, len(names))


def _opened(source: Source, wanted: Wanted, n_features: int | None, dialect: Dialect) -> RawTable:
    """Return a source as it is written; DataError if it cannot be read."""
    if is_stream(source):
        with stream(source) as batches:
            raw = formats.raw_table(source, batches.table(), wanted, dialect, ())
        return raw.hashed(batches.digest())
    if isinstance(source, Address):
        with copied(source) as local:
            return _file(local, wanted, n_features, dialect)
    return _file(source, wanted, n_features, dialect)


def _file(path: Path, wanted: Wanted, n_features: int | None, dialect: Dialect) -> RawTable:
    """Return a file of this machine as it is written; DataError if it cannot be read."""
    if path.is_dir():
        raise DataError(f"{path}: this is a folder, not a file, and has no Parquet files in it")
    if not path.is_file():
        siblings = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
        hint = suggest(path.name, sorted(siblings)) if siblings else "give the path of a data file"
        raise DataError(f"{path}: no such file; {hint}")
    try:
        return _read(path, wanted, n_features, dialect).hashed(digest_of(path))
    except PermissionError:
        raise DataError(f"{path}: not allowed to read this file") from None
    except (OSError, EOFError, lzma.LZMAError) as problem:
        raise DataError(f"{path}: damaged or not a {path.suffix} file ({problem})") from None


def _read(path: Path, wanted: Wanted, n_features: int | None, dialect: Dialect) -> RawTable:
    """Read the file with the reader of its format."""
    name = formats.plain_name(path).lower()
    ending = Path(name).suffix
    if ending in READERS:
        return READERS[ending](path, wanted, dialect)
    match ending:
        case ".db" | ".sqlite" | ".sqlite3":
            raise DataError(f"{path}: a database is read by its address; write sqlite:{path}#TABLE")
        case other if other in OTHERS:
            raise DataError(
                f"{path}: {other} files are not read; use CSV, TSV, Parquet, Excel (.xlsx), LIBSVM or IDX"
            )
        case _ if "-images-idx3" in name:
            return read_idx(path)
        case _:  # LIBSVM files end in .libsvm, .svm, .txt, .t, .binary, .scale or nothing at all
            return read_libsvm(path, n_features)


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def label_gaps(raw: RawTable, y: Column) -> NDArray[np.bool_]:
    """Return which rows have no label; infinite ones are refused."""
    if y.dtype == object:
        return np.asarray(y == "")
    numbers = y.astype(np.float64)
    if np.isinf(numbers).any():
        row = raw.row_number(int(np.isinf(numbers).argmax()))
        raise DataError(f"{raw.name}: the label of row {row} is infinite; correct it")
    return np.isnan(numbers)


def _labelled(raw: RawTable) -> RawTable:
    """Return the rows that have a label, where labels were read."""
    if raw.y is None:
        return raw
    gaps = label_gaps(raw, raw.y)
    if gaps.all():
        raise DataError(f"{raw.name}: no row has a label")
    if not gaps.any():
        return raw
    kept = raw.take(np.flatnonzero(~gaps))
    return replace(kept, reading=kept.reading.and_left_out(int(gaps.sum()), NO_LABEL))
