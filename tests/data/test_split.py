"""Every column is at one party, every row is for training or for the test, and parties agree on rows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csc_array, csr_array, csr_matrix

from colonnade.data.split import (
    load_party_files,
    split_by_count,
    split_by_name,
    split_columns,
    train_test_rows,
)
from colonnade.errors import DataError


@given(st.data(), st.integers(1, 200), st.integers(0, 2**32))
def test_a_split_by_count_is_disjoint_complete_even_and_repeatable(
    data: st.DataObject, width: int, seed: int
) -> None:
    parties = data.draw(st.integers(1, width))
    columns = [f"c{j}" for j in range(width)]
    split = split_by_count(columns, parties, seed)
    assert sorted(j for part in split.values() for j in part) == list(range(width))
    sizes = [len(part) for part in split.values()]
    assert max(sizes) - min(sizes) <= 1
    assert list(split) == sorted(split)
    assert len(split) == parties
    assert split == split_by_count(columns, parties, seed)


def test_another_seed_is_another_split() -> None:
    columns = [str(j) for j in range(50)]
    assert split_by_count(columns, 4, 0) != split_by_count(columns, 4, 1)
    assert list(split_by_count(columns, 11, 0))[::10] == ["party-00", "party-10"]


@pytest.mark.parametrize("parties", [0, 4])
def test_every_party_needs_a_column(parties: int) -> None:
    with pytest.raises(DataError, match=f"parties = {parties} with 3 columns"):
        split_by_count(["a", "b", "c"], parties, 0)


def test_split_by_name() -> None:
    columns = ["age", "income", "visits"]
    assert split_by_name(columns, {"shop": ["visits"], "bank": ["income", "age"]}) == {
        "shop": (2,),
        "bank": (1, 0),
    }
    for holders, text in (
        ({"bank": ["incme"]}, "party 'bank': no column 'incme'; did you mean 'income'?"),
        ({"bank": ["age"], "shop": ["age"]}, "column 'age' is given to 'bank' and to 'shop'"),
        ({"bank": ["age"]}, "column 'income' and 1 more belong to no party"),
    ):
        with pytest.raises(DataError, match=re.escape(text)):
            split_by_name(columns, holders)


@given(st.integers(2, 500), st.floats(0.01, 0.99), st.integers(0, 99))
def test_rows_are_for_training_or_for_the_test(n: int, fraction: float, seed: int) -> None:
    if not 0 < round(n * fraction) < n:
        with pytest.raises(DataError, match="leaves no rows"):
            train_test_rows(n, fraction, seed)
        return
    train, test = train_test_rows(n, fraction, seed)
    assert sorted([*train, *test]) == list(range(n))
    assert len(test) == round(n * fraction)
    again = train_test_rows(n, fraction, seed)
    assert again[0].tolist() == train.tolist()
    assert (np.diff(train) > 0).all()


@pytest.mark.parametrize("fraction", [0.0, 1.0, -0.5, 2.0])
def test_fractions_out_of_range(fraction: float) -> None:
    with pytest.raises(DataError, match=f"test_fraction = {fraction}"):
        train_test_rows(10, fraction, 0)


# --- one file per party -----------------------------------------------------------------------------


def files(folder: Path, **contents: str) -> dict[str, Path]:
    paths = {}
    for party, content in contents.items():
        paths[party] = folder / f"{party}.csv"
        paths[party].write_text(content)
    return paths


def test_party_files_are_joined_by_id(tmp_path: Path) -> None:
    paths = files(tmp_path, bank="id,income,y\nc,3,1\na,1,0\nb,2,1\n", shop="visits,id\n20,b\n30,c\n10,a\n")
    tables = load_party_files(paths, id="id", label="y", label_at="bank")
    for raw in tables.values():
        assert raw.ids is not None
        assert raw.ids.tolist() == ["a", "b", "c"]
    assert tables["bank"].column("income").tolist() == [1, 2, 3]
    assert tables["shop"].column("visits").tolist() == [10, 20, 30]
    assert tables["bank"].y is not None
    assert tables["bank"].y.tolist() == [0, 1, 1]
    assert tables["shop"].y is None
    assert tables["bank"].row_number(0) == 2  # an error found later still names the row of the file


@given(
    ids=st.lists(st.integers(0, 999), unique=True, min_size=1, max_size=15),
    random=st.randoms(use_true_random=False),
)
@settings(max_examples=20, deadline=None)
def test_the_order_of_rows_in_a_file_does_not_matter(
    ids: list[int], random: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("p")
    shuffled = random.sample(ids, len(ids))
    paths = files(
        folder,
        a="id,x\n" + "".join(f"{i},{i}\n" for i in ids),
        b="id,z\n" + "".join(f"{i},{-i}\n" for i in shuffled),
    )
    tables = load_party_files(paths, id="id")
    assert (tables["a"].column("x") + tables["b"].column("z") == 0).all()


def test_rows_whose_id_not_all_have_are_left_out_and_counted(tmp_path: Path) -> None:
    paths = files(tmp_path, bank="id,a\n1,1\n2,1\n3,1\n", shop="id,b\n3,1\n4,1\n1,1\n5,1\n")
    tables = load_party_files(paths, id="id")
    for raw, lost in zip(tables.values(), (1, 2), strict=True):
        assert raw.ids is not None
        assert raw.ids.tolist() == ["1", "3"]
        assert raw.reading.left_out == {"an id that not all parties have": lost}
    paths = files(tmp_path, bank="id,a\n1,1\n", shop="id,b\nx1,1\n")
    with pytest.raises(DataError, match=r"no id is in all files.*'1' in bank.csv, 'x1' in shop.csv.*keys"):
        load_party_files(paths, id="id")


def test_labels_at_several_parties_must_agree_and_stay_there(tmp_path: Path) -> None:
    paths = files(
        tmp_path, bank="id,a,y\n1,1,0\n2,1,1\n", shop="id,b,y\n2,1,0\n1,1,0\n", post="id,c\n1,1\n2,2\n"
    )
    with pytest.raises(DataError, match="'shop' and 'bank' disagree on the label of id '2'"):
        load_party_files(paths, id="id", label="y", label_at=["bank", "shop"])
    with pytest.raises(DataError, match=r"shop.csv: has the label column 'y', but 'shop' is not in label_at"):
        load_party_files(paths, id="id", label="y", label_at="bank")
    with pytest.raises(DataError, match="label_at names 'bnak', which has no file; did you mean 'bank'"):
        load_party_files(paths, id="id", label="y", label_at="bnak")


# --- the Python front -------------------------------------------------------------------------------

X = np.arange(40.0).reshape(4, 10)
Y = [1, -1, -1, 1]


class Frame:
    """As much of a data frame as is needed."""

    def __init__(self, values: np.ndarray[Any, Any], columns: list[str]) -> None:
        self.values, self.columns = values, columns

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.asarray(self.values, dtype=dtype)


def test_only_the_first_label_holder_may_hold_no_columns() -> None:
    names = [f"x{j}" for j in range(X.shape[1])]
    parties = split_columns(X, Y, columns={"hub": [], "bank": names}, active=1)
    assert parties.tables["hub"].X.shape == (len(X), 0)
    assert parties.tables["hub"].y is not None
    for columns, text in (
        ({"bank": names, "hub": []}, "party 'hub' has no columns; only the first active party ('bank')"),
        ({"hub": [], "bank": names, "shop": []}, "party 'shop' has no columns"),
    ):
        with pytest.raises(DataError, match=re.escape(text)):
            split_columns(X, Y, columns=columns, active=1)


@pytest.mark.parametrize(
    "form", [np.asarray, csr_array, csc_array, csr_matrix, np.ndarray.tolist, np.asfortranarray]
)
def test_split_columns_gives_each_party_its_columns(form: Any) -> None:
    parties = split_columns(form(X), Y, parties=4, active=2, seed=7)
    assert parties.active == ("party-0", "party-1")
    assert parties.rows == 4
    for party, table in parties.tables.items():
        own = table.X.toarray() if isinstance(table.X, csr_array) else table.X
        np.testing.assert_array_equal(own, X[:, list(parties.columns[party])])
        assert isinstance(table.X, np.ndarray) != (form in (csr_array, csc_array, csr_matrix))
        assert table.X.dtype == np.float64
        assert table.columns == tuple(f"x{j}" for j in parties.columns[party])
        assert (table.y is None) == (party not in parties.active)
    y = parties.tables["party-0"].y
    assert y is not None
    assert y.tolist() == Y
    assert split_columns(X, Y).active == ("party-0", "party-1", "party-2")
    assert split_columns(X, Y, parties=2).active == ("party-0", "party-1")


def test_like_repeats_a_split_on_other_rows() -> None:
    parties = split_columns(X, Y, parties=3, active=1, seed=5)
    test = split_columns(X[:2] + 100, like=parties)
    assert test.columns == parties.columns
    assert test.active == parties.active
    for party, table in test.tables.items():
        np.testing.assert_array_equal(table.X, parties.tables[party].X[:2] + 100)
        assert table.y is None
    with pytest.raises(DataError, match="no column 'x9'"):
        split_columns(X[:, :9], like=parties)


def test_a_frame_brings_its_names_and_like_matches_by_name() -> None:
    names = ["age", "income", "visits"]
    holders = {"bank": ["income", "age"], "shop": ["visits"]}
    parties = split_columns(Frame(X[:, :3], names), Y, columns=holders, active=1)
    assert parties.active == ("bank",)
    np.testing.assert_array_equal(parties.tables["bank"].X, X[:, [1, 0]])
    reordered = split_columns(Frame(X[:, [2, 0, 1]], ["visits", "age", "income"]), like=parties)
    np.testing.assert_array_equal(reordered.tables["bank"].X, X[:, [1, 0]])
    with pytest.raises(DataError, match="column 'visits' and 0 more belong to no party"):
        split_columns(Frame(X[:, :3], names), Y, columns={"bank": ["age", "income"]})


def test_text_labels_are_coded_alike_in_training_and_test() -> None:
    parties = split_columns(X, ["spam", "ham", "ham", "spam"], parties=2, active=1)
    assert parties.labels is not None
    assert parties.labels.classes == ("ham", "spam")
    for one, wanted in (
        (parties, [1, 0, 0, 1]),
        (split_columns(X[:2], ["spam", "spam"], like=parties), [1, 1]),
    ):
        y = one.tables["party-0"].y
        assert y is not None
        assert y.tolist() == wanted
    with pytest.raises(DataError, match="y: label eggs in row 2 is out of range"):
        split_columns(X[:2], ["spam", "eggs"], like=parties)


def bad(row: int, column: int, value: float) -> np.ndarray[Any, Any]:
    out = X.copy()
    out[row, column] = value
    return out


@pytest.mark.parametrize(
    ("x", "y", "options", "text"),
    [
        (bad(2, 3, np.nan), Y, {}, "X: column 'x3', row 3 is NaN or infinite"),
        (csr_array(bad(2, 3, np.inf)), Y, {}, "X: column 'x3', row 3 is NaN or infinite"),
        (X, [1, -1], {}, "y has shape (2,) where X has 4 rows"),
        (X, [1, -1, np.nan, 1], {}, "y: the label of row 3 is NaN or infinite"),
        (X[0], Y, {}, "X has shape (10,)"),
        (X[:0], None, {}, "X has shape (0, 10)"),
        ([["a"]], None, {}, "not a number"),
        (X, Y, {"active": 0}, "active = 0 with 8 parties"),
        (X, Y, {"parties": 2, "active": 3}, "active = 3 with 2 parties"),
        (X, Y, {"parties": 11}, "parties = 11 with 10 columns"),
    ],
)
def test_bad_arrays(x: Any, y: Any, options: dict[str, Any], text: str) -> None:
    with pytest.raises(DataError, match=re.escape(text)):
        split_columns(x, y, **options)
