"""The one seam of sources: what is read as a stream of batches, how large it is, and where results go.

A local file is read by `files`; all else comes through here: tables and queries of databases, tables of
lakes, Parquet in folders and stores, other objects as copies. `job/source.py` says how each is written.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from colonnade.data.read import databases, lakes, objects
from colonnade.data.read.batches import Batches
from colonnade.job.source import CATALOGUES, Address, Source, source_of


def is_stream(source: Source) -> bool:
    """Return whether a source is read as batches: a table, or Parquet that is not one local file."""
    return _is_table(source) or objects.is_parquet(source)


def stream(source: Source) -> AbstractContextManager[Batches]:
    """Return the batches of a source, while it is open."""
    match source:
        case Address(is_database=True):
            return databases.opened(source)
        case Address(scheme="iceberg"):
            return lakes.opened(source)
        case _:
            return objects.opened(source)


def size_of(source: Source) -> tuple[int, int]:
    """Return how many rows and columns a stream has, without reading them."""
    match source:
        case Address(is_database=True):
            return databases.size_of(source)
        case Address(scheme="iceberg"):
            return lakes.size_of(source)
        case _:
            return objects.size_of(source)


def read_table(text: str) -> Any:
    """Return all rows of a table, query, Parquet file or folder as a pyarrow table.

    Estimators take it as it is: `VerticalClassifier().fit(read_table("postgresql://host/db#x"), y)`.
    """
    with stream(source_of(text)) as batches:
        return batches.table()


def _is_table(source: Source) -> bool:
    return isinstance(source, Address) and (source.is_database or source.scheme in CATALOGUES)
