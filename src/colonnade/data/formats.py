"""Files with named columns (CSV, TSV, Parquet), with errors that name the file, the column and the row.

The parser is pyarrow's. It is fast but says little about what is wrong where, so when it gives up the
file is read a second time, slowly, to find the line.
"""

from __future__ import annotations

import bz2
import csv
import difflib
import gzip
import io
import lzma
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from colonnade.errors import DataError

COMPRESSED: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


@dataclass(frozen=True)
class Parsed:
    """What a file holds: feature columns (a matrix when all are numbers), ids as text, raw labels."""

    columns: tuple[str, ...]
    values: Any
    ids: NDArray[np.str_] | None
    y: Any


def suggest(name: str, known: Iterable[str]) -> str:
    """The end of a "there is no such name" sentence: the nearest name, or the first few there are."""
    names = list(known)
    near = difflib.get_close_matches(name, names, n=1)
    if near:
        return f"did you mean '{near[0]}'?"
    return f"there is {', '.join(names[:8])}{', ...' if len(names) > 8 else ''}"


def open_bytes(path: Path) -> IO[bytes]:
    """The file's content, decompressed on the way."""
    opener = COMPRESSED.get(path.suffix)
    return opener(path, "rb") if opener else path.open("rb")


def plain_name(path: Path) -> str:
    """The file's name without .gz, .bz2 or .xz."""
    return path.name.removesuffix(path.suffix) if path.suffix in COMPRESSED else path.name


def read_csv(path: Path, label: str | None, id_column: str | None, categorical: Sequence[str]) -> Parsed:
    """A CSV file, or TSV by its name, with a header."""
    delimiter = "\t" if plain_name(path).lower().endswith(".tsv") else ","
    # pyarrow and scikit-learn are imported on use: they cost more to import than most commands take to run
    import pyarrow as pa
    import pyarrow.csv

    # an id or a category is its spelling: 007 is not 7
    verbatim = {c: pa.string() for c in (*categorical, *([] if id_column is None else [id_column]))}
    try:
        with open_bytes(path) as stream:
            table = pa.csv.read_csv(
                stream,
                parse_options=pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
                convert_options=pa.csv.ConvertOptions(column_types=verbatim),
            )
    except pa.ArrowInvalid as problem:
        raise DataError(f"{path}: {_csv_fault(path, delimiter) or problem}") from None
    return _columns(path, table, label, id_column)


def _csv_fault(path: Path, delimiter: str) -> str | None:
    with io.TextIOWrapper(open_bytes(path), "utf-8", errors="replace", newline="") as text:
        reader = csv.reader(text, delimiter=delimiter)
        header = next((row for row in reader if row), None)
        if header is None:
            return "the file is empty"
        for row in reader:
            if row and len(row) != len(header):
                return f"line {reader.line_num} has {len(row)} fields, the header has {len(header)}"
    return None


def read_parquet(path: Path, label: str | None, id_column: str | None) -> Parsed:
    """A Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet

    if path.suffix in COMPRESSED:
        raise DataError(f"{path}: Parquet is compressed inside; unpack the {path.suffix} first")
    try:
        table = pa.parquet.read_table(path)
    except pa.ArrowException as problem:
        raise DataError(f"{path}: not a readable Parquet file ({str(problem).splitlines()[0]})") from None
    return _columns(path, table, label, id_column)


def _columns(path: Path, table: Any, label: str | None, id_column: str | None) -> Parsed:
    names: list[str] = table.column_names
    twice = next((c for c in names if names.count(c) > 1), None)
    if twice is not None:
        raise DataError(f"{path}: two columns are named '{twice}'; rename one")
    for role, wanted in (("label", label), ("id", id_column)):
        if wanted is not None and wanted not in names:
            raise DataError(f"{path}: no {role} column '{wanted}'; {suggest(wanted, names)}")
    if table.num_rows == 0:
        raise DataError(f"{path}: the file has a header but no rows")
    features = tuple(c for c in names if c not in (label, id_column))
    return Parsed(
        features,
        stack([_column(path, c, table[c]) for c in features], table.num_rows),
        None if id_column is None else _ids(path, id_column, table[id_column]),
        None if label is None else _column(path, label, table[label]),
    )


def _column(path: Path, name: str, column: Any) -> Any:
    """One column as float64 (gaps are NaN), or as text (gaps are empty)."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_dictionary(kind):
        return _column(path, name, column.cast(kind.value_type))
    if pa.types.is_binary(kind) or pa.types.is_nested(kind):
        fault = "is not UTF-8 text" if pa.types.is_binary(kind) else f"holds {kind}, not one value a row"
        raise DataError(f"{path}: column '{name}' {fault}; convert it to numbers or UTF-8 text")
    numeric = (
        pa.types.is_null,
        pa.types.is_boolean,
        pa.types.is_integer,
        pa.types.is_floating,
        pa.types.is_decimal,
    )
    if not any(test(kind) for test in numeric):
        return pc.fill_null(column.cast(pa.string()), "").to_numpy().astype(object)
    numbers = column.cast(pa.float64(), safe=False).to_numpy()
    if np.isinf(numbers).any():
        raise DataError(
            f"{path}: column '{name}', row {int(np.isinf(numbers).argmax()) + 1} is infinite; correct it"
        )
    return numbers


def _ids(path: Path, name: str, column: Any) -> NDArray[np.str_]:
    import pyarrow as pa
    import pyarrow.compute as pc

    ids: NDArray[np.str_] = (
        pc.utf8_trim_whitespace(pc.fill_null(column.cast(pa.string()), "")).to_numpy().astype(np.str_)
    )
    if (ids == "").any():
        raise DataError(f"{path}: id column '{name}', row {int((ids == '').argmax()) + 1} is empty")
    order = np.argsort(ids, kind="stable")
    same = ids[order][1:] == ids[order][:-1]
    if same.any():
        k = int(same.argmax())
        first, second = int(order[k]) + 1, int(order[k + 1]) + 1
        raise DataError(
            f"{path}: id '{ids[order[k]]}' is in row {first} and again in row {second}; ids must be unique"
        )
    return ids


def stack(columns: list[Any], rows: int) -> Any:
    """One matrix where all are numbers (also of none), else one array per column."""
    if any(c.dtype == object for c in columns):
        return tuple(columns)
    X = np.empty((rows, len(columns)))
    for j, column in enumerate(columns):
        X[:, j] = column
    return X
