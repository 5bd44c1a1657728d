"""Delta and Iceberg tables give the rows that are in them now, and never those that were deleted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from click.testing import CliRunner

from colonnade.cli import main
from colonnade.data.read.facts import facts_of
from colonnade.data.read.files import load
from colonnade.data.read.source import read_table, size_of
from colonnade.errors import DataError
from colonnade.job.source import source_of

SECRET = "Walrus-99"  # noqa: S105


@pytest.fixture
def delta(customers: Any, tmp_path: Path) -> Path:
    """A table that had a first version with other rows, and of which some are deleted again."""
    deltalake = pytest.importorskip("deltalake", reason="pip install 'colonnade[delta]'")
    folder = tmp_path / "customers"
    deltalake.write_deltalake(folder, customers.slice(0, 10))
    deltalake.write_deltalake(folder, customers, mode="overwrite")
    deltalake.DeltaTable(folder).delete("age > 60")
    return folder


@pytest.fixture
def iceberg(customers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The same as a table of an Iceberg catalogue, which its own settings describe."""
    sql = pytest.importorskip("pyiceberg.catalog.sql", reason="pip install 'colonnade[iceberg]'")
    place = {"uri": f"sqlite:///{tmp_path}/catalogue.db", "warehouse": f"file://{tmp_path}/lake"}
    for name, value in {**place, "type": "sql", "token": SECRET}.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__RISK__{name.upper()}", value)
    with sql.SqlCatalog("risk", **place) as catalogue:
        catalogue.create_namespace("bank")
        table = catalogue.create_table("bank.customers", schema=customers.schema)
        table.append(customers.slice(0, 10))
        table.overwrite(customers)
        table.delete("age > 60")
    return "iceberg://risk#bank.customers"


def now(customers: Any) -> Any:
    return customers.filter(pc.less_equal(customers["age"], 60)).sort_by("id")


def test_a_delta_table_has_the_rows_of_its_newest_version(delta: Path, customers: Any) -> None:
    wanted = now(customers)
    assert len(list(delta.glob("*.parquet"))) > 1
    assert read_table(str(delta)).sort_by("id").equals(wanted)
    assert size_of(delta) == (wanted.num_rows, 6)
    assert load(delta, id="id", label="bad").rows == wanted.num_rows
    types, cost = facts_of(delta)
    assert types.startswith("types: string id, since, town; int64 age, bad; double income")
    assert cost.startswith("1 Parquet file, ")


def test_a_delta_table_in_a_store(s3: str, customers: Any) -> None:
    deltalake = pytest.importorskip("deltalake", reason="pip install 'colonnade[delta]'")
    end = dict(each.split("=") for each in s3.replace("%3A", ":").split("&"))
    options = {"AWS_ENDPOINT_URL": f"http://{end['endpoint_override']}", "AWS_ALLOW_HTTP": "true"}
    options |= {"AWS_REGION": end["region"]}
    for rows in (customers.slice(0, 10), now(customers)):
        deltalake.write_deltalake("s3://shop/lake", rows, mode="overwrite", storage_options=options)
    assert read_table(f"s3://shop/lake?{s3}").sort_by("id").equals(now(customers))


def test_an_iceberg_table_has_the_rows_of_its_catalogue(iceberg: str, customers: Any) -> None:
    wanted = now(customers)
    found = read_table(iceberg).sort_by("id")
    assert found.to_pydict() == wanted.to_pydict()
    source = source_of(iceberg)
    assert size_of(source) == (wanted.num_rows, 6)
    assert load(iceberg, id="id", label="bad").rows == wanted.num_rows
    assert facts_of(source) == ["types: string id, since, town; long age, bad; double income"]


def test_a_table_of_a_lake_is_trained_on(
    iceberg: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for words in (["new", iceberg, "--label", "bad", "--parties", "2"], ["run", "job.toml"]):
        done = CliRunner().invoke(main, words)
        assert done.exit_code == 0, done.output
        assert SECRET not in done.output


def test_the_folder_of_an_iceberg_table_is_no_folder_of_parquet(iceberg: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"not every row in it is the table's; write iceberg://CATALOG#"):
        load(tmp_path / "lake" / "bank" / "customers")


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("iceberg://risk#bank.customer", "does not exist"),
        ("iceberg://rusk#bank.customers", r"no catalogue rusk; describe it in ~/\.pyiceberg\.yaml"),
        ("iceberg://risk", r"write iceberg://risk#NAMESPACE\.TABLE"),
        ("iceberg://risk#select 1", r"write iceberg://risk#NAMESPACE\.TABLE"),
    ],
)
def test_what_is_wrong_with_a_table_is_one_line(iceberg: str, address: str, said: str) -> None:
    with pytest.raises(DataError, match=said) as caught:
        load(address)
    assert str(caught.value).startswith(address)
    assert "\n" not in str(caught.value)


def test_an_error_of_a_catalogue_has_no_secret(iceberg: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyiceberg.catalog

    def fails(name: str, **settings: str) -> None:
        raise RuntimeError(f"token {SECRET} was refused by {name}")

    monkeypatch.setattr(pyiceberg.catalog, "load_catalog", fails)
    with pytest.raises(DataError, match=r"token \*\*\* was refused by risk"):
        load(iceberg)


def test_a_delta_table_with_a_feature_that_is_not_known_is_refused(delta: Path) -> None:
    """Deleted rows that are listed beside a file would come back if the list were ignored."""
    first = sorted((delta / "_delta_log").glob("*.json"))[0]
    protocol = '{"protocol":{"minReaderVersion":3,"minWriterVersion":7,'
    features = '"readerFeatures":["somethingNew"],"writerFeatures":["somethingNew"]}}\n'
    lines = [line for line in first.read_text("utf-8").splitlines() if not line.startswith('{"protocol"')]
    first.write_text(protocol + features + "\n".join(lines), "utf-8")
    with pytest.raises(DataError, match="cannot be read"):
        load(delta)


def test_a_list_of_deleted_rows_is_not_ignored(tmp_path: Path) -> None:
    """A table whose deleted rows are listed beside its files is refused: its reader does not know them."""
    deltalake = pytest.importorskip("deltalake", reason="pip install 'colonnade[delta]'")
    listed = {"delta.enableDeletionVectors": "true"}
    deltalake.write_deltalake(tmp_path / "t", pa.table({"id": ["a", "b"]}), configuration=listed)
    with pytest.raises(DataError, match="deletionVectors"):
        load(tmp_path / "t")
