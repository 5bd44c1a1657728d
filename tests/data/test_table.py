"""What was written to a file is what is read, and a bad file is refused by file, column and row."""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import csr_array
from sklearn.datasets import dump_svmlight_file

from colonnade.data.read.files import load
from colonnade.data.table import RawTable, Table, numbers_of
from colonnade.errors import DataError

PACKERS: dict[str, Any] = {"": open, ".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}
finite = st.floats(-1e9, 1e9, allow_subnormal=False)


def write(path: Path, content: bytes | str) -> Path:
    with PACKERS.get(path.suffix, open)(path, "wb") as stream:
        stream.write(content.encode() if isinstance(content, str) else content)
    return path


def refused(path: Path, *parts: str, **options: Any) -> str:
    """The text of the one-line error, which names the file and every given part."""
    with pytest.raises(DataError) as caught:
        load(path, **options)
    text = str(caught.value)
    assert "\n" not in text
    for part in (path.name, *parts):
        assert part in text
    return text


@pytest.mark.parametrize("packed", PACKERS)
@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
def test_named_columns_round_trip(tmp_path: Path, suffix: str, packed: str) -> None:
    rows = ["key,income,y,town", "007,1.5,1,Ulm", "8,-2,0,Rom"]
    content = "\n".join(rows).replace(",", "\t" if suffix == ".tsv" else ",") + "\n"
    raw = load(write(tmp_path / f"t{suffix}{packed}", content), label="y", id="key")
    assert raw.columns == ("income", "town")
    assert raw.column("income").tolist() == [1.5, -2.0]
    assert raw.column("town").tolist() == ["Ulm", "Rom"]
    assert raw.ids is not None
    assert raw.ids.tolist() == ["007", "8"]
    assert raw.y is not None
    assert raw.y.tolist() == [1.0, 0.0]
    assert raw.rows == 2


@given(X=arrays(np.float64, st.tuples(st.integers(1, 8), st.integers(1, 5)), elements=finite))
@settings(max_examples=30, deadline=None)
def test_numbers_survive_csv_and_parquet_exactly(
    X: np.ndarray[Any, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("t")
    names = [f"c{j}" for j in range(X.shape[1])]
    lines = [",".join(names), *(",".join(repr(float(v)) for v in row) for row in X)]
    pq.write_table(pa.table(dict(zip(names, X.T, strict=True))), folder / "t.parquet")
    for path in (write(folder / "t.csv", "\n".join(lines)), folder / "t.parquet"):
        raw = load(path)
        np.testing.assert_array_equal(raw.values, X)
        assert isinstance(raw.values, np.ndarray)
        assert raw.values.flags.c_contiguous
        assert raw.values.dtype == np.float64


def test_parquet_types_become_numbers_or_text(tmp_path: Path) -> None:
    table = pa.table(
        {
            "n": pa.array([1, None, 3], pa.int32()),
            "flag": [True, False, True],
            "kind": pa.array(["a", "b", None]).dictionary_encode(),
            "id": [10, 20, 30],
            "y": ["no", "yes", "no"],
        }
    )
    pq.write_table(table, tmp_path / "t.parquet")
    raw = load(tmp_path / "t.parquet", label="y", id="id")
    np.testing.assert_array_equal(raw.column("n"), [1.0, np.nan, 3.0])
    assert raw.column("flag").tolist() == [1.0, 0.0, 1.0]
    assert raw.column("kind").tolist() == ["a", "b", ""]
    assert raw.ids is not None
    assert raw.ids.tolist() == ["10", "20", "30"]
    assert raw.y is not None
    assert raw.y.tolist() == ["no", "yes", "no"]


@pytest.mark.parametrize("packed", PACKERS)
@pytest.mark.parametrize("suffix", [".libsvm", ".svm", ".txt", ""])
def test_libsvm_round_trip_stays_sparse(tmp_path: Path, suffix: str, packed: str) -> None:
    X = csr_array(np.array([[0.0, 1.5, 0.0, 0.0], [2.0, 0.0, 0.0, -1.0], [0.0, 0.0, 0.0, 0.0]]))
    dump_svmlight_file(X, [1, -1, 1], str(tmp_path / "plain"), zero_based=False)
    path = write(tmp_path / f"t{suffix}{packed}", (tmp_path / "plain").read_bytes())
    raw = load(path, n_features=6)
    assert isinstance(raw.values, csr_array)
    assert raw.values.dtype == np.float64
    assert raw.values.indices.dtype == raw.values.indptr.dtype == np.int32
    np.testing.assert_array_equal(raw.values.toarray()[:, :4], X.toarray())
    assert raw.columns == ("f1", "f2", "f3", "f4", "f5", "f6")
    assert raw.y is not None
    assert raw.y.tolist() == [1.0, -1.0, 1.0]


def test_a_full_libsvm_file_is_an_array(tmp_path: Path) -> None:
    raw = load(write(tmp_path / "t", "1 1:1 2:2\n-1 1:3 2:4\n"))
    assert isinstance(raw.values, np.ndarray)
    assert raw.values.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_a_very_wide_file_takes_memory_for_its_values_only(tmp_path: Path) -> None:
    # as an array this would be 16 GB
    raw = load(write(tmp_path / "wide", "".join(f"1 {j}:1 1000000:1\n" for j in range(1, 2001))))
    assert isinstance(raw.values, csr_array)
    assert raw.values.shape == (2000, 1_000_000)
    assert raw.values.nnz == 4000
    part = raw.select([999_999, 0]).take(np.array([0, 5])).values
    assert isinstance(part, csr_array)
    assert part.toarray().tolist() == [[1, 1], [1, 0]]


def idx(array: np.ndarray[Any, Any]) -> bytes:
    return b"\0\0\x08" + bytes([array.ndim]) + np.array(array.shape, ">i4").tobytes() + array.tobytes()


def test_idx_images_find_their_labels(tmp_path: Path) -> None:
    images = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    path = write(tmp_path / "train-images-idx3-ubyte.gz", idx(images))
    write(tmp_path / "train-labels-idx1-ubyte.gz", idx(np.array([7, 3], dtype=np.uint8)))
    raw = load(path)
    np.testing.assert_array_equal(raw.values, images.reshape(2, 12))
    assert raw.y is not None
    assert raw.y.tolist() == [7.0, 3.0]
    write(tmp_path / "train-labels-idx1-ubyte.gz", idx(np.array([7], dtype=np.uint8)))
    with pytest.raises(DataError, match="1 labels for 2 images"):
        load(path)
    refused(write(tmp_path / "x-images-idx3-ubyte", idx(images)[:-1]), "not a complete IDX file")


def test_text_after_a_megabyte_of_numbers_is_still_seen(tmp_path: Path) -> None:
    raw = load(write(tmp_path / "t.csv", "a,b\n" + "12345678,1\n" * 200_000 + "oops,2.5\n"))
    assert raw.column("a")[-1] == "oops"
    assert raw.column("b")[-1] == 2.5


def test_a_small_file_is_read_without_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread of pyarrow's that has hold of the file's bytes when Python ends may abort a command."""
    asked: list[bool] = []
    read = pa.csv.read_csv

    def watched(*given: Any, read_options: Any, **more: Any) -> Any:
        asked.append(read_options.use_threads)
        return read(*given, read_options=read_options, **more)

    monkeypatch.setattr(pa.csv, "read_csv", watched)
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    (tmp_path / "b.csv").write_text("a,b\n" + "1,2\n" * 300_000)
    assert [load(tmp_path / name).rows for name in ("a.csv", "b.csv")] == [1, 300_000]
    assert asked == [False, True]


def test_categorical_columns_keep_their_spelling(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "zip,n\n01,1\n1,2\n")
    assert load(path, categorical=["zip"]).column("zip").tolist() == ["01", "1"]
    assert load(path).column("zip").tolist() == [1.0, 1.0]


# --- refusals ---------------------------------------------------------------------------------------


def test_missing_file_suggests_its_neighbour(tmp_path: Path) -> None:
    write(tmp_path / "bank.csv", "a\n1\n")
    refused(tmp_path / "bnak.csv", "no such file", "did you mean 'bank.csv'?")
    refused(tmp_path / "nowhere" / "x.csv", "no such file")
    refused(tmp_path, "folder")


@pytest.mark.parametrize("role", ["label", "id"])
def test_missing_column_suggests_the_nearest(tmp_path: Path, role: str) -> None:
    path = write(tmp_path / "t.csv", "income,target\n1,2\n")
    refused(path, f"no {role} column 'traget'", "did you mean 'target'?", **{role: "traget"})
    refused(path, "there is income, target", **{role: "zzz"})


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ("", ["empty"]),
        ("a,b\n", ["header but no rows"]),
        ("a,b\n1,2\n\n3\n", ["line 4 has 1 field, the header has 2"]),
        ("a,b\n1,2\n3,4,5\n", ["line 3 has 3 fields"]),
        ("a,a\n1,2\n", ["two columns are named 'a'"]),
        ("a,b\n1,2\n3,inf\n", ["column 'b' is infinite in 1 row, first in row 2"]),
    ],
)
def test_bad_csv(tmp_path: Path, content: bytes | str, parts: list[str]) -> None:
    refused(write(tmp_path / "t.csv", content), *parts)


def test_ids_and_labels_must_be_there_and_ids_unique(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "id,a,y\n1,1,1\n2,1,\n 1,1,0\n,1,1\n")
    refused(path, "1 row with the id of another row but other values: id '1' is in row 1", id="id", label="y")
    assert load(path, label="y").reading.left_out == {"no label": 1}
    twice = write(tmp_path / "twice.csv", "id,a\n5,1\n6,1\n 5,1\n,3\n")
    raw = load(twice, id="id")
    assert raw.reading.left_out == {"no id": 1, "the same row twice": 1}
    assert raw.rows == 2
    twice.write_text("id,a\n5,1\n6,1\n 5,2\n6,2\n")
    refused(twice, "2 rows with the id of another row", "id '5' is in row 1 and again in row 3", id="id")
    only = write(tmp_path / "only.csv", "id,y\n5,1\n")
    refused(only, "no columns besides the label and the id", id="id", label="y")


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ("", ["empty"]),
        ("\n# nothing\n", ["empty"]),
        ("1 1:1\n1 2:x\n", ["line 2", "'2:x' is not index:value"]),
        ("1 1:1\nspam 1:1\n", ["line 2", "'spam' is not a label"]),
        ("1 1:1\n\n1 3\n", ["line 3", "'3' is not index:value"]),
        ("1 0:1\n", ["line 1", "counts columns from 1"]),
        ("1 2:1 1:1\n", ["line 1", "index 1 comes after 2"]),
        ("1 1:1\n1 9:1\n", ["line 2", "index 9, but there are 4 columns"]),
        ("1 1:1\n1 1:1 3:inf\n", ["column 'f3', row 2 is infinite"]),
        ("1 1:1\ninf 1:1\n", ["label of row 2 is infinite"]),
        (b"PK\x03\x04\xff\xfe", ["line 1", "not a label"]),
        ("id,age\n7,31\n", ["line 1", "a table is read if its name ends in .csv"]),
    ],
)
def test_bad_libsvm(tmp_path: Path, content: bytes | str, parts: list[str]) -> None:
    refused(write(tmp_path / "t.libsvm", content), *parts, n_features=4)


def test_damaged_and_unknown_files(tmp_path: Path) -> None:
    whole = gzip.compress(b"a,b\n1,2\n" * 100)
    for name, content in {
        "cut.csv.gz": whole[:-9],
        "fake.csv.xz": b"a,b\n1,2\n",
        "fake.svm.bz2": b"1 1:1",
    }.items():
        (tmp_path / name).write_bytes(content)
        refused(tmp_path / name, "damaged or not a")
    refused(write(tmp_path / "t.parquet", "no"), "not a readable Parquet file")
    refused(write(tmp_path / "t.xlsx", "PK"), "not a readable Excel file")
    refused(write(tmp_path / "t.parquet.gz", "no"), "unpack the .gz first")
    refused(write(tmp_path / "t.feather", "no"), ".feather files are not read; use CSV")


# --- picking rows and columns -----------------------------------------------------------------------


def test_select_and_take_on_every_kind_of_values() -> None:
    X = np.arange(12.0).reshape(4, 3)
    ids = np.array(["a", "b", "c", "d"])
    kinds: list[Any] = [X, csr_array(X), (X[:, 0], np.array(list("pqrs"), dtype=object), X[:, 2])]
    for values in kinds:
        raw = RawTable("t", ("u", "v", "w"), values, ids, y=X[:, 0])
        part = raw.take(np.array([3, 1])).select(["w", "u"])
        assert part.columns == ("w", "u")
        assert [part.column(c).tolist() for c in part.columns] == [[11.0, 5.0], [9.0, 3.0]]
        assert part.rows == 2
        assert part.ids is not None
        assert part.ids.tolist() == ["d", "b"]
        assert part.y is not None
        assert part.y.tolist() == [9.0, 3.0]
        assert part.take(np.array([0])).row_number(0) == 4
        assert part.sparse or (isinstance(part.values, np.ndarray) and part.values.flags.c_contiguous)
        assert raw.select([2, 0]).columns == ("w", "u")
        assert part.sparse == isinstance(values, csr_array)
    with pytest.raises(DataError, match=re.escape("t: no column 'incom'; did you mean 'income'?")):
        RawTable("t", ("income",), X[:, :1]).select(["incom"])


def test_a_table_takes_rows() -> None:
    table = Table("t", ("a",), np.array([[1.0], [2.0], [3.0]]), y=np.array([1.0, -1.0, 1.0]))
    part = table.take(np.array([2, 1]))
    assert part.X.tolist() == [[3.0], [2.0]]
    assert part.y is not None
    assert part.y.tolist() == [1.0, -1.0]
    assert (part.rows, part.width) == (2, 1)


@given(st.lists(st.lists(st.none() | st.floats(-9, 9), max_size=20), max_size=4), st.data())
def test_numbers_of_a_column_are_those_that_pyarrow_gives(
    chunks: list[list[float | None]], data: st.DataObject
) -> None:
    column = pa.chunked_array(chunks, type=pa.float64())
    column = column.slice(data.draw(st.integers(0, len(column))))
    np.testing.assert_array_equal(numbers_of(column), column.to_numpy())
