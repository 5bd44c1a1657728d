"""The servers of the tests of sources, started once for all of them; and who buys what, as tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests import servers
from tests.servers import PASSWORD, Server

ROWS = 400
TOKEN = "hush-8-Okapi"  # noqa: S105  of the Flight SQL server


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """PostgreSQL with the table "customers"."""
    with servers.postgres() as server:
        server.sql(
            "create table customers (id text, age int, income numeric(10, 2), since date, town text, bad int)"
        )
        server.sql(f"insert into customers values {_values()}")
        server.sql("create table secrets (x int)")
        server.sql("grant select on customers to bank")
        yield server


@pytest.fixture(scope="session")
def mariadb() -> Iterator[Server]:
    """MariaDB with the same table."""
    with servers.mariadb() as server:
        server.sql(
            "create table customers (id text, age int, income decimal(10, 2), since date, town text, bad int)"
        )
        server.sql(f"insert into customers values {_values()}")
        yield server


@pytest.fixture(scope="session")
def s3() -> Iterator[str]:
    """S3; the end of an address that finds it."""
    with servers.s3() as end:
        yield end


@pytest.fixture(scope="session")
def gs() -> Iterator[str]:
    """A store that speaks as Google's; the end of an address that finds it."""
    with servers.gs() as end:
        yield end


@pytest.fixture(scope="session")
def abfs() -> Iterator[str]:
    """A store that speaks as Azure's; the end of an address that finds it."""
    with servers.abfs() as end:
        yield end


@pytest.fixture(scope="session")
def flight(customers: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where a Flight SQL server with the table "customers" is."""
    import pyarrow.parquet as pq

    path = tmp_path_factory.mktemp("flight") / "customers.parquet"
    pq.write_table(customers, path)
    with servers.flight({"customers": path}, TOKEN) as found:
        yield found


@pytest.fixture(autouse=True)
def _password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DB_PASSWORD", PASSWORD)
    monkeypatch.delenv("PGPASSWORD", raising=False)


@pytest.fixture
def sqlite(tmp_path: Path) -> str:
    """The address of SQLite's file with the same table, without a table."""
    import sqlite3

    path = tmp_path / "risk.db"
    with sqlite3.connect(path) as connection:
        connection.execute(
            "create table customers (id text, age int, income real, since text, town text, bad int)"
        )
        connection.execute(f"insert into customers values {_values()}")
    connection.close()
    return f"sqlite:{path}"


@pytest.fixture(scope="session")
def customers() -> Any:
    """What the tables hold, as pyarrow has it."""
    import pyarrow as pa

    return pa.table(dict(zip(NAMES, map(list, zip(*_rows(), strict=True)), strict=True)))


NAMES = ("id", "age", "income", "since", "town", "bad")


def _rows() -> list[tuple[Any, ...]]:
    rng = np.random.default_rng(3)
    age, income = rng.integers(18, 80, ROWS), rng.integers(100, 9000, ROWS) / 4
    bad = (age + rng.normal(0, 10, ROWS) > 50).astype(int)
    towns = rng.choice(["Ulm", "Bonn", "Köln"], ROWS)
    return [
        (
            f"C{k:04}",
            int(age[k]),
            None if k % 9 == 0 else float(income[k]),
            f"2020-{1 + k % 12:02}-15",
            str(towns[k]),
            int(bad[k]),
        )
        for k in range(ROWS)
    ]


def _values() -> str:
    """The same as SQL."""
    rows = [", ".join("null" if each is None else repr(each) for each in row) for row in _rows()]
    return ", ".join(f"({row})" for row in rows)
