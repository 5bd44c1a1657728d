"""Tables of lakes: Delta tables, which are folders, and Iceberg tables, which a catalogue names.

Both are Parquet files of which a log says which belong to the table now. Their folder is never read as a
folder of Parquet: it would bring back rows that were deleted. Each is read in the state that it is opened in.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from colonnade.data.read.batches import Batches
from colonnade.errors import DataError
from colonnade.job.source import SECRET_KEYS, Address, FilledAddress, Source, open_address


def delta_table(source: Source, store: Any, path: str) -> Any | None:
    """Return the files of a Delta table as a data set of pyarrow; None if the folder is no Delta table."""
    from pyarrow.fs import FileSelector, FileType, SubTreeFileSystem

    log = store.get_file_info(f"{path}/_delta_log")
    about = store.get_file_info(FileSelector(f"{path}/metadata", allow_not_found=True))
    if any(each.path.endswith(".metadata.json") for each in about):
        raise DataError(
            f"{source}: is the folder of an Iceberg table, and not every row in it is the table's; write "
            "iceberg://CATALOG#NAMESPACE.TABLE"
        )
    if log.type != FileType.Directory:
        return None
    try:
        from deltalake import DeltaTable
    except ImportError:
        raise _lacks(source, "deltalake", "delta") from None
    with _understood(source, FilledAddress("", ())):
        table = DeltaTable(*_place(source, path))
        return table.to_pyarrow_dataset(filesystem=SubTreeFileSystem(path, store))


@contextmanager
def opened(address: Address) -> Iterator[Batches]:
    """The rows of an Iceberg table, as they are now."""
    secrets, scan = _scan(address)
    with _understood(address, secrets):
        reader = scan.to_arrow_batch_reader()
    yield Batches(str(address), reader.schema, _named(address, secrets, iter(reader)))


def size_of(address: Address) -> tuple[int, int]:
    """Return how many rows and columns an Iceberg table has, by what its files say of themselves."""
    secrets, scan = _scan(address)
    with _understood(address, secrets):
        return int(scan.count()), len(scan.projection().fields)


def types_of(address: Address) -> list[tuple[str, str]]:
    """Return the columns of an Iceberg table with their types."""
    _, scan = _scan(address)
    return [(field.name, str(field.field_type)) for field in scan.projection().fields]


def _place(source: Source, path: str) -> tuple[str, None, dict[str, str]]:
    """Return where the reader of a Delta table's log finds it: address, version (the newest), options."""
    if not isinstance(source, Address):
        return path, None, {}
    if source.scheme not in ("s3", "gs", "gcs"):
        raise DataError(f"{source}: a Delta table is read of this machine, s3:// or gs://")
    given = dict(parse_qsl(urlsplit(open_address(source).uri).query))
    options = {"AWS_REGION": given["region"]} if "region" in given else {}
    if "endpoint_override" in given:
        kind = given.get("scheme", "https")
        options |= {"AWS_ENDPOINT_URL": f"{kind}://{given['endpoint_override']}"}
        options |= {"AWS_ALLOW_HTTP": "true"} if kind == "http" else {}
    return f"{source.scheme}://{path}", None, options


def _scan(address: Address) -> tuple[FilledAddress, Any]:
    """Return what reads an Iceberg table, of a catalogue as pyiceberg's own settings describe it."""
    try:
        from pyiceberg.catalog import load_catalog
        from pyiceberg.utils.config import Config
    except ImportError:
        raise _lacks(address, "pyiceberg", "iceberg") from None
    name = urlsplit(address.uri).netloc
    settings: dict[str, Any] = dict(Config().get_catalog_config(name) or {})
    if not settings:
        raise DataError(
            f"{address}: pyiceberg's settings have no catalogue {name}; describe it in ~/.pyiceberg.yaml or "
            f"in PYICEBERG_CATALOG__{name.upper()}__URI"
        )
    values = [str(value) for key, value in settings.items() if SECRET_KEYS.search(key)]
    password = urlsplit(str(settings.get("uri", ""))).password
    secrets = FilledAddress("", (*values, *([password] if password else [])))
    with _understood(address, secrets), load_catalog(name, **settings) as catalogue:
        return secrets, catalogue.load_table(address.part).scan()


def _named(address: Address, secrets: FilledAddress, batches: Iterator[Any]) -> Iterator[Any]:
    """Yield the same batches; what goes wrong while they are read names the table."""
    while True:
        with _understood(address, secrets):
            batch = next(batches, None)
        if batch is None:
            return
        yield batch


def _lacks(source: Source, package: str, extra: str) -> DataError:
    return DataError(f"{source}: needs {package}, which is not installed; pip install 'colonnade[{extra}]'")


@contextmanager
def _understood(source: Source, secrets: FilledAddress) -> Iterator[None]:
    """Turn what a table's reader says into one line that names the source, without secrets."""
    try:
        yield
    except DataError:
        raise
    except Exception as error:  # catalogues and logs raise errors of many packages, which share no class
        text = secrets.hidden(" ".join(str(error).split()))
        raise DataError(f"{source}: cannot be read ({type(error).__name__}: {text[:300]})") from None
