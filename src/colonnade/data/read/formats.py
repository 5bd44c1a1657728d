"""Files with named columns (CSV, TSV, Parquet), with errors that name file, column and row.

The parser is pyarrow's. It is fast but says little about what is wrong where, so when it gives up the
file is read a second time, slowly, to find the lines (`header`). What it leaves as text may still mean
numbers or dates: `recognise` sees to that.

pyarrow is imported on use: it costs more to import than most commands take to run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from colonnade.data.read import header
from colonnade.data.read.dates import said_of
from colonnade.data.read.dialect import GAPS, Dialect, sniffed
from colonnade.data.read.recognise import Recognised, from_numbers, numbers_among, recognise
from colonnade.data.read.unpacked import COMPRESSED, open_bytes
from colonnade.data.table import RawTable, Reading, as_numbers, count, different, numbers_of, stack
from colonnade.errors import DataError, suggest
from colonnade.job.source import Source


def plain_name(path: Path) -> str:
    """Return the file's name without .gz, .bz2 or .xz."""
    return path.name.removesuffix(path.suffix) if path.suffix in COMPRESSED else path.name


def name_of(source: Source) -> str:
    """Return a short name of a source, without .gz, .bz2 or .xz."""
    return plain_name(source) if isinstance(source, Path) else source.name


@dataclass(frozen=True)
class Wanted:
    """What is wanted of a file: label and ids apart from the other columns, and some columns verbatim.

    `ids` is one column or several that are an id together. An id or a category is its spelling: 007 is not 7.
    """

    label: str | None = None
    ids: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()


BLOCK, MOST_BLOCK = 1 << 20, 1 << 26  # bytes that are parsed at a time; a line is no longer than the second
MICROSECONDS = 86_400e6  # of a day
ID_MARK = "\x1f"  # between the columns of an id


def read_csv(path: Path, wanted: Wanted, given: Dialect) -> RawTable:
    """Read a CSV file with a header, in any dialect."""
    with open_bytes(path) as stream:
        content = stream.read()
    plain, dialect = sniffed(content, given, plain_name(path))
    return parsed(path, plain, wanted, dialect, tuple(dialect.said()))


def parsed(path: Path, plain: bytes, wanted: Wanted, dialect: Dialect, said: tuple[str, ...]) -> RawTable:
    """Return CSV in UTF-8 as a table."""
    import pyarrow as pa
    import pyarrow.csv

    separator, asked = str(dialect.separator), {*wanted.categorical, *wanted.ids}
    header.refuse_too_wide(path, plain, separator)
    # a name in the file may have blanks around it
    spelt = [c for c in header.names_of(plain, separator) if c.strip() in asked]

    def read(block: int) -> Any:
        return pa.csv.read_csv(
            pa.BufferReader(plain),
            # a thread that still has hold of `plain` when Python ends would abort it; one block needs none
            read_options=pa.csv.ReadOptions(block_size=block, use_threads=len(plain) > block),
            parse_options=pa.csv.ParseOptions(delimiter=separator, newlines_in_values=True),
            convert_options=pa.csv.ConvertOptions(
                column_types=dict.fromkeys(spelt, pa.string()),
                null_values=list(GAPS),
                strings_can_be_null=True,
                decimal_point=dialect.decimal,
            ),
        )

    try:
        try:
            table = read(BLOCK)
        except pa.ArrowInvalid:
            if len(plain) <= BLOCK:
                raise
            table = read(min(len(plain), MOST_BLOCK))  # a line may be longer than a block
    except pa.ArrowInvalid as problem:
        if (better := header.mended(plain, separator)) is not None:
            return parsed(path, better, wanted, dialect, said)
        raise DataError(f"{path}: {header.fault(plain, separator) or problem}") from None
    return raw_table(path, table, wanted, dialect, said)


def read_parquet(path: Path, wanted: Wanted, given: Dialect) -> RawTable:
    """Read a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet

    if path.suffix in COMPRESSED:
        raise DataError(f"{path}: Parquet is compressed inside; unpack the {path.suffix} first")
    try:
        table = pa.parquet.read_table(path)
    except pa.ArrowException as problem:
        raise DataError(f"{path}: not a readable Parquet file ({str(problem).splitlines()[0]})") from None
    return raw_table(path, table, wanted, given, ())


def raw_table(path: Source, table: Any, wanted: Wanted, dialect: Dialect, said: tuple[str, ...]) -> RawTable:
    """Return a pyarrow table as a `RawTable`: the label and the ids apart from the other columns."""
    table, mended, doubtful = header.named(path, table)
    names: list[str] = table.column_names
    roles = [("label", wanted.label), *(("id", c) for c in wanted.ids)]
    for role, name in roles:
        if name is not None and name not in names:
            hint = "; ".join([suggest(name, names), *doubtful])
            raise DataError(f"{path}: no {role} column '{name}'; {hint}")
    if table.num_rows == 0:
        raise DataError(f"{path}: the file has a header but no rows")
    features = tuple(c for c in names if c != wanted.label and c not in wanted.ids)
    _refuse_infinite(path, table, names)
    read = {c: column_of(path, c, table[c], dialect, c in wanted.categorical) for c in features}
    y = None if wanted.label is None else _label_of(path, wanted.label, table[wanted.label], dialect)
    each = [*read.values(), *([] if y is None else [y])]
    reading = Reading(
        said=(*said, *mended, *(column.said for column in each if column.said)),
        warned=(*doubtful, *(column.warned for column in each if column.warned)),
        dates={c: column.date for c, column in read.items() if column.date},
        decimal=dialect.decimal if dialect.sure else None,
    )
    return RawTable(
        path.name,
        features,
        stack([column.values for column in read.values()], table.num_rows),
        _ids(table, wanted.ids) if wanted.ids else None,
        None if y is None else y.values,
        reading=reading,
    )


def _refuse_infinite(path: Source, table: Any, names: list[str]) -> None:
    """Refuse columns with infinite numbers, all of them at once."""
    import pyarrow as pa
    import pyarrow.compute as pc

    floats = [c for c in names if pa.types.is_floating(table[c].type)]
    found = [c for c in floats if pc.any(pc.is_inf(table[c])).as_py()]
    infinite = {c: pc.fill_null(pc.is_inf(table[c]), False).to_numpy() for c in found}
    if faults := [
        f"column '{c}' is infinite in {count(int(where.sum()), 'row')}, first in row {where.argmax() + 1}"
        for c, where in infinite.items()
    ]:
        raise DataError(f"{path}: {'; '.join(faults)}; correct them, or leave them empty")


def _label_of(path: Source | str, name: str, column: Any, dialect: Dialect) -> Recognised:
    """Return a column of labels; True and False stay words, so that they come back as such."""
    import pyarrow as pa

    if not pa.types.is_boolean(column.type):
        return column_of(path, name, column, dialect, dates=False)
    words = {True: "True", False: "False", None: ""}
    return Recognised(np.array([words[value] for value in column.to_pylist()], dtype=object))


def column_of(
    path: Source | str,
    name: str,
    column: Any,
    dialect: Dialect,
    verbatim: bool = False,
    *,
    dates: bool = True,
) -> Recognised:
    """Return a pyarrow column as float64 (gaps are NaN), or as text (gaps are empty)."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_dictionary(kind):
        return column_of(path, name, _decoded(column), dialect, verbatim, dates=dates)
    if gaps := dialect.gaps_of(name):
        column = _without(column, gaps)
        found = column_of(path, name, column, replace(dialect, gaps={}), verbatim, dates=dates)
        return found.without(gaps)
    if pa.types.is_binary(kind) or pa.types.is_nested(kind):
        fault = "is not UTF-8 text" if pa.types.is_binary(kind) else f"holds {kind}, not one value a row"
        raise DataError(f"{path}: column '{name}' {fault}; convert it to numbers or UTF-8 text")
    if verbatim:
        words, which = different(_spelt(column))
        return Recognised(np.array([word.strip() for word in words], dtype=object)[which])
    if pa.types.is_temporal(kind):
        pattern = "hms" if pa.types.is_time(kind) or pa.types.is_duration(kind) else "ymd"
        return Recognised(_days(column), said_of(name, pattern), date=pattern)
    if any(test(kind) for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)):
        found = recognise(name, column, dialect, dates=dates)
        if found.values.dtype != object:
            _refuse_infinity(path, name, as_numbers(found.values))
        return found
    numbers = numbers_of(column.cast(pa.float64(), safe=False))
    _refuse_infinity(path, name, numbers)
    return (from_numbers(name, numbers, dialect) if dates else None) or Recognised(numbers)


def _refuse_infinity(path: Source | str, name: str, numbers: NDArray[np.float64]) -> None:
    if np.isinf(numbers).any():
        raise DataError(
            f"{path}: column '{name}', row {int(np.isinf(numbers).argmax()) + 1} is infinite; correct it"
        )


def _without(column: Any, gaps: Sequence[str]) -> Any:
    """Return a pyarrow column with these values, spelt so or equal as numbers, as gaps."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        values = pa.array(numbers_among(gaps), pa.float64())
        among = pc.is_in(column.cast(pa.float64(), safe=False), value_set=values)
    elif pa.types.is_binary(column.type) or pa.types.is_nested(column.type):
        return column
    else:
        texts = pc.utf8_trim_whitespace(column.cast(pa.string()))
        among = pc.is_in(texts, value_set=pa.array(gaps, pa.string()))
    return pc.if_else(among, pa.scalar(None, column.type), column)


def _decoded(column: Any) -> Any:
    """Return a pyarrow column of categories as its values; pyarrow's own cast does not know every kind of
    text."""
    import pyarrow as pa

    kind = column.type.value_type
    kind = pa.string() if pa.types.is_string_view(kind) else kind
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    return pa.chunked_array([each.dictionary.cast(kind).take(each.indices) for each in chunks], kind)


def _days(column: Any) -> NDArray[np.float64]:
    """Return a pyarrow column of dates, times or durations in days."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        column = column.cast(pa.timestamp("us"), safe=False)
    else:
        column = column.cast(pa.time64("us") if pa.types.is_time(kind) else pa.duration("us"), safe=False)
    whole = numbers_of(column.cast(pa.int64()).cast(pa.float64(), safe=False))
    return whole / MICROSECONDS


def _spelt(column: Any) -> Any:
    """Return a pyarrow column as a CSV file would have it: whole numbers without decimals, whole days as
    dates."""
    import pyarrow as pa
    import pyarrow.compute as pc

    def all_equal(other: Any) -> bool:
        return column.null_count < len(column) and bool(pc.all(pc.equal(column, other)).as_py())

    if pa.types.is_floating(column.type) and all_equal(pc.floor(column)):
        return column.cast(pa.int64(), safe=False)
    if pa.types.is_timestamp(column.type) and all_equal(pc.floor_temporal(column, unit="day")):
        return column.cast(pa.date32(), safe=False)
    return column


def _ids(table: Any, names: tuple[str, ...]) -> NDArray[np.str_]:
    """Return the id of every row as it is written, "" where a part of it is missing."""
    parts: list[NDArray[np.str_]] = []
    for name in names:
        words, which = different(_spelt(table[name]))
        parts.append(np.array(words, dtype=np.str_)[which])
    joined = parts[0]
    for part in parts[1:]:
        joined = np.strings.add(np.strings.add(joined, ID_MARK), part)
    for part in parts:
        joined = np.where(np.strings.strip(part) == "", "", joined).astype(np.str_)
    return joined
