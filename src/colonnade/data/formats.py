"""Files with named columns (CSV, TSV, Parquet), with errors that name the file, the column and the row.

The parser is pyarrow's. It is fast but says little about what is wrong where, so when it gives up the
file is read a second time, slowly, to find the line.

pyarrow is imported on use: it costs more to import than most commands take to run.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from colonnade.data.table import Column, RawTable, stack
from colonnade.errors import DataError, suggest

COMPRESSED: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


def open_bytes(path: Path) -> IO[bytes]:
    """The file's content as a stream, decompressed on the way."""
    opener = COMPRESSED.get(path.suffix)
    return opener(path, "rb") if opener else path.open("rb")


def plain_name(path: Path) -> str:
    """The file's name without .gz, .bz2 or .xz."""
    return path.name.removesuffix(path.suffix) if path.suffix in COMPRESSED else path.name


def read_csv(path: Path, label: str | None, id_column: str | None, categorical: Sequence[str]) -> RawTable:
    """Read a CSV file with a header, or a TSV file if its name says so."""
    import pyarrow as pa
    import pyarrow.csv

    delimiter = "\t" if plain_name(path).lower().endswith(".tsv") else ","
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
    return _raw_table(path, table, label, id_column)


def _csv_fault(path: Path, delimiter: str) -> str | None:
    """What is wrong with the file and on which line, or None if nothing is found."""
    with io.TextIOWrapper(open_bytes(path), "utf-8", errors="replace", newline="") as text:
        reader = csv.reader(text, delimiter=delimiter)
        header = next((row for row in reader if row), None)
        if header is None:
            return "the file is empty"
        for row in reader:
            if row and len(row) != len(header):
                return f"line {reader.line_num} has {len(row)} fields, the header has {len(header)}"
    return None


def read_parquet(path: Path, label: str | None, id_column: str | None) -> RawTable:
    """Read a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet

    if path.suffix in COMPRESSED:
        raise DataError(f"{path}: Parquet is compressed inside; unpack the {path.suffix} first")
    try:
        table = pa.parquet.read_table(path)
    except pa.ArrowException as problem:
        raise DataError(f"{path}: not a readable Parquet file ({str(problem).splitlines()[0]})") from None
    return _raw_table(path, table, label, id_column)


def _raw_table(path: Path, table: Any, label: str | None, id_column: str | None) -> RawTable:
    """A pyarrow table as a `RawTable`: the label and the id apart from the other columns."""
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
    return RawTable(
        path.name,
        features,
        stack([column_of(path, c, table[c]) for c in features], table.num_rows),
        None if id_column is None else _ids(path, id_column, table[id_column]),
        None if label is None else column_of(path, label, table[label]),
    )


def column_of(path: Path | str, name: str, column: Any) -> Column:
    """A pyarrow column as float64 (gaps are NaN), or as text (gaps are empty)."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_dictionary(kind):
        return column_of(path, name, column.cast(kind.value_type))
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
        text: NDArray[np.object_] = pc.fill_null(column.cast(pa.string()), "").to_numpy().astype(object)
        return text
    numbers: NDArray[np.float64] = column.cast(pa.float64(), safe=False).to_numpy()
    if np.isinf(numbers).any():
        raise DataError(
            f"{path}: column '{name}', row {int(np.isinf(numbers).argmax()) + 1} is infinite; correct it"
        )
    return numbers


def _ids(path: Path, name: str, column: Any) -> NDArray[np.str_]:
    """A pyarrow column as ids: text without blanks around it, nowhere empty, no two the same."""
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
