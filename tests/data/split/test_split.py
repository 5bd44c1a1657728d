"""Every column is at one party, every row is for training or for the test, and parties agree on rows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colonnade import split_columns
from colonnade.data.datasets.loading import available
from colonnade.data.split.assign import assign
from colonnade.data.split.split import load_party_files, split_by_count, split_by_name, train_test_rows
from colonnade.errors import DataError
from colonnade.job import Data


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


@given(st.data(), st.lists(st.integers(1, 30), min_size=1, max_size=60), st.integers(0, 99))
def test_wide_columns_are_dealt_so_that_blocks_are_about_as_wide(
    data: st.DataObject, widths: list[int], seed: int
) -> None:
    parties = data.draw(st.integers(1, len(widths)))
    split = split_by_count([f"c{j}" for j in range(len(widths))], parties, seed, widths)
    assert sorted(j for part in split.values() for j in part) == list(range(len(widths)))
    held = [sum(widths[j] for j in part) for part in split.values()]
    assert min(held) > 0
    # who has most had no more than the mean before its last column, and no other has less than that
    assert max(held) <= sum(widths) / parties + max(widths)
    last = min(widths[j] for j in max(split.values(), key=lambda part: sum(widths[j] for j in part)))
    assert max(held) - last <= min(held)


def test_text_is_dealt_by_the_columns_that_it_becomes(tmp_path: Path) -> None:
    """Three columns of six words each, and six numbers: with words at all, every party gets one."""
    rng = np.random.default_rng(0)
    columns = {f"word{k}": rng.choice(list("uvwxyz"), 60) for k in range(3)}
    columns |= {f"n{k}": rng.normal(size=60) for k in range(6)}
    lines = [",".join([*columns, "y"])]
    lines += [",".join(map(str, row)) for row in zip(*columns.values(), np.arange(60) % 2, strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    data = Data(train=str(tmp_path / "t.csv"), label="y", parties=3, scale="none", missing="zero", rare=0)
    dealt = assign(data, label_holders=("party-0",), task="binary", intercept=False, seed=1)
    prepared = [party.prepare().train for party in dealt.parties.values()]
    assert [table.width for table in prepared] == [8, 8, 8]
    whole = split_columns(pd.DataFrame(columns), parties=3)
    assert [sum("word" in c for c in table.columns) for table in whole.tables.values()] == [1, 1, 1]


@pytest.mark.skipif(not available("uci-credit"), reason="UCI credit is not on this machine")
def test_a_known_set_with_codes_is_dealt_evenly() -> None:
    data = Data(train="uci-credit", parties=8, scale="minmax")
    dealt = assign(data, label_holders=("party-0",), task="binary", intercept=False, seed=0)
    widths = [party.prepare().train.width for party in dealt.parties.values()]
    assert max(widths) - min(widths) <= 4


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
        ({"bank": ["age"]}, "columns 'income', 'visits' belong to no party"),
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
