"""A stream that is too large to be held, of a database or a store: written as Parquet once, batch by batch.

It is written whole or not at all, in a folder that only this user may read.
"""

from __future__ import annotations

import os
from pathlib import Path

from colonnade.data.read.dialect import Dialect
from colonnade.data.read.formats import Wanted, raw_table
from colonnade.data.read.source import stream
from colonnade.data.table import RawTable
from colonnade.disk import on_disk
from colonnade.errors import DataError
from colonnade.job.source import Source

SOME = 2**16
"""Rows that are looked at to see what is wrong with a source before all are read."""


def stored(source: Source, folder: Path) -> tuple[Path, str]:
    """Return a source as a Parquet file in this folder, and the digest of what was read.

    Its name is the digest, so that columns prepared of the same rows are found again.
    """
    import pyarrow.parquet as pq

    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    unfinished = folder / f"stream.{os.getpid()}.part"
    try:
        with stream(source) as batches, on_disk(unfinished):
            # numbers are rarely repeated, and the file is read again soon: neither dictionaries nor packing
            options = {"compression": "none", "use_dictionary": False, "write_statistics": False}
            with pq.ParquetWriter(unfinished, batches.schema, **options) as writer:
                for batch in batches:
                    writer.write_batch(batch)
        if not batches.rows:
            raise DataError(f"{source}: has no rows")
        digest = batches.digest()
        return unfinished.replace(folder / f"{digest[:16]}.stream.parquet"), digest
    finally:
        unfinished.unlink(missing_ok=True)


def first_rows_of(source: Source, wanted: Wanted, dialect: Dialect) -> RawTable:
    """Return the first rows of a source, as they would be read of a smaller one."""
    import pyarrow as pa

    kept, rows = [], 0
    with stream(source) as batches:
        for batch in batches:
            kept.append(batch)
            rows += batch.num_rows
            if rows >= SOME:
                break
    return raw_table(source, pa.Table.from_batches(kept, batches.schema), wanted, dialect, ())
