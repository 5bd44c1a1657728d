"""Objects in stores (s3://, gs://, abfs://, hdfs://), and Parquet in folders and files that a * names.

Parquet is read as record batches, wherever it lies. An object of another format is copied to this machine and
read like any file. Stores are opened by pyarrow, which looks for keys where the store's own tools do.
"""

from __future__ import annotations

import fnmatch
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from colonnade.data.read.batches import Batches
from colonnade.data.read.lakes import delta_table
from colonnade.errors import DataError
from colonnade.job.source import Address, FilledAddress, Source, open_address

PARQUET = (".parquet", ".pq")
BATCH = 2**16


def is_parquet(source: Source) -> bool:
    """Return whether a source is Parquet in a store, or in several files: a folder, or what a * names."""
    if isinstance(source, Path):
        return "*" in source.name or (source.is_dir() and any(source.rglob("*.parquet")))
    name = source.path.rpartition("/")[2]
    return "*" in name or "." not in name or name.endswith(PARQUET)


@contextmanager
def opened(source: Source) -> Iterator[Batches]:
    """The rows of Parquet files, one file after the other in the order of their names."""
    with _understood(source):
        found = _dataset(source)
        # few batches ahead: as many as fit a small memory
        scanner = found.scanner(batch_size=BATCH, batch_readahead=2, fragment_readahead=1)
        reader = scanner.to_reader()
    yield Batches(str(source), reader.schema, _named(source, iter(reader)))


def size_of(source: Source) -> tuple[int, int]:
    """Return how many rows and columns Parquet files have, by what they say of themselves."""
    with _understood(source):
        found = _dataset(source)
        return int(found.count_rows()), len(found.schema)


def about(source: Source) -> tuple[Any, int, int]:
    """Return the columns of Parquet files with their types, how many files there are, and their bytes."""
    with _understood(source):
        found = _dataset(source)
        sizes = [each.size for each in found.filesystem.get_file_info(found.files)]
        return found.schema, len(sizes), sum(sizes)


@contextmanager
def copied(address: Address) -> Iterator[Path]:
    """A copy of an object on this machine, which goes when this ends; errors name the object."""
    with tempfile.TemporaryDirectory(prefix="colonnade-object-") as folder:
        local = Path(folder) / address.name
        with _understood(address):
            store, path = _store(address)
            with store.open_input_stream(path, compression=None) as stream, local.open("wb") as file:
                shutil.copyfileobj(stream, file, 1 << 20)
        try:
            yield local
        except DataError as error:
            raise DataError(str(error).replace(str(local), str(address))) from None


def check_writable(address: Address) -> None:
    """Raise DataError unless the place for an object is there."""
    from pyarrow.fs import FileType

    with _understood(address):
        store, path = _store(address)
        bucket = path.partition("/")[0]
        if store.get_file_info(bucket).type == FileType.NotFound:
            raise DataError(f"{address}: there is no {bucket}; make it first")


def upload(address: Address, local: Path) -> None:
    """Write a file of this machine as an object, which is there once it is whole."""
    with _understood(address):
        store, path = _store(address)
        draft = f"{path}.part"  # a stream that fails is closed, and a store then shows what has come of it
        try:
            with local.open("rb") as file, store.open_output_stream(draft, compression=None) as stream:
                shutil.copyfileobj(file, stream, 1 << 20)
            _move(store, draft, path)
        except BaseException:
            with suppress(OSError):
                store.delete_file(draft)
            raise


def _move(store: Any, draft: str, path: str) -> None:
    """Give an object another name, in one piece."""
    try:
        store.move(draft, path)
    except NotImplementedError:  # an account of Azure that has no folders can only copy
        store.copy_file(draft, path)
        store.delete_file(draft)


def _dataset(source: Source) -> Any:
    """Return Parquet files as one data set; columns may stand in names of folders, as country=NL.

    A folder that is a Delta table has the files that the table has now.
    """
    import pyarrow.dataset as ds

    store, path = _store(source)
    if "*" not in path and (table := delta_table(source, store, path)) is not None:
        return table
    paths = _matching(store, path) if "*" in path else path
    if not paths:
        raise DataError(f"{source}: no file has such a name")
    options = {"exclude_invalid_files": False, "partitioning": "hive", "format": "parquet"}
    found = ds.dataset(paths, filesystem=store, **options)
    if not found.files:
        raise DataError(f"{source}: there are no Parquet files")
    return found


def _matching(store: Any, pattern: str) -> list[str]:
    """Return the files whose names a pattern matches, sorted."""
    from pyarrow.fs import FileSelector, FileType

    folder = str(PurePosixPath(pattern).parent)
    if "*" in folder:
        raise DataError(f"{pattern}: a * may stand in the last part of a path alone")
    inside = store.get_file_info(FileSelector(folder))
    return sorted(
        each.path for each in inside if each.type == FileType.File and fnmatch.fnmatch(each.path, pattern)
    )


def _store(source: Source) -> tuple[Any, str]:
    """Return the store of a source, and the path within it."""
    from pyarrow import fs

    if isinstance(source, Path):
        return fs.LocalFileSystem(), str(source.absolute())
    uri = open_address(source).uri
    uri = uri.replace("gcs://", "gs://", 1) if uri.startswith("gcs://") else uri
    store, path = fs.FileSystem.from_uri(uri.replace("*", "%2A"))
    return _azure(uri) or store, path


def _azure(uri: str) -> Any | None:
    """Return Azure's store of an address with an account's key, which pyarrow's own reading passes over."""
    parts = urlsplit(uri)
    if not parts.scheme.startswith("abfs") or not parts.password or parts.hostname is None:
        return None
    from pyarrow.fs import AzureFileSystem

    given = dict(parse_qsl(parts.query))
    account, _, domain = parts.hostname.partition(".")
    kinds = ("blob_storage", "dfs_storage")
    options = {
        f"{kind}_authority": given[f"{kind}_authority"] for kind in kinds if f"{kind}_authority" in given
    }
    if given.get("enable_tls") == "false":
        options |= {f"{kind}_scheme": "http" for kind in kinds}
    name = (
        account if domain else str(parts.username)
    )  # CONTAINER:KEY@ACCOUNT.dfs..., or ACCOUNT:KEY@CONTAINER
    return AzureFileSystem(name, account_key=unquote(parts.password), **options)


def _named(source: Source, batches: Iterator[Any]) -> Iterator[Any]:
    """Yield the same batches; what goes wrong while they are read names the source."""
    while True:
        with _understood(source):
            batch = next(batches, None)
        if batch is None:
            return
        yield batch


@contextmanager
def _understood(source: Source) -> Iterator[None]:
    """Turn what a store says into one line that names the source, without secrets."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, ValueError, NotImplementedError) as error:
        if isinstance(error, DataError):
            raise
        found = open_address(source) if isinstance(source, Address) else FilledAddress("", ())
        text = found.hidden(" ".join(str(error).split()))
        raise DataError(f"{source}: cannot be read or written ({text[:300]})") from None
