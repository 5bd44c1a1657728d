"""Parquet in stores and folders, and other objects, give what the same rows give as one file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from colonnade.data.read.files import load
from colonnade.data.read.objects import check_writable, upload
from colonnade.data.read.source import is_stream, size_of
from colonnade.errors import DataError
from colonnade.job.source import Address, source_of


def parts(customers: Any, folder: Path) -> None:
    """The rows in three files."""
    folder.mkdir()
    for k in range(3):
        pq.write_table(customers.slice(k * 150, 150), folder / f"part-{k}.parquet")


@pytest.mark.parametrize("pattern", ["parts", "parts/*.parquet", "parts/part-*"])
def test_files_of_a_folder_are_one_table(customers: Any, tmp_path: Path, pattern: str) -> None:
    parts(customers, tmp_path / "parts")
    raw = load(tmp_path / pattern, id="id", label="bad")
    assert raw.ids is not None
    assert raw.ids.tolist() == customers["id"].to_pylist()
    assert size_of(tmp_path / pattern) == (400, 6)


def test_columns_may_stand_in_names_of_folders(customers: Any, tmp_path: Path) -> None:
    options = {"partitioning": ["town"], "partitioning_flavor": "hive", "format": "parquet"}
    ds.write_dataset(customers, tmp_path / "by-town", **options)
    raw = load(tmp_path / "by-town", id="id")
    assert raw.rows == 400
    assert set(raw.column("town").tolist()) == {"Ulm", "Bonn", "Köln"}


def test_a_folder_of_other_things_is_no_source(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="this is a folder"):
        load(tmp_path)
    with pytest.raises(DataError, match="no file has such a name"):
        load(tmp_path / "*.parquet")


def uploaded(end: str, name: str, local: Path) -> str:
    """A file as an object; returns its address."""
    store, _ = fs.FileSystem.from_uri(f"s3://shop?{end}")
    with store.open_output_stream(f"shop/{name}") as stream:
        stream.write(local.read_bytes())
    return f"s3://shop/{name}?{end}"


def test_an_object_is_read_as_a_file(s3: str, customers: Any, tmp_path: Path) -> None:
    pq.write_table(customers, tmp_path / "x.parquet")
    pa.csv.write_csv(customers, tmp_path / "x.csv")
    for name in ("x.parquet", "x.csv"):
        address = uploaded(s3, name, tmp_path / name)
        assert is_stream(source_of(address)) == (name == "x.parquet")
        found, file = load(address, id="id", label="bad"), load(tmp_path / name, id="id", label="bad")
        assert found.columns == file.columns
        assert found.name == name
        np.testing.assert_array_equal(found.column("age"), file.column("age"))


def test_objects_of_a_folder_are_one_table(s3: str, customers: Any, tmp_path: Path) -> None:
    parts(customers, tmp_path / "parts")
    for k in range(3):
        uploaded(s3, f"parts/part-{k}.parquet", tmp_path / "parts" / f"part-{k}.parquet")
    for path in ("parts", "parts/*.parquet"):
        assert load(f"s3://shop/{path}?{s3}", id="id").rows == 400


@pytest.fixture(params=["gs", "gcs", "abfs"])
def elsewhere(request: pytest.FixtureRequest) -> Callable[[str], Address]:
    """What gives the address of a path in a store of another maker."""
    kind: str = request.param
    end = request.getfixturevalue("abfs" if kind == "abfs" else "gs")
    user = "bank:{AZURE_KEY}" if kind == "abfs" else "anonymous"
    return lambda path: Address(f"{kind}://{user}@{path}?{end}")


def test_other_stores_are_written_and_read(
    elsewhere: Callable[[str], Address], customers: Any, tmp_path: Path
) -> None:
    pq.write_table(customers, tmp_path / "x.parquet")
    pa.csv.write_csv(customers, tmp_path / "x.csv")
    file = load(tmp_path / "x.parquet", id="id", label="bad")
    for name in ("x.parquet", "x.csv", "parts/x.parquet"):
        target = elsewhere(f"shop/{name}")
        assert source_of(str(target)) == target
        check_writable(target)
        upload(target, tmp_path / Path(name).name)
        found = load(target, id="id", label="bad")
        assert found.columns == file.columns
        np.testing.assert_array_equal(found.column("age"), file.column("age"))
    for path in ("parts", "parts/*.parquet"):
        assert size_of(elsewhere(f"shop/{path}")) == (400, 6)
    with pytest.raises(DataError, match=r"none\.parquet.*cannot be read"):
        load(elsewhere("shop/none.parquet"))
    with pytest.raises(DataError, match="there is no elsewhere"):
        check_writable(elsewhere("elsewhere/x.csv"))


def test_a_wrong_key_of_an_account_is_one_line(abfs: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WRONG", "V2FscnVzLTk5")
    with pytest.raises(DataError) as caught:
        load(f"abfs://bank:{{WRONG}}@shop/x.parquet?{abfs}")
    assert "V2Fsc" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_an_object_lacks_is_one_line(s3: str, tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text("a,b\n1,2\n1\n2,3,4,5\n", "utf-8")
    address = uploaded(s3, "bad.csv", tmp_path / "bad.csv")
    with pytest.raises(DataError) as caught:
        load(address)
    assert str(caught.value).startswith(address)
    with pytest.raises(DataError, match=r"s3://shop/none\.parquet.*cannot be read"):
        load(f"s3://shop/none.parquet?{s3}")
    with pytest.raises(DataError, match=r"s3://shop/none\.csv.*cannot be read"):
        load(f"s3://shop/none.csv?{s3}")


def test_an_upload_that_breaks_off_leaves_what_was_there(
    s3: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "scores.csv").write_text("id,score\n1,0.5\n", "utf-8")
    address = uploaded(s3, "kept.csv", tmp_path / "scores.csv")
    (tmp_path / "scores.csv").write_text("id,score\n1,0.7\n2,0.1\n", "utf-8")
    target = source_of(address)
    assert isinstance(target, Address)

    def broken(file: Any, stream: Any, size: int) -> None:
        stream.write(file.read(12))
        raise OSError("the disk is gone")

    with monkeypatch.context() as patch:
        patch.setattr("colonnade.data.read.objects.shutil.copyfileobj", broken)
        with pytest.raises(DataError, match="the disk is gone"):
            upload(target, tmp_path / "scores.csv")
    assert load(address, id="id").column("score").tolist() == [0.5]
    store, _ = fs.FileSystem.from_uri(f"s3://shop?{s3}")
    assert store.get_file_info("shop/kept.csv.part").type == fs.FileType.NotFound
    upload(target, tmp_path / "scores.csv")
    assert load(address, id="id").rows == 2
