"""Data beyond the memory is prepared in stretches, into files, and trains the model of data in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from colonnade.conversations.pacing import schedule
from colonnade.data.large import big_file, csv_to_parquet
from colonnade.data.large.big_file import BigFile, TestRows, is_large
from colonnade.errors import DataError, FixedPointOverflow, JobError
from colonnade.job import job_from
from colonnade.run import examine
from colonnade.run.federate import Finished, federate

ROWS = 5000


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many stretches and blocks of few rows, and data that is large from a few thousand numbers on."""
    monkeypatch.setattr(big_file, "STRETCH", 256)
    monkeypatch.setattr(schedule, "BLOCK", 1024)
    monkeypatch.setattr(schedule, "SLICE", 64)
    schedule._shuffle.cache_clear()
    schedule._slices.cache_clear()


def wrote(path: Path, dtype: str = "float32", *, ids: bool = False, gap: bool = False) -> Path:
    """A Parquet file of six columns and a label of two classes, in several groups of rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    X = rng.standard_normal((6, ROWS)).astype(dtype)
    y = np.where(X[0] - 2 * X[3] + rng.standard_normal(ROWS) > 0, "yes", "no")
    columns: dict[str, Any] = {f"x{j}": column for j, column in enumerate(X)}
    columns["town"] = np.where(X[5] > 0, "Ulm", "Bonn")
    if gap:
        columns["x1"] = pa.array(X[1], mask=rng.random(ROWS) < 0.1)
    if ids:
        columns["id"] = np.arange(ROWS)
    pq.write_table(pa.table({**columns, "y": y}), path, row_group_size=900)
    return path


def trained(data: dict[str, Any], **sections: Any) -> Finished:
    train = {"epochs": 4, "batch": 64, "step": 0.3, **sections.pop("train", {})}
    job = {"algorithm": "vfb2-sgd", "data": data, "train": train, "secure": {"labels": "clear"}, **sections}
    return federate(job_from(job))


def as_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(big_file, "PART", 10**6)


@pytest.mark.parametrize("world", ["local", "simulated"])
def test_it_trains_the_model_that_it_would_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, world: str
) -> None:
    file = wrote(tmp_path / "rows.parquet", gap=True)
    data = {"train": str(file), "label": "y", "parties": 3, "active": 2}
    small = trained(data, world=world)
    as_large(monkeypatch)
    done = trained(data, world=world)
    assert done.result.pooled == {}
    assert small.result.pooled
    assert done.result.metrics["test_auc"] == pytest.approx(small.result.metrics["test_auc"], abs=0.02)
    assert done.result.metrics["train_loss"] == pytest.approx(small.result.metrics["train_loss"], abs=0.02)
    said = " ".join(text for told in done.result.data.done.values() for text in told)
    assert "from all over the file" in said


@pytest.mark.parametrize(("dtype", "stored"), [("float32", np.float32), ("float64", np.float64)])
def test_prepared_columns_lie_in_files_as_fine_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dtype: str, stored: type
) -> None:
    as_large(monkeypatch)
    file = wrote(tmp_path / "rows.parquet", dtype)
    store = tmp_path / "store"
    data = {"train": str(file), "label": "y", "parties": 2, "store": str(store), "scale": "none"}
    first = trained(data)
    columns = [np.load(path, mmap_mode="r") for path in store.glob("*/party-*/*.npy")]
    assert {part.dtype for part in columns} == {np.dtype(stored)}
    assert sum(part.shape[0] for part in columns) == 2 * ROWS
    times = {path: path.stat().st_mtime_ns for path in store.rglob("*.npy")}
    again = trained(data)  # the same columns, prepared once
    assert times == {path: path.stat().st_mtime_ns for path in store.rglob("*.npy")}
    assert again.result.metrics == first.result.metrics


def test_a_row_is_for_the_test_whatever_stretch_it_is_in() -> None:
    tests = TestRows(0.3, 7)
    whole = tests.mask(0, 1500)
    assert whole.sum() == tests.count(1500) == pytest.approx(450, abs=80)
    np.testing.assert_array_equal(np.concatenate([tests.mask(0, 100), tests.mask(100, 1500)]), whole)


def test_files_of_parties_must_have_the_same_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow.parquet as pq

    as_large(monkeypatch)
    whole = pq.read_table(wrote(tmp_path / "all.parquet", ids=True))
    bank, shop = tmp_path / "bank.parquet", tmp_path / "shop.parquet"
    pq.write_table(whole.select(["id", "x0", "x1", "x2", "y"]), bank, row_group_size=900)
    pq.write_table(whole.select(["id", "x3", "x4", "x5"]), shop, row_group_size=900)
    data = {"files": {"bank": str(bank), "shop": str(shop)}, "id": "id", "label": "y"}
    assert trained(data).result.metrics["test_auc"] > 0.9
    order = np.arange(ROWS)
    order[[700, 4000]] = order[[4000, 700]]
    pq.write_table(whole.select(["id", "x3", "x4", "x5"]).take(order), shop, row_group_size=900)
    with pytest.raises(DataError, match=r"shop.parquet: other ids than .* from row \d+ on"):
        trained(data)


def test_what_needs_all_rows_at_once_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    as_large(monkeypatch)
    data = {"train": str(wrote(tmp_path / "rows.parquet")), "label": "y", "parties": 2}
    with pytest.raises(DataError, match=r"data\.weight: .* more memory"):
        trained({**data, "weight": "x1"})
    with pytest.raises(JobError, match=r"train\.target: .* not pooled"):
        trained(data, train={"target": 1e-3})
    with pytest.raises(JobError, match="'lots' is not a memory size"):
        trained({**data, "memory": "lots"})


def test_rows_that_blind_steps_have_no_room_for_are_refused_before_they_are_prepared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows so long stand for rows so many: the room that is needed grows with both."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    as_large(monkeypatch)
    file, store = wrote(tmp_path / "rows.parquet"), tmp_path / "store"
    table = pq.read_table(file)
    for j in range(6):
        table = table.set_column(j, f"x{j}", pa.array(table[f"x{j}"].to_numpy() * 1e4))
    pq.write_table(table, file, row_group_size=900)
    data = {"train": str(file), "label": "y", "parties": 3, "scale": "none", "store": str(store)}
    with pytest.raises(FixedPointOverflow, match=r"4,0\d\d rows .* train on about .* rows, or set"):
        trained(data, secure={"labels": "blind"})
    assert not list(store.rglob("*.npy"))
    trained(data, train={"step": 1e-12, "epochs": 1})
    assert list(store.rglob("*.npy"))


def test_what_is_large_depends_on_the_memory(tmp_path: Path) -> None:
    file = wrote(tmp_path / "rows.parquet")
    assert BigFile.open(file).rows == ROWS
    numbers = 8 * ROWS * 8  # eight columns with the label
    assert is_large([file], numbers * big_file.PART - 1)
    assert not is_large([file], numbers * big_file.PART)
    assert not is_large([Path("a9a")], 1)


def as_csv(parquet: Path, **how: Any) -> Path:
    """The same rows as CSV."""
    import pyarrow.parquet as pq
    from pyarrow import csv

    target = parquet.with_suffix(".csv")
    csv.write_csv(pq.read_table(parquet), target, csv.WriteOptions(**how))
    return target


def test_csv_trains_the_model_of_the_same_parquet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    as_large(monkeypatch)
    monkeypatch.setattr(csv_to_parquet, "BLOCK", 2**16)
    monkeypatch.setattr(big_file, "LEAST", 0)
    parquet = wrote(tmp_path / "rows.parquet", "float64", gap=True)
    data = {"train": str(parquet), "label": "y", "parties": 2}
    weights = [
        trained({**data, "train": str(file)}, train={"epochs": 1}).shares["party-1"].weights["w"]
        for file in (parquet, as_csv(parquet, delimiter=";"))
    ]
    np.testing.assert_array_equal(*weights)


def test_a_column_of_csv_is_what_all_its_rows_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Decimals, a word and a first value that come after the first block; ids as they are written; titles."""
    monkeypatch.setattr(csv_to_parquet, "BLOCK", 2**12)
    file = tmp_path / "rows.csv"
    lines = [
        f"00{k};{k if k < 900 else k + 0.5:g};{'x' if k == 800 else k};{'' if k < 950 else 7}"
        for k in range(1000)
    ]
    above = "Customers\n\nmade; today\nid;late decimals;a word;late\n"
    file.write_text(above + "\n".join(lines).replace(".", ",") + "\n")
    found = big_file.opened(file, tmp_path / "made", verbatim=["id"])
    assert (found.rows, found.texts) == (1000, ("id", "a word"))
    (start, raw), *_ = found.stretches(found.wanted(ids=("id",)), ["late decimals", "late"])
    assert (start, raw.name, raw.ids is not None and raw.ids[7]) == (0, "rows.csv", "007")
    *_, (_, last) = found.stretches(found.wanted(), ["late decimals", "late"])
    assert last.column("late decimals")[-1] == 999.5
    assert last.column("late")[-1] == 7
    made = {path: path.stat().st_mtime_ns for path in (tmp_path / "made").iterdir()}
    big_file.opened(file, tmp_path / "made", verbatim=["id"])
    assert made == {path: path.stat().st_mtime_ns for path in (tmp_path / "made").iterdir()}
    (tmp_path / "bad.csv").write_text("a,b\n1,2\n1,2,3\n")
    with pytest.raises(DataError, match=r"bad.csv: .*Expected 2 columns, got 3"):
        big_file.opened(tmp_path / "bad.csv", tmp_path)
    with pytest.raises(DataError, match=r"rows.svm: is neither a CSV or Parquet"):
        big_file.opened(tmp_path / "rows.svm", tmp_path)


def test_a_check_does_not_read_large_files_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    as_large(monkeypatch)
    monkeypatch.setattr(big_file, "LEAST", 0)
    monkeypatch.setattr(csv_to_parquet, "BLOCK", 2**16)
    monkeypatch.setattr(examine, "load", lambda *_, **__: pytest.fail("read whole"))
    parquet = wrote(tmp_path / "rows.parquet", "float64")
    for file in (parquet, as_csv(parquet)):
        data = {"train": str(file), "label": "y", "parties": 2}
        job = {"algorithm": "vfb2-sgd", "data": data, "secure": {"labels": "clear"}}
        assert examine.examine(job_from(job)) == []
        (found,) = examine.examine(job_from(job | {"data": data | {"label": "z"}}))
        assert "no label column 'z'" in found.what or "no column 'z'" in found.what
