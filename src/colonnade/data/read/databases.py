"""Databases: read as record batches in one transaction that writes nothing, written to in one.

PostgreSQL, SQLite, Snowflake and Flight SQL are spoken to by their ADBC drivers, the others by ODBC. Each
driver is an extra and is imported here alone. What a driver says goes to the user in one line, without its
secrets.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from colonnade.data.read.batches import Batches
from colonnade.errors import DataError
from colonnade.job.source import ODBC, Address, FilledAddress, open_address

CONNECT_S = 10
"""Seconds in which a database must answer."""

BATCH = 2**16
"""Rows that are read together, where a driver asks for their number."""


class Driver(NamedTuple):
    """The package that speaks to a kind of database, and the extra that installs it."""

    module: str
    extra: str


ADBC = {
    "postgresql": Driver("adbc_driver_postgresql", "postgresql"),
    "postgres": Driver("adbc_driver_postgresql", "postgresql"),
    "sqlite": Driver("adbc_driver_sqlite", "sqlite"),
    "snowflake": Driver("adbc_driver_snowflake", "snowflake"),
    "flightsql": Driver("adbc_driver_flightsql", "flightsql"),
}
WRITABLE = ("postgresql", "postgres", "sqlite", "snowflake")  # all rows of a table in one transaction
DRIVERS = ADBC | dict.fromkeys(ODBC, Driver("arrow_odbc", "odbc"))
ODBC_DRIVERS = {
    "mariadb": "MariaDB Unicode",
    "mysql": "MariaDB Unicode",
    "mssql": "ODBC Driver 18 for SQL Server",
}
SNAPSHOT = dict.fromkeys(("mariadb", "mysql"), "start transaction with consistent snapshot, read only")
"""What makes an ODBC connection see one state of its database and write nothing, where that is known."""

FLIGHT_FILES = {"ca": "tls_root_certs", "cert": "mtls_cert_chain", "key": "mtls_private_key"}
"""Files that the address of a Flight SQL server may name, and what its driver calls their contents."""


@contextmanager
def opened(address: Address) -> Iterator[Batches]:
    """The rows of a table or query, read in one transaction while this is open."""
    with reading(address, statement(address)) as reader:
        yield Batches(str(address), reader.schema, iter(reader))


def size_of(address: Address) -> tuple[int, int]:
    """Return how many rows and columns there are, as the database counts them."""
    query = statement(address)
    with reading(address, f"select count(*) as n from ({query}) as counted") as reader:  # noqa: S608
        rows = sum(int(batch.column(0)[0].as_py()) for batch in reader)
    return rows, len(schema_of(address))


def schema_of(address: Address) -> Any:
    """Return the columns of a table or query, which is not read."""
    end = (
        "limit 1" if address.scheme == "flightsql" else "where 1 = 0"
    )  # a server may have no columns of no row
    with reading(address, f"select * from ({statement(address)}) as looked {end}") as reader:  # noqa: S608
        return reader.schema


def check_writable(address: Address) -> None:
    """Raise DataError unless the database answers, and a table can be named there."""
    if address.scheme not in WRITABLE:
        raise DataError(f"{address}: scores go to {', '.join(WRITABLE)} alone, or to a file")
    if address.query is not None:
        raise DataError(f"{address}: scores go to a table; write {address.uri}#TABLE")
    with connected(address, writes=True):
        pass


def write(address: Address, table: Any) -> None:
    """Add rows to a table of a database, which is made if it is not there: all of them or none."""
    schema, _, name = address.part.rpartition(".")
    with connected(address, writes=True) as (connection, opened_):
        try:
            with connection.cursor() as cursor:
                extra = {"db_schema_name": schema} if schema else {}
                cursor.adbc_ingest(name, table, mode="create_append", **extra)
            connection.commit()
        except _errors() as error:
            with suppress(*_errors()):
                connection.rollback()
            raise _failed(address, opened_, error) from None


def statement(address: Address) -> str:
    """Return the query that reads an address.

    >>> print(statement(Address("postgresql://host/db", "risk.The best")))
    select * from "risk"."The best"
    """
    if address.query is not None:
        return address.query.strip().rstrip(";")
    mark = "`" if address.scheme in ("mysql", "mariadb") else '"'
    names = [f"{mark}{part.replace(mark, mark * 2)}{mark}" for part in address.part.split(".")]
    return f"select * from {'.'.join(names)}"  # noqa: S608 names are quoted


@contextmanager
def reading(address: Address, query: str) -> Iterator[_Reader]:
    """The batches that a query gives; what goes wrong until the last of them names the address."""
    if address.scheme in ODBC:
        with _by_odbc(address, query) as reader:
            yield reader
        return
    with connected(address) as (connection, opened_), connection.cursor() as cursor:
        try:
            if address.scheme == "sqlite":  # which tells the type of a column from its first batch
                cursor.adbc_statement.set_options(**{"adbc.sqlite.query.batch_rows": str(BATCH)})
            elif query.startswith("explain"):
                cursor.adbc_statement.set_options(**{"adbc.postgresql.use_copy": "false"})
            cursor.execute(query)
            reader = cursor.fetch_record_batch()
        except _errors() as error:
            raise _failed(address, opened_, error) from None
        yield _Reader(address, opened_, reader)


class _Reader:
    """A reader of batches whose errors name the address."""

    def __init__(self, address: Address, opened_: FilledAddress, reader: Any) -> None:
        self.schema = reader.schema
        self._address, self._opened, self._reader = address, opened_, iter(reader)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        try:
            return next(self._reader)
        except _errors() as error:
            raise _failed(self._address, self._opened, error) from None

    def close(self) -> None:
        """Forget the reader, and with it what its connection keeps for it."""
        self._reader = iter(())


@contextmanager
def connected(address: Address, *, writes: bool = False) -> Iterator[tuple[Any, FilledAddress]]:
    """A connection by ADBC, with a transaction that sees one state of the database."""
    dbapi, found = _driver(address, "dbapi"), open_address(address)
    try:
        connection = _connection(dbapi, address, found, writes=writes)
    except _errors() as error:
        raise _failed(address, found, error) from None
    try:
        if address.scheme in ("postgresql", "postgres") and not writes:
            with connection.cursor() as cursor:
                cursor.execute("set transaction isolation level repeatable read, read only")
                cursor.execute("set local synchronize_seqscans = off")  # rows come in one order
        yield connection, found
    finally:
        with suppress(*_errors()):  # a server that is gone has nothing to close
            connection.close()


def _connection(dbapi: Any, address: Address, found: FilledAddress, *, writes: bool) -> Any:
    """Return a connection of a driver."""
    match address.scheme:
        case "postgresql" | "postgres":
            mark = "&" if "?" in found.uri else "?"
            late = "" if "connect_timeout" in found.uri else f"{mark}connect_timeout={CONNECT_S}"
            return dbapi.connect(found.uri + late)
        case "sqlite":
            if not writes and not Path(address.path).is_file():
                raise DataError(f"{address}: there is no file {address.path}")
            return dbapi.connect(f"file:{address.path}?mode={'rwc' if writes else 'ro'}")
        case "snowflake":
            return dbapi.connect(found.uri.removeprefix("snowflake://"))
        case "flightsql":
            uri, options = _flight(address, urlsplit(found.uri))
            return dbapi.connect(uri, options, autocommit=True)  # one statement, and few servers have more
        case other:
            raise DataError(f"{other}://: is not a database that ADBC supports")


def _flight(address: Address, parts: Any) -> tuple[str, dict[str, str]]:
    """Return where a Flight SQL server is, and what its driver is told: who asks, and whom to trust."""
    given = dict(parse_qsl(parts.query))
    kind = "grpc+tcp" if given.pop("tls", "true") == "false" else "grpc+tls"
    names = {"username": parts.username, "password": parts.password}
    options = {key: unquote(value) for key, value in names.items() if value is not None}
    if "token" in given:
        options["adbc.flight.sql.authorization_header"] = f"Bearer {given.pop('token')}"
    for key in given.keys() & FLIGHT_FILES.keys():
        path = Path(given.pop(key)).expanduser()
        try:
            options[f"adbc.flight.sql.client_option.{FLIGHT_FILES[key]}"] = path.read_text("ascii")
        except (OSError, UnicodeDecodeError) as problem:
            raise DataError(f"{address}: {key}={path} cannot be read ({problem})") from None
    return f"{kind}://{parts.netloc.rpartition('@')[2]}", options | given


@contextmanager
def _by_odbc(address: Address, query: str) -> Iterator[_Reader]:
    """The batches of a query by ODBC."""
    arrow_odbc, found = _driver(address), open_address(address)
    parts = urlsplit(found.uri)
    try:
        connection = arrow_odbc.connect(
            connection_string=_connection_string(address, parts),
            user=None if parts.username is None else unquote(parts.username),
            password=None if parts.password is None else unquote(parts.password),
            login_timeout_sec=CONNECT_S,
        )
        if address.scheme in SNAPSHOT:
            connection.read_arrow_batches(SNAPSHOT[address.scheme])
        reader = connection.read_arrow_batches(query, batch_size=BATCH)
    except _errors() as error:
        raise _failed(address, found, error) from None
    read = _Reader(address, found, reader)
    try:
        yield read
    finally:
        read.close()
        if address.scheme in SNAPSHOT:  # others may not wait until this connection is forgotten
            with suppress(*_errors()):
                connection.read_arrow_batches("rollback")


def _connection_string(address: Address, parts: Any) -> str:
    """Return what ODBC connects with: a data source of its own settings, or driver, server and database."""
    given = dict(parse_qsl(parts.query))
    if address.scheme == "odbc":
        return "".join(f"{key}={value};" for key, value in {"DSN": parts.hostname, **given}.items())
    driver = given.pop("driver", ODBC_DRIVERS.get(address.scheme))
    if driver is None:
        raise DataError(f"{address}: add ?driver=NAME, as odbcinst.ini calls it")
    words = {"Driver": f"{{{driver}}}", "Server": parts.hostname or "localhost"}
    words |= {"Port": str(parts.port)} if parts.port else {}
    words |= {"Database": parts.path.strip("/")} if parts.path.strip("/") else {}
    return "".join(f"{key}={value};" for key, value in (words | given).items())


def _driver(address: Address, part: str = "") -> Any:
    """Return the package that speaks to a database; DataError with the extra to install if it is not here."""
    module, extra = DRIVERS[address.scheme]
    try:
        return import_module(f"{module}.{part}" if part else module)
    except ImportError:
        raise DataError(f"{address}: {module} is not installed; pip install 'colonnade[{extra}]'") from None
    except OSError as problem:  # the wheel of arrow_odbc leaves the driver manager to the system
        raise DataError(
            f"{address}: {module} lacks a library of the system ({problem}); "
            "install unixODBC (Debian: unixodbc)"
        ) from None


def _errors() -> tuple[type[BaseException], ...]:
    """Return what the drivers that are loaded raise."""
    import pyarrow as pa

    loaded = [sys.modules[name] for name in ("adbc_driver_manager", "arrow_odbc") if name in sys.modules]
    return (pa.ArrowException, OSError, *(module.Error for module in loaded))


def _failed(address: Address, found: FilledAddress, error: BaseException) -> DataError:
    """Return what a driver said, in one line that names the address."""
    text = found.hidden(" ".join(str(error).split()))
    text = re.sub(r"^([A-Z_]+: )?(\[libpq\] |\[SQLite\] )?", "", text)
    text = re.sub(r" (LINE \d+: |Query was: |Is the server running ).*", "", text)  # said twice
    return DataError(f"{address}: {text[:300]}")
