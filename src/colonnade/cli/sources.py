"""Sources on the command line: paths, and addresses of databases and stores; where scores go."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from colonnade.job.source import CATALOGUES, source_of

if TYPE_CHECKING:
    from colonnade.job.source import Source


class SourceType(click.ParamType["Source"]):
    """A path or an address; one with a password in it is refused, without repeating it."""

    name = "source"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Source:
        """Return what a word of the command line names."""
        return source_of(value)


SOURCE = SourceType()


def check_target(target: Source) -> None:
    """Refuse a place where scores cannot be written, before any work is done for them."""
    from colonnade.cli.folder import check_file
    from colonnade.data.read import databases, objects
    from colonnade.errors import DataError

    if isinstance(target, Path):
        check_file(target)
    elif target.is_database:
        databases.check_writable(target)
    elif target.scheme in CATALOGUES or Path(target.path).suffix not in (".csv", ".parquet"):
        raise DataError(f"{target}: scores are written as .csv or .parquet")
    else:
        objects.check_writable(target)


@contextmanager
def written(target: Source) -> Iterator[Path]:
    """A file of this machine to write scores to; once it is whole they are at their place, all or none.

    Its ending says how: .csv or .parquet. What goes to a database is read from the file.
    """
    from colonnade.data.read import databases, objects
    from colonnade.disk import drafted

    if isinstance(target, Path):
        with drafted(target) as draft:
            yield draft
        return
    with TemporaryDirectory(prefix="colonnade-scores-") as folder:
        draft = Path(folder) / f"scores{'.parquet' if target.is_database else Path(target.path).suffix}"
        yield draft
        if target.is_database:
            import pyarrow.parquet as pq

            databases.write(target, pq.read_table(draft))
        else:
            objects.upload(target, draft)
