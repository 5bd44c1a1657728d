"""Data that is too large to be held: read, prepared and stored a stretch of rows at a time.

Columns are large where they would take, as numbers of 8 bytes, more than an eighth of `data.memory`: in
memory a run takes up to eight times its columns, for copies as they were read, split and shuffled. They are
read from Parquet, and CSV and databases are written as that first. Every party's preparation is learnt from
a sample of its training rows, spread over the file; its columns are prepared once, into a file of rows that
is mapped into memory when it is used (`open_columns`), single precision where the file's own columns are no
finer. Whether a row is for the test is drawn for each row by itself, from the job's seed, so that all parties
draw alike and nobody keeps a list.

Nobody ever holds more than the sample and a stretch: neither a party nor the process that launches the run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from colonnade.arrays import Numbers, Rows
from colonnade.data.large.csv_to_parquet import as_parquet, first_rows, is_csv, numbers_in
from colonnade.data.large.stream_to_parquet import first_rows_of, stored
from colonnade.data.read.dialect import Dialect
from colonnade.data.read.files import digest_of
from colonnade.data.read.formats import Wanted, raw_table
from colonnade.data.read.source import is_stream, size_of
from colonnade.data.table import RawTable
from colonnade.errors import DataError, suggest
from colonnade.job.source import Source

STRETCH = 2**16
"""Rows that are read, prepared and written together."""

SAMPLE, GROUPS = 2**19, 16
"""Rows that a preparation is learnt from, and the parts of a file that they come from."""

LEAST = 2**20
"""Bytes of a CSV file from which on it is looked at whether it is large."""

AS_FOUND = Dialect()
AS_STORED = Dialect(dates={})  # a stretch cannot tell whether its numbers are dates

PART = 8
"""Columns are large from this part of a party's memory on."""


@dataclass(frozen=True, eq=False)
class BigFile:
    """A Parquet file that is read a stretch at a time, some columns of it.

    `path` is the source as its owner knows it, `source` what is read: the same, or what it was converted to.
    `digest` is a hash of what was read, where it was not one file of this machine.
    """

    path: Source
    source: Path
    columns: tuple[str, ...]
    rows: int
    fine: frozenset[str]  # columns of more than single precision
    texts: tuple[str, ...]  # columns of text, which are read letter by letter
    gaps: dict[str, tuple[str, ...]]  # values that its owner declares missing (`Dialect`)
    digest: str = ""

    @staticmethod
    def open(
        path: Source, source: Path | None = None, digest: str = "", dialect: Dialect = AS_FOUND
    ) -> BigFile:
        """Look at what a file holds; nothing of its rows is read."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        source = Path(str(path)) if source is None else source
        try:
            with pq.ParquetFile(source) as file:
                rows, schema = file.metadata.num_rows, file.schema_arrow
        except (pa.ArrowException, OSError) as problem:
            raise DataError(f"{path}: not a readable Parquet file ({str(problem).splitlines()[0]})") from None
        kinds = dict(zip(schema.names, schema.types, strict=True))
        texts = tuple(name for name, kind in kinds.items() if _text(kind))
        fine = frozenset(name for name, kind in kinds.items() if name not in texts and not _single(kind))
        return BigFile(path, source, tuple(schema.names), rows, fine, texts, dialect.gaps, digest)

    def wanted(self, label: str | None = None, ids: tuple[str, ...] = ()) -> Wanted:
        """Return what is wanted of it beside columns; all text as it is, as a stretch cannot tell what it
        means."""
        return Wanted(label, ids, self.texts)

    def stretches(self, wanted: Wanted, columns: Sequence[str]) -> Iterator[tuple[int, RawTable]]:
        """Yield these columns, with the label and ids that are wanted, and in which row each stretch
        begins."""
        for start, table in self._stretches(wanted, columns):
            yield start, self._raw(table, wanted, np.arange(start, start + table.num_rows))

    def picked(self, wanted: Wanted, columns: Sequence[str], rows: Rows) -> RawTable:
        """Return some rows of it, which are sorted; everything is read to find them."""
        import pyarrow as pa

        parts = []
        for start, table in self._stretches(wanted, columns):
            first, last = np.searchsorted(rows, [start, start + table.num_rows])
            parts.append(table.take(rows[first:last] - start))
        return self._raw(pa.concat_tables(parts), wanted, rows)

    def sample(self, wanted: Wanted, columns: Sequence[str], tests: TestRows | None) -> RawTable:
        """Return training rows from all over the file, about `SAMPLE` at most, to learn from."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        with pq.ParquetFile(self.source) as file:
            sizes = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
            starts = np.cumsum([0, *sizes]).tolist()
            groups = np.unique(np.linspace(0, len(sizes) - 1, GROUPS).astype(int)).tolist()
            parts, places = [], []
            for group in groups:
                part = file.read_row_group(group, columns=self._read(wanted, columns), use_threads=False)
                rows = np.arange(0, part.num_rows, -(-part.num_rows * len(groups) // SAMPLE))
                if tests is not None:
                    rows = rows[~tests.mask(starts[group], starts[group + 1])[rows]]
                parts.append(part.take(rows))
                places.append(starts[group] + rows)
        return self._raw(pa.concat_tables(parts), wanted, np.concatenate(places))

    def _stretches(self, wanted: Wanted, columns: Sequence[str]) -> Iterator[tuple[int, Any]]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        start = 0
        with pq.ParquetFile(self.source) as file:
            for batch in file.iter_batches(STRETCH, columns=self._read(wanted, columns), use_threads=False):
                yield start, pa.Table.from_batches([batch])
                start += batch.num_rows

    def _read(self, wanted: Wanted, columns: Sequence[str]) -> list[str]:
        """Return the names of all that is read, in the order of the file; an error if one is not there."""
        named = [*columns, *wanted.ids, *([] if wanted.label is None else [wanted.label])]
        for name in named:
            if name not in self.columns:
                raise DataError(f"{self.path}: no column '{name}'; {suggest(name, self.columns)}")
        return [name for name in self.columns if name in set(named)]

    def _raw(self, table: Any, wanted: Wanted, origin: Rows) -> RawTable:
        """Return a part of the file as a table that knows which rows of it these are."""
        if table.num_rows == 0:
            raise DataError(f"{self.path}: the file has no rows")
        raw = raw_table(self.path, table, wanted, replace(AS_STORED, gaps=self.gaps), ())
        return RawTable(
            raw.name,
            raw.columns,
            raw.values,
            raw.ids,
            raw.y,
            origin=origin,
            reading=raw.reading,
        )


def is_large(sources: Sequence[Source], memory: int, dialect: Dialect = AS_FOUND) -> bool:
    """Return whether sources, one or one for each party, have too many numbers to be held, and are read in
    stretches."""
    if not all(_in_stretches(source) for source in sources):
        return False
    return any(8 * _numbers(source, dialect) > memory // PART for source in sources)


def opened(
    source: Source, folder: Path, dialect: Dialect = AS_FOUND, verbatim: Sequence[str] = ()
) -> BigFile:
    """Return a source that is read in stretches; what is no Parquet file is written as one into this folder.

    `verbatim` columns of CSV are read as text, letter by letter: ids and categories.
    """
    if is_stream(source):
        return BigFile.open(source, *stored(source, folder), dialect)
    if isinstance(source, Path) and _is_parquet(source):
        return BigFile.open(source, source, digest_of(source), dialect)
    if isinstance(source, Path) and _in_stretches(source):
        made = as_parquet(source, folder, dialect, verbatim)
        return BigFile.open(source, made, digest_of(source), dialect)
    raise DataError(
        f"{source}: is neither a CSV or Parquet file nor a table; nothing else is read beside one this large"
    )


def some_rows(source: Source, label: str | None, ids: tuple[str, ...], dialect: Dialect) -> RawTable:
    """Return some rows of a large source, to see what is wrong with it before all are read."""
    if is_stream(source):
        return first_rows_of(source, Wanted(label, ids), dialect)
    path = Path(str(source))
    if is_csv(path):
        return first_rows(path, Wanted(label, ids), dialect)
    file = BigFile.open(path)
    columns = [name for name in file.columns if name != label and name not in ids]
    return file.sample(file.wanted(label, ids), columns, None)


def _is_parquet(path: Path) -> bool:
    return path.suffix in (".parquet", ".pq")


def _in_stretches(source: Source) -> bool:
    """Return whether a source is of a kind that can be read in stretches."""
    if is_stream(source):
        return True
    return isinstance(source, Path) and source.is_file() and (_is_parquet(source) or is_csv(source))


def _numbers(source: Source, dialect: Dialect) -> int:
    """Return how many numbers a source holds, or about how many."""
    if is_stream(source):
        rows, columns = size_of(source)
        return rows * columns
    path = Path(str(source))
    if is_csv(path):
        return numbers_in(path, dialect) if path.stat().st_size > LEAST else 0
    file = BigFile.open(path)
    return file.rows * len(file.columns)


class TestRows:
    """Which rows are for the test: each row with the same chance, drawn from the seed and its place alone."""

    __test__ = False  # pytest: not a test, in spite of its name

    def __init__(self, fraction: float, seed: int) -> None:
        self._fraction, self._seed = fraction, seed

    def mask(self, start: int, end: int) -> NDArray[np.bool_]:
        """Return which of these rows are; the same however the rows are cut into stretches."""
        first = start // STRETCH
        drawn = [self._draw(number) for number in range(first, (end - 1) // STRETCH + 1)]
        return np.concatenate(drawn)[start - first * STRETCH : end - first * STRETCH] < self._fraction

    def count(self, rows: int) -> int:
        """Return how many of this number of rows are."""
        return sum(
            int(self.mask(start, min(rows, start + STRETCH)).sum()) for start in range(0, rows, STRETCH)
        )

    def _draw(self, number: int) -> NDArray[np.float64]:
        return np.random.default_rng([self._seed, number, 1]).random(STRETCH)


class Writer:
    """Writes the rows of a file of columns, a stretch at a time."""

    def __init__(self, path: Path, shape: tuple[int, ...], dtype: type[np.floating[Any]]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._dtype = np.dtype(dtype)
        self._file: IO[bytes] = path.open("wb")
        head = {"descr": self._dtype.str, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_2_0(self._file, head)

    def write(self, values: Numbers) -> None:
        """Write some more rows."""
        self._file.write(np.ascontiguousarray(values, dtype=self._dtype).data)

    def close(self) -> None:
        """End the file: all its rows are written."""
        self._file.close()


def release() -> None:
    """Give back the memory that reading took: the reader would keep it for the next file."""
    import pyarrow as pa

    pa.default_memory_pool().release_unused()


def open_columns(path: Path) -> Numbers:
    """Return a file of columns, mapped into memory: what is used of it is read when it is used."""
    columns: Numbers = np.load(path, mmap_mode="r", allow_pickle=False)
    return columns


def _single(kind: Any) -> bool:
    """Return whether single precision holds every number of a Parquet column."""
    import pyarrow as pa

    return kind in (pa.float32(), pa.float16(), pa.int8(), pa.int16(), pa.uint8(), pa.uint16(), pa.bool_())


def _text(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_dictionary(kind))
