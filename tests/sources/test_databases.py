"""Tables of real databases give what the same rows give as a file, and what goes wrong is one line."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.servers import PASSWORD, Server

from colonnade.data.read import databases
from colonnade.data.read.databases import cost_of
from colonnade.data.read.files import load
from colonnade.data.read.source import read_table, size_of
from colonnade.data.table import RawTable
from colonnade.errors import DataError
from colonnade.job.source import Address

KINDS = ["sqlite", "postgres", "mariadb"]


@pytest.fixture(params=KINDS)
def database(request: pytest.FixtureRequest) -> str:
    """The address of a database, up to the table."""
    found = request.getfixturevalue(request.param)
    return str(found) if isinstance(found, str) else found.address("")[:-1]


def same(one: RawTable, other: RawTable) -> None:
    assert one.columns == other.columns
    assert one.rows == other.rows
    assert one.ids is not None
    assert other.ids is not None
    assert one.ids.tolist() == other.ids.tolist()
    for name in one.columns:
        np.testing.assert_array_equal(one.column(name), other.column(name))
    np.testing.assert_array_equal(np.asarray(one.y), np.asarray(other.y))


def test_a_table_is_read_as_a_file_of_its_rows(database: str, customers: Any, tmp_path: Path) -> None:
    pq.write_table(customers, tmp_path / "customers.parquet")
    file = load(tmp_path / "customers.parquet", label="bad", id="id")
    found = load(f"{database}#customers", label="bad", id="id")
    same(found, file)
    assert found.name == "customers"
    assert size_of(Address(database, "customers")) == (400, 6)


def test_a_query_chooses_rows_and_columns(database: str, customers: Any) -> None:
    found = load(f"{database}#select id, age, bad from customers where age > 50 order by id", id="id")
    wanted = customers.filter(pa.compute.greater(customers["age"], 50))
    assert found.columns == ("age", "bad")
    np.testing.assert_array_equal(found.column("age"), wanted["age"].to_numpy())


def test_what_was_read_has_a_digest_that_a_changed_value_changes(sqlite: str) -> None:
    import sqlite3

    before = load(f"{sqlite}#customers").reading.digest
    assert load(f"{sqlite}#customers").reading.digest == before
    with sqlite3.connect(sqlite.removeprefix("sqlite:")) as connection:
        connection.execute("update customers set age = age + 1 where id = 'C0007'")
    connection.close()
    assert load(f"{sqlite}#customers").reading.digest != before


def test_python_reads_a_table_as_arrow(postgres: Server) -> None:
    table = read_table(postgres.address("customers"))
    assert (table.num_rows, table.schema.field("income").type) == (400, pa.float64())


def test_postgresql_says_what_a_query_costs(postgres: Server) -> None:
    said = cost_of(Address(postgres.address("")[:-1], "select * from customers"))
    assert said is not None
    assert "PostgreSQL expects" in said


def test_types_of_postgresql(postgres: Server) -> None:
    query = (
        "select 1::smallint as a, 2.5::numeric as b, true as c, 'x'::varchar as d, null::float8 as e, "
        "'6d9b0f5e-9b0b-4c37-8b1c-0d7b8e6f0a11'::uuid as f, timestamptz '2020-01-02 00:00+00' as g"
    )
    raw = load(postgres.address(query))
    assert [raw.column(c)[0] for c in "abcd"] == [1, 2.5, 1, "x"]
    assert np.isnan(np.asarray(raw.column("e"), dtype=float)[0])
    assert raw.column("f")[0] == "6d9b0f5e9b0b4c378b1c0d7b8e6f0a11"
    assert raw.column("g")[0] == 18263


@pytest.mark.parametrize(
    ("part", "user", "said"),
    [
        ("customer", "bank:{DB_PASSWORD}", 'relation "customer" does not exist'),
        ("select * frm customers", "bank:{DB_PASSWORD}", 'syntax error at or near "frm"'),
        ("secrets", "bank:{DB_PASSWORD}", "permission denied for table secrets"),
        ("customers", "bank:{WRONG}", 'password authentication failed for user "bank"'),
        ("delete from customers", "bank:{DB_PASSWORD}", "does not exist"),
        ("with gone as (delete from customers returning *) select * from gone", "bank:{DB_PASSWORD}", "COPY"),
    ],
)
def test_what_postgresql_refuses_is_one_line(
    postgres: Server, part: str, user: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WRONG", "Walrus-99")
    with pytest.raises(DataError) as caught:
        load(postgres.address(part, user=user))
    text = str(caught.value)
    assert text.startswith(f"postgresql://{user}@127.0.0.1")
    assert said in text
    assert PASSWORD not in text
    assert "Walrus" not in text
    assert "\n" not in text


def test_a_dead_host_is_one_line() -> None:
    with pytest.raises(DataError, match="Connection refused"):
        load("postgresql://bank:{DB_PASSWORD}@127.0.0.1:9/risk#customers")


def test_mariadb_refuses_a_wrong_password(mariadb: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WRONG", "Walrus-99")
    with pytest.raises(DataError, match="Access denied for user 'bank'") as caught:
        load(mariadb.address("customers", user="bank:{WRONG}"))
    assert "Walrus" not in str(caught.value)


def test_a_database_without_its_driver_names_the_extra() -> None:
    with pytest.raises(DataError, match=r"pip install 'colonnade\[snowflake\]'"):
        load("snowflake://account/db#t")


def test_without_the_libraries_of_odbc_other_databases_are_read(
    sqlite: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wheel of arrow_odbc is also installed where there is no driver manager, and fails to load there."""

    def without(name: str) -> Any:
        if name.startswith("arrow_odbc"):
            raise OSError("libodbc.so.2: cannot open shared object file")
        return import_module(name)

    monkeypatch.setattr(databases, "import_module", without)
    monkeypatch.delitem(sys.modules, "arrow_odbc", raising=False)
    with pytest.raises(DataError, match=r"no such table"):
        read_table(f"{sqlite}#nothing")
    with pytest.raises(DataError, match=r"install unixODBC \(Debian: unixodbc\)"):
        read_table("mysql://localhost/db#people")
