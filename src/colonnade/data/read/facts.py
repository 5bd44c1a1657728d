"""What a source says of itself before it is read: the types of its columns, and what reading it costs.

A database that says neither in a form that was tried has the types that its driver reads, and no cost.
"""

from __future__ import annotations

import json
from typing import Any

from colonnade.data.read import lakes, objects
from colonnade.data.read.databases import connected, reading, schema_of, statement
from colonnade.data.read.source import is_stream
from colonnade.data.table import some
from colonnade.job.source import CATALOGUES, Address, Source

TYPE = b"POSTGRESQL:type"  # where PostgreSQL's driver has the name of a column's type


def facts_of(source: Source) -> list[str]:
    """Return a line on the types of a stream's columns, and one on its cost where that is known."""
    if not is_stream(source):
        return []
    if isinstance(source, Address) and source.is_database:
        types, cost = types_of(source), cost_of(source)
    elif isinstance(source, Address) and source.scheme in CATALOGUES:
        types, cost = lakes.types_of(source), None
    else:
        schema, files, size = objects.about(source)
        types = [(field.name, str(field.type)) for field in schema]
        cost = f"{files:,} Parquet file{'s' if files > 1 else ''}, {size:,} bytes"
    return [f"types: {_grouped(types)}", *([cost] if cost else [])]


def types_of(address: Address) -> list[tuple[str, str]]:
    """Return the columns of a table or query, and what the database calls their types."""
    as_read = [(field.name, _type(field)) for field in schema_of(address)]
    match address.scheme:
        case "sqlite":
            return _declared(address, as_read)
        case "mariadb" | "mysql" if address.query is None:
            return _in_catalogue(address)
        case _:
            return as_read


def cost_of(address: Address) -> str | None:
    """Return what the database expects of the query, in words; None of those that are not asked."""
    match address.scheme:
        case "postgresql" | "postgres":
            (text,) = _column(address, f"explain (format json) {statement(address)}", 0)
            plan = json.loads(text)[0]["Plan"]
            return (
                f"PostgreSQL expects {plan['Plan Rows']:,} rows of {plan['Plan Width']} bytes, "
                f"cost {plan['Total Cost']:,.0f} ({plan['Node Type'].lower()})"
            )
        case "sqlite":
            steps = _column(address, f"explain query plan {statement(address)}", 3)
            return f"SQLite's plan, which has no cost: {'; '.join(steps)}"
        case "mariadb" | "mysql":
            with reading(address, f"explain {statement(address)}") as reader:
                steps = [_step(row) for batch in reader for row in batch.to_pylist() if row["rows"]]
            return f"MariaDB expects to look at {', '.join(steps)}" if steps else None
        case _:
            return None


def _step(row: dict[str, Any]) -> str:
    """Return a step of MariaDB's plan: ALL are all rows of a table, others go by an index."""
    index = f", {row['key']}" if row["key"] else ""
    return f"{int(row['rows']):,} rows of {row['table']} ({row['type']}{index})"


def _column(address: Address, query: str, place: int) -> list[str]:
    """Return one column of what a query gives."""
    with reading(address, query) as reader:
        return [value for batch in reader for value in batch.column(place).to_pylist()]


def _type(field: Any) -> str:
    """Return the type of a column: the database's name for it, or what it is read as."""
    name = (field.metadata or {}).get(TYPE)
    return str(field.type) if name is None else name.decode()


def _declared(address: Address, as_read: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the types that SQLite's columns were declared with; an expression has none."""
    with connected(address) as (connection, _), connection.cursor() as cursor:
        cursor.execute(f"create temp view looked as {statement(address)}")  # in memory: the file is only read
        cursor.execute("select type from pragma_table_info('looked')")
        declared = [str(kind).lower() for (kind,) in cursor.fetchall()]
    return [(name, kind or "no type") for (name, _), kind in zip(as_read, declared, strict=True)]


def _in_catalogue(address: Address) -> list[tuple[str, str]]:
    """Return the types of a table's columns, as MariaDB's catalogue has them."""
    schema, _, table = (
        part.replace("\\", "\\\\").replace("'", "''") for part in address.part.rpartition(".")
    )
    where = f"'{schema}'" if schema else "database()"
    query = (
        "select column_name, column_type from information_schema.columns "  # noqa: S608 they are quoted
        f"where table_schema = {where} and table_name = '{table}' order by ordinal_position"
    )
    with reading(address, query) as reader:
        return [tuple(row.values()) for batch in reader for row in batch.to_pylist()]


def _grouped(types: list[tuple[str, str]]) -> str:
    """Return columns by their type, in the order in which types come first."""
    names: dict[str, list[str]] = {}
    for name, kind in types:
        names.setdefault(kind, []).append(name)
    return "; ".join(f"{kind} {some(those, 8)}" for kind, those in names.items())
