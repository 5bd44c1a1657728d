"""What a source of columns is: a path of this machine, a database's table or query, or an object in a store.

    bank.csv, parts/*.parquet, parts/             a file, files, a folder of Parquet files
    postgresql://host/db#customers                a table of a database
    postgresql://host/db#select ... from ...      what a query gives
    iceberg://risk#bank.customers                 a table of a catalogue
    s3://bucket/customers.parquet                 an object, or with * or as a folder several

In a job file a database may also be a table of TOML, {uri = "...", table = "..."} or with query = "...". An
address never has a password in it: {NAME} stands for an environment variable, {file:PATH} for a file's
content, {keyring:SERVICE/USER} for an entry of the keyring of the platform. What they stand for is looked
up only where a connection is made.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qsl, quote, unquote

from colonnade.errors import DataError, JobError, suggest

ODBC = ("mariadb", "mysql", "mssql", "oracle", "odbc")
DATABASES = ("postgresql", "postgres", "sqlite", "snowflake", "flightsql", *ODBC)
CATALOGUES = ("iceberg",)
STORES = ("s3", "gs", "gcs", "abfs", "abfss", "hdfs", "viewfs")

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(?=//)|(sqlite):")
_QUERY = re.compile(r"\s*(select|with|values)\b", re.IGNORECASE)
_REFERENCE = re.compile(r"\{(file:|keyring:)?([^{}]+)\}")
_WITH_PASSWORD = re.compile(r"(\w+://[^:@/]*):(.*)@", re.DOTALL)
_PORT = re.compile(r"\d+(/[^@?#]*)?[?#]")
SECRET_KEYS = re.compile(r"password|passwd|pwd|passphrase|secret|token|account_key|access_key", re.IGNORECASE)


@dataclass(frozen=True)
class Address:
    """Where columns lie that are in no file of this machine; `part` is a database's table or query."""

    uri: str
    part: str = ""

    def __str__(self) -> str:
        return f"{self.uri}#{self.part}" if self.part else self.uri

    @property
    def scheme(self) -> str:
        """The kind of database or store."""
        return self.uri.partition(":")[0]

    @property
    def is_database(self) -> bool:
        """Whether this is a table or a query."""
        return self.scheme in DATABASES

    @property
    def query(self) -> str | None:
        """The query, where it is one and no table."""
        return self.part if _QUERY.match(self.part) else None

    @property
    def path(self) -> str:
        """What stands between host and parameters; of SQLite the path of its file."""
        plain = self.uri.partition(":")[2].partition("?")[0]
        return re.sub(r"^//(?=/|[^/]*$)", "", plain) if self.scheme == "sqlite" else plain.lstrip("/")

    @property
    def name(self) -> str:
        """A short name: of the table, the object or, for a query, the database."""
        if self.part and self.query is None:
            return self.part
        return self.path.rstrip("/").rpartition("/")[2] or self.scheme

    def beside(self, folder: Path) -> Address:
        """Return the same; SQLite's file, where its path is relative, in this folder."""
        if self.scheme != "sqlite" or Path(self.path).is_absolute():
            return self
        return replace(self, uri=self.uri.replace(self.path, str(folder / self.path), 1))


class FilledAddress(NamedTuple):
    """An address with what its references stand for: never shown, stored or passed on to a process."""

    uri: str
    secrets: tuple[str, ...]

    def hidden(self, text: str) -> str:
        """Return a text, such as an error of a driver, without the secrets."""
        for secret in sorted({*self.secrets, *(quote(each, safe="") for each in self.secrets)}, key=len):
            text = text.replace(secret, "***") if secret else text
        return text


Source = Path | Address


def source_of(text: str | Path | Address) -> Source:
    """Return what a text names; DataError for what is neither a path nor an address that can be read.

    >>> source_of("bank.csv"), source_of("postgresql://db.bank/risk#customers")
    (PosixPath('bank.csv'), Address(uri='postgresql://db.bank/risk', part='customers'))
    """
    if not isinstance(text, str):
        return text
    if (found := _SCHEME.match(text)) is None:
        return Path(text)
    scheme = (found[1] or found[2]).lower()
    if scheme not in DATABASES + CATALOGUES + STORES:
        known = sorted({*DATABASES, *CATALOGUES, *STORES})
        raise DataError(f"{scheme}://: is not a kind of source; {suggest(scheme, known)}")
    _refuse_passwords(text, scheme)
    uri, _, part = text.partition("#")
    address = Address(scheme + uri[len(scheme) :], part.strip())
    if scheme in CATALOGUES and (not address.part or address.query is not None):
        raise DataError(f"{address}: names no table; write {address.uri}#NAMESPACE.TABLE")
    if address.is_database and not address.part:
        raise DataError(
            f"{address}: names no table; write {address.uri}#TABLE, or a query in its place: select ..."
        )
    if scheme in STORES and address.part:
        raise DataError(f"{address}: has a #, and objects in a store have no tables; leave it out")
    return address


def checked_text(given: object, where: str) -> object:
    """Return a source as a text, also where a job has it as a table of TOML; JobError if it cannot be one.

    What is neither a text nor a table is left to the check of types.
    """
    text = _joined(given, where) if isinstance(given, Mapping) else given
    if isinstance(text, str):
        try:
            source_of(text)
        except DataError as error:
            raise JobError(f"{where}: {error}") from None
    return text


def _joined(given: Mapping[str, object], where: str) -> str:
    """Return {uri = "...", table = "..."} as one text."""
    for key in given:
        if key not in ("uri", "table", "query"):
            raise JobError(f"{where}.{key}: unknown key; a source has uri, and table or query of a database")
    uri, parts = given.get("uri"), [str(given[key]) for key in ("table", "query") if key in given]
    if not isinstance(uri, str) or len(parts) > 1:
        raise JobError(f'{where}: write {{uri = "...", table = "..."}} or {{uri = "...", query = "..."}}')
    if "query" in given and not _QUERY.match(parts[0]):
        raise JobError(f"{where}.query: a query begins with select, with or values; a table's key is table")
    return "#".join([uri, *parts])


def open_address(address: Address) -> FilledAddress:
    """Return an address with its secrets looked up; DataError for one that is not there."""
    secrets: list[str] = []

    def looked_up(reference: re.Match[str]) -> str:
        secrets.append(_secret(address, reference[1], reference[2]))
        return quote(secrets[-1], safe="")

    uri = _REFERENCE.sub(looked_up, address.uri)
    return FilledAddress(uri, tuple(secrets))


def _secret(address: Address, kind: str | None, name: str) -> str:
    """Return what a reference stands for."""
    if kind == "keyring:":
        return _of_keyring(address, name)
    if kind == "file:":
        try:
            return Path(name).expanduser().read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as problem:
            why = problem.strerror if isinstance(problem, OSError) else "it is not text"
            raise DataError(f"{address}: {{file:{name}}} cannot be read: {why}") from None
    if name not in os.environ:
        raise DataError(f"{address}: there is no environment variable {name}; set it before this starts")
    return os.environ[name]


def _of_keyring(address: Address, name: str) -> str:
    """Return the password that the keyring of this platform has for a service and a user."""
    try:
        import keyring
        from keyring.errors import KeyringError
    except ImportError:
        raise DataError(
            f"{address}: needs keyring, which is not installed; pip install 'colonnade[keyring]'"
        ) from None
    service, mark, user = name.rpartition("/")
    if not mark:
        raise DataError(f"{address}: {{keyring:{name}}} names no user; write {{keyring:SERVICE/USER}}")
    try:
        found: str | None = keyring.get_password(service, user)
    except KeyringError as problem:
        why = " ".join(str(problem).split())[:200]
        raise DataError(f"{address}: {{keyring:{name}}} cannot be read: {why}") from None
    if found is None:
        raise DataError(f"{address}: the keyring has no {name}; keyring set {service} {user} puts it there")
    return found


def _refuse_passwords(text: str, scheme: str) -> None:
    """Refuse an address with a password in it, without repeating it, and say what to write instead."""
    head = text.split(maxsplit=1)[0]
    plain = _REFERENCE.sub("", head)
    found = _WITH_PASSWORD.match(plain)
    if found is not None and found[2] and not _PORT.match(found[2]):
        user, rest = found[1], plain[found.end() :]
        if scheme in STORES:
            instead = f"{scheme}://{rest}, with the keys where the store's own tools look for them"
        else:
            instead = f"{user}:{{DB_PASSWORD}}@{rest}, with the password in the environment as DB_PASSWORD"
        raise DataError(f"{user}:...@{rest}: has a password in it, which others could read; write {instead}")
    for key, value in parse_qsl(plain.partition("?")[2].partition("#")[0]):
        if SECRET_KEYS.search(key) and unquote(value):
            raise DataError(
                f"{plain.partition('?')[0]}: has {key} in it, which others could read; write "
                f"{key}={{DB_SECRET}}, with its value in the environment as DB_SECRET"
            )
