"""A stream of record batches: what databases and Parquet in folders and stores are read as.

It is read once, and hashed on its way: two readers of the same rows in the same order have the same digest,
however they came in batches. Nothing of it waits in memory unless its reader keeps it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from colonnade.errors import DataError

TYPNAME = b"ADBC:postgresql:typname"  # what PostgreSQL calls the type of a column


class Batches:
    """Record batches of columns that this package reads, in the order of their source; `shown` names it."""

    def __init__(self, shown: str, schema: Any, raw: Iterator[Any]) -> None:
        import pyarrow as pa

        self.shown = shown
        self.schema = pa.schema([pa.field(field.name, _kind(field)) for field in schema])
        self.rows = 0
        self._raw, self._digest = raw, Digest(self.schema.names)

    def __iter__(self) -> Iterator[Any]:
        import pyarrow as pa

        for batch in self._raw:
            columns = [self._cast(*each) for each in zip(batch.columns, self.schema, strict=True)]
            plain = pa.RecordBatch.from_arrays(columns, schema=self.schema)
            self._digest.add(plain, self.rows)
            self.rows += plain.num_rows
            yield plain

    def table(self) -> Any:
        """Return all that is left, in memory."""
        import pyarrow as pa

        return pa.Table.from_batches(list(self), schema=self.schema)

    def digest(self) -> str:
        """Return the digest of what was read."""
        return self._digest.hex()

    def _cast(self, column: Any, field: Any) -> Any:
        import pyarrow as pa

        column = column.storage if isinstance(column, pa.ExtensionArray) else column
        if column.type == field.type:
            return column
        if pa.types.is_fixed_size_binary(column.type):
            return pa.array([None if each is None else each.hex() for each in column.to_pylist()], field.type)
        try:
            return column.cast(field.type)
        except pa.ArrowInvalid as problem:
            why = str(problem).splitlines()[0]
            raise DataError(f"{self.shown}: column '{field.name}' is not {field.type} ({why})") from None


def _kind(field: Any) -> Any:
    """Return the type that a column is read as: exact decimals as numbers, ids of 16 bytes as text."""
    import pyarrow as pa

    kind = field.type.storage_type if isinstance(field.type, pa.BaseExtensionType) else field.type
    if pa.types.is_decimal(kind) or (field.metadata or {}).get(TYPNAME) == b"numeric":
        return pa.float64()
    if pa.types.is_fixed_size_binary(kind) or pa.types.is_string_view(kind):
        return pa.string()
    return pa.float64() if pa.types.is_null(kind) else kind


class Digest:
    """A hash of columns, fed batch by batch; where batches begin and end does not count."""

    def __init__(self, names: list[str]) -> None:
        self._names = names
        self._columns = [hashlib.sha256() for _ in names]

    def add(self, batch: Any, start: int) -> None:
        """Add a batch, whose first row is that of this number."""
        for column, hashed in zip(batch.columns, self._columns, strict=True):
            _feed(hashed, column, start)

    def hex(self) -> str:
        """Return the hash of all names and values so far."""
        whole = hashlib.sha256("\0".join(self._names).encode())
        for column in self._columns:
            whole.update(column.digest())
        return whole.hexdigest()


def _feed(hashed: Any, column: Any, start: int) -> None:
    """Feed the values of a column to its hash, and the places of gaps."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_dictionary(kind):
        return _feed(hashed, column.dictionary_decode(), start)
    if column.null_count:
        gaps = pc.indices_nonzero(column.is_null()).cast(pa.int64())
        hashed.update(b"-" + pc.add(gaps, start).buffers()[1])
        column = column.drop_null()
    if not len(column):
        return None
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind):
        lengths = pc.binary_length(column).cast(pa.int64())
        hashed.update(_bytes(lengths, 8))
        ends = np.frombuffer(column.buffers()[1], np.int64 if pa.types.is_large_string(kind) else np.int32)
        first, last = int(ends[column.offset]), int(ends[column.offset + len(column)])
        hashed.update(memoryview(column.buffers()[2] or b"")[first:last])
    elif pa.types.is_boolean(kind):
        hashed.update(_bytes(column.cast(pa.uint8()), 1))
    elif pa.types.is_nested(kind):  # which are refused when they are looked at
        hashed.update(repr(column.to_pylist()).encode())
    else:
        hashed.update(_bytes(column, kind.bit_width // 8))
    return None


def _bytes(column: Any, width: int) -> memoryview:
    """Return the bytes of values of a fixed width without gaps."""
    return memoryview(column.buffers()[1])[column.offset * width : (column.offset + len(column)) * width]
