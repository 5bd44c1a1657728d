"""Tables of real databases give what the same rows give as a file, and what goes wrong is one line."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.servers import PASSWORD, Server

from colonnade.data.read import databases
from colonnade.data.read.facts import cost_of, facts_of
from colonnade.data.read.files import load
from colonnade.data.read.source import read_table, size_of, stream
from colonnade.data.table import RawTable
from colonnade.errors import DataError
from colonnade.job.source import Address, source_of

KINDS = ["sqlite", "postgres", "mariadb"]


@pytest.fixture(params=KINDS)
def database(request: pytest.FixtureRequest) -> str:
    """The address of a database, up to the table."""
    found = request.getfixturevalue(request.param)
    return str(found) if isinstance(found, str) else found.address("")[:-1]


@pytest.fixture
def write(database: str, request: pytest.FixtureRequest) -> Callable[[str], object]:
    """What runs statements on the same database, on a connection of its own."""
    if not database.startswith("sqlite:"):
        found: Server = request.getfixturevalue(database.partition(":")[0].replace("postgresql", "postgres"))
        return found.sql
    path = database.removeprefix("sqlite:")

    def script(text: str) -> None:  # two libraries of SQLite in one process do not see each other's locks
        program = f"import sqlite3; sqlite3.connect({path!r}).executescript({text!r})"
        subprocess.run([sys.executable, "-c", program], check=True)

    script("pragma journal_mode = wal")
    return script


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
    before = load(f"{sqlite}#customers").reading.digest
    assert load(f"{sqlite}#customers").reading.digest == before
    with sqlite3.connect(sqlite.removeprefix("sqlite:")) as connection:
        connection.execute("update customers set age = age + 1 where id = 'C0007'")
    connection.close()
    assert load(f"{sqlite}#customers").reading.digest != before


def test_python_reads_a_table_as_arrow(postgres: Server) -> None:
    table = read_table(postgres.address("customers"))
    assert (table.num_rows, table.schema.field("income").type) == (400, pa.float64())


@pytest.mark.parametrize(
    ("kind", "types", "cost"),
    [
        ("postgres", "text id, town; int4 age, bad; numeric income; date since", "PostgreSQL expects "),
        (
            "sqlite",
            "text id, since, town; int age, bad; real income",
            "SQLite's plan, which has no cost: ",
        ),
        (
            "mariadb",
            "text id, town; int(11) age, bad; decimal(10,2) income; date since",
            r"MariaDB expects to look at \d+ rows of customers \(ALL\)",
        ),
    ],
)
def test_a_table_says_its_types_and_what_it_costs(
    kind: str, types: str, cost: str, request: pytest.FixtureRequest
) -> None:
    found = request.getfixturevalue(kind)
    address = found.address("customers") if isinstance(found, Server) else f"{found}#customers"
    said_types, said_cost = facts_of(source_of(address))
    assert said_types == f"types: {types}"
    assert re.match(cost, said_cost)


def test_a_query_has_types_too(database: str) -> None:
    """Also where it gives no row; what is computed has the type that it is read as, if no other is known."""
    query = "select age + 1 as older, c.id from customers c where 1 = 0 order by c.id;"
    types, *_ = facts_of(Address(database, query))
    assert re.fullmatch(r"types: (int\w+|no type) older; (text|string) id", types)


def test_other_databases_are_not_asked_what_a_query_costs() -> None:
    assert cost_of(Address("mssql://host/db?driver=x", "customers")) is None


def test_a_table_that_changes_while_it_is_read_is_read_in_one_state(
    database: str, write: Callable[[str], object]
) -> None:
    """A writer changes, adds and removes rows between two batches: nothing of it is seen."""
    numbers = "with recursive n(k) as (select 1 union all select k + 1 from n where k < 1000)"
    write(f"create table thousand (k int); insert into thousand {numbers} select k from n")
    wide = f"a.k, 0 as v, '{'-' * 300}' as pad"
    write(f"create table many as select {wide} from thousand a cross join thousand b where b.k <= 100")
    if database.startswith("postgresql:"):
        write("grant select on many to bank")
    try:
        with stream(Address(database, "many")) as batches:
            first = next(iter(batches))
            write("update many set v = 1; delete from many where k > 900; insert into many values (0, 1, '')")
            values = [first.column("v"), *(batch.column("v") for batch in batches)]
        assert first.num_rows < batches.rows == 100_000
        assert set(pa.chunked_array(values).unique().to_pylist()) == {0}
        assert set(read_table(f"{database}#many")["v"].unique().to_pylist()) == {1}
    finally:
        write("drop table many; drop table thousand")


def test_odbc_sees_the_state_in_which_its_transaction_began(
    mariadb: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if a writer comes between the transaction and the query; a driver that fetches a whole result at
    once, as MariaDB's does, would hide it between two batches."""
    import arrow_odbc

    mariadb.sql("create table moving as select 0 as v")

    def connect(**given: Any) -> Any:
        connection = real(**given)
        read = connection.read_arrow_batches

        def late(query: str, **others: Any) -> Any:
            if query.startswith("select"):
                mariadb.sql("update moving set v = 1")
            return read(query, **others)

        return SimpleNamespace(read_arrow_batches=late)

    real = arrow_odbc.connect
    monkeypatch.setattr(arrow_odbc, "connect", connect)
    assert read_table(mariadb.address("moving"))["v"].to_pylist() == [0]
    monkeypatch.undo()
    mariadb.sql("drop table moving")


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
