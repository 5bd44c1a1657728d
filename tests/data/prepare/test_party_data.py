"""A party's data: prepared by its recipe, taken as it is when ready, and the same after a journey to disk."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

from colonnade.arrays import Floats, Matrix
from colonnade.data.prepare.party_data import PartyData, Recipe
from colonnade.data.split.store import load, save
from colonnade.data.table import RawTable, Table, Values

RNG = np.random.default_rng(0)
NUMBERS = RNG.normal(size=(6, 3))
SPARSE = csr_array(random_array((6, 3), density=0.5, rng=np.random.default_rng(1)))
COLOURS = np.array(["red", "blue", "", "red", "blue", "red"], dtype=object)
Y = np.array([1.0, -1.0, 1.0, 1.0, -1.0, -1.0])


def raw(values: Values, columns: tuple[str, ...], y: Floats | None = None) -> RawTable:
    return RawTable("t", columns, values, y=y)


def table(X: Matrix, y: Floats | None = None) -> Table:
    return Table("t", ("a", "b", "c"), X, y)


CASES = {
    "numbers": PartyData(
        "bank",
        raw(NUMBERS, ("a", "b", "c"), Y),
        raw(NUMBERS[:2], ("a", "b", "c"), Y[:2]),
        Recipe("zscore", intercept=True),
    ),
    "text": PartyData(
        "bank",
        raw((NUMBERS[:, 0], COLOURS), ("a, or b", "colour")),
        None,
        Recipe(categorical=("colour", "elsewhere"), missing="mean"),
    ),
    "sparse": PartyData("bank", raw(SPARSE, ("a", "b", "c")), raw(SPARSE[:3], ("a", "b", "c")), Recipe(2.5)),
    "bytes": PartyData("bank", raw((NUMBERS * 9).astype(np.uint8), ("a", "b", "c")), None, Recipe(255.0)),
    "no columns": PartyData("hub", raw(np.empty((6, 0)), (), Y), raw(np.empty((2, 0)), (), Y[:2]), Recipe()),
    "ready": PartyData.of("bank", table(NUMBERS, Y), table(NUMBERS[:2], Y[:2])),
    "ready and sparse": PartyData.of("bank", table(SPARSE)),
}


def same(one: Table | None, other: Table | None) -> bool:
    if one is None or other is None:
        return one is other
    assert one.columns == other.columns
    assert isinstance(one.X, csr_array) == isinstance(other.X, csr_array)
    left, right = (t.X.toarray() if isinstance(t.X, csr_array) else t.X for t in (one, other))
    np.testing.assert_array_equal(left, right, strict=True)
    assert (one.y is None) == (other.y is None)
    return one.y is None or np.array_equal(one.y, np.asarray(other.y))


@pytest.mark.parametrize("case", CASES)
def test_what_was_saved_is_prepared_alike(case: str, tmp_path: Path) -> None:
    before = CASES[case]
    save(tmp_path / "data", before)
    after = load(tmp_path / "data")
    assert (after.party, after.recipe) == (before.party, before.recipe)
    assert (after.columns, after.rows) == (before.columns, before.rows)
    one, other = before.prepare(), after.prepare()
    assert one.preparation == other.preparation
    assert same(one.train, other.train)
    assert same(one.test, other.test)


def test_tables_that_are_ready_come_back_as_the_very_same_arrays() -> None:
    train, test = table(NUMBERS, Y), table(SPARSE)
    preparation, *prepared = PartyData.of("bank", train, test).prepare()
    assert preparation is None
    for one, other in zip(prepared, (train, test), strict=True):
        assert isinstance(one, Table)
        assert (one.X is other.X, one.y is other.y) == (True, True)
        assert (one.name, one.columns) == (other.name, other.columns)
    assert PartyData.of("bank", train).prepare().test is None


def test_a_passive_party_stores_no_labels(tmp_path: Path) -> None:
    save(tmp_path, CASES["sparse"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["party.json", "test.npz", "train.npz"]


def test_reading_a_party_s_data_imports_no_more_than_it_needs(tmp_path: Path) -> None:
    for case, unwanted in {
        "numbers": ["sklearn", "pyarrow.dataset", "pyarrow.csv"],
        "sparse": ["sklearn", "pyarrow"],
    }.items():
        save(tmp_path / case, CASES[case])
        code = (
            "import sys; from pathlib import Path; from colonnade.data.split.store import load\n"
            f"load(Path({str(tmp_path / case)!r})).prepare()\n"
            f"assert not [name for name in {unwanted} if name in sys.modules], sorted(sys.modules)"
        )
        subprocess.run([sys.executable, "-c", code], check=True)


def test_reading_and_storing_a_file_with_texts_imports_no_pandas(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("id,colour,size,y\n1,red,2.5,0\n2,,3,1\n3,blue,,0\n")
    code = (
        "import sys; from pathlib import Path; from colonnade.data.read.files import load\n"
        "from colonnade.data.table import array_of, different\n"
        f"raw = load(Path({str(tmp_path / 'table.csv')!r}), label='y', id='id', categorical=['colour'])\n"
        "assert different(array_of(raw.column('colour')))[0] == ['red', '', 'blue'], raw.column('colour')\n"
        "assert array_of(raw.column('size')).to_pylist()[:2] == [2.5, 3.0]\n"
        "assert 'pandas' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
