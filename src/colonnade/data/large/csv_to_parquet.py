"""A CSV file that is too large to be held: converted to Parquet once, a block of bytes at a time.

What kind a column is of shows in the first block. One that turns out to hold something else further down
becomes text, and the file is read again from its beginning: no block is kept that a later one contradicts.
Whole numbers become numbers at once, since a decimal mark may follow anywhere.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from colonnade.data.read import header
from colonnade.data.read.dialect import GAPS, Dialect, sniffed
from colonnade.data.read.formats import Wanted, parsed, plain_name
from colonnade.data.read.unpacked import COMPRESSED, open_bytes
from colonnade.data.table import RawTable
from colonnade.errors import DataError

HEAD = 2**20
"""Bytes from which it is told how a file is written and how long its lines are."""

BLOCK = 2**24
"""Bytes that are parsed at a time."""

_CONTRADICTED = re.compile(r"In CSV column #(\d+): .*", re.DOTALL)


def is_csv(path: Path) -> bool:
    """Return whether a file is CSV or TSV, by its name."""
    return plain_name(path).lower().endswith((".csv", ".tsv"))


def numbers_in(path: Path, given: Dialect) -> int:
    """Return about how many numbers a file would be, by its first lines and its size."""
    with path.open("rb") as packed:
        opener = COMPRESSED.get(path.suffix)
        head = (opener(packed) if opener else packed).read(HEAD)
        part = min(1.0, packed.tell() / max(1, path.stat().st_size))
    plain, dialect = sniffed(_whole_lines(head), given, plain_name(path))
    lines = max(0, plain.count(b"\n") - 1)
    return int(lines * len(header.names_of(plain, str(dialect.separator))) / part)


def first_rows(path: Path, wanted: Wanted, given: Dialect) -> RawTable:
    """Return the rows of the first block, as they would be read of a smaller file."""
    with open_bytes(path) as stream:
        head = stream.read(BLOCK)
    plain, dialect = sniffed(head[: head.rfind(b"\n") + 1], given, plain_name(path))
    return parsed(path, plain, wanted, dialect, tuple(dialect.said()))


def as_parquet(path: Path, folder: Path, given: Dialect, verbatim: Sequence[str] = ()) -> Path:
    """Return the file as Parquet, in this folder; one that was converted before is found again.

    `verbatim` columns are read as text, letter by letter: ids and categories.
    """
    state = path.stat()
    whose = _digest([str(path.resolve()), sorted(verbatim), repr(given)])
    target = folder / f"{whose}-{_digest([state.st_size, state.st_mtime_ns])}.parquet"
    if not target.exists():
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        unfinished = target.with_suffix(f".{os.getpid()}.part")
        try:
            _convert(path, unfinished, given, verbatim)
            unfinished.replace(target)
        finally:
            unfinished.unlink(missing_ok=True)
        for old in set(folder.glob(f"{whose}-*.parquet")) - {target}:  # of the file as it was before
            old.unlink()
    return target


def _digest(made_of: list[object]) -> str:
    return hashlib.sha256(msgspec.json.encode(made_of)).hexdigest()[:16]


def _convert(path: Path, target: Path, given: Dialect, verbatim: Sequence[str]) -> None:
    """Write the file as Parquet, with the kinds of columns that hold from its first row to its last."""
    import pyarrow as pa

    with open_bytes(path) as stream:
        head = _whole_lines(stream.read(HEAD))
    plain, dialect = sniffed(head, given, plain_name(path))
    names = header.names_of(plain, str(dialect.separator))
    if not names:
        raise DataError(f"{path}: the file is empty")
    kinds = {name: pa.string() for name in names if name.strip() in verbatim}
    sure = False  # the kinds that come from the first block have been taken
    while True:
        try:
            with _blocks(path, dialect, kinds) as blocks:
                if sure:
                    return _write(blocks, target)
                kinds, sure = _first_kinds(blocks.schema), True
        except pa.ArrowInvalid as problem:
            found = _CONTRADICTED.fullmatch(str(problem))
            name = names[int(found[1])] if found and int(found[1]) < len(names) else None
            if name is None or kinds.get(name, pa.string()) == pa.string():
                raise DataError(f"{path}: {str(problem).splitlines()[0][:200]}; correct the file") from None
            kinds[name] = pa.string()


@contextmanager
def _blocks(path: Path, dialect: Dialect, kinds: dict[str, Any]) -> Iterator[Any]:
    """The file in blocks of records."""
    import pyarrow as pa
    import pyarrow.csv

    read = pa.csv.ReadOptions(
        block_size=BLOCK, use_threads=False, skip_rows=dialect.above, encoding=dialect.encoding or "utf8"
    )
    parse = pa.csv.ParseOptions(delimiter=str(dialect.separator), newlines_in_values=True)
    convert = pa.csv.ConvertOptions(
        column_types=kinds,
        null_values=list(GAPS),
        strings_can_be_null=True,
        decimal_point=dialect.decimal or ".",
    )
    with open_bytes(path) as stream, pa.csv.open_csv(stream, read, parse, convert) as blocks:
        yield blocks


def _first_kinds(schema: Any) -> dict[str, Any]:
    """Return what kind every column seems to be of; what has no value yet is taken for numbers."""
    import pyarrow as pa

    wide = {pa.int64(): pa.float64(), pa.null(): pa.float64()}
    return {field.name: wide.get(field.type, field.type) for field in schema}


def _write(blocks: Any, target: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetWriter(target, blocks.schema) as writer:
        for block in blocks:
            writer.write_table(pa.Table.from_batches([block]))


def _whole_lines(head: bytes) -> bytes:
    """Return the beginning of a file without its last line, which may be cut in two, unless it is the only
    one."""
    if b"\0" in head[:200]:
        raise DataError("a large CSV file must be in an encoding of whole bytes; save it in UTF-8")
    return head[: head.rfind(b"\n") + 1] or head if len(head) == HEAD else head
