"""Assigning: every column to one party, the label to the active ones only, the same rows to all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from colonnade.data.prepare.labels import Task
from colonnade.data.split.assign import Assigned, assign, label_holders
from colonnade.errors import DataError
from colonnade.job import Data

ROWS = 40


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Rows whose columns tell which row they are: a = i, b = 2 i, c = 3 i, colour by parity."""
    lines = ["id,a,b,c,colour,y"]
    for i in range(ROWS):
        colour, label = "red" if i % 2 else "blue", "yes" if i % 3 else "no"
        lines.append(f"r{i},{i},{2 * i},{3 * i},{colour},{label}")
    path = tmp_path / "all.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def given(data: Data, task: Task | None = None, seed: int = 0) -> Assigned:
    """What the job's own words say about labels and intercept."""
    holders = label_holders(data.party_names, data.active)
    return assign(data, label_holders=holders, task=task, intercept=bool(data.intercept), seed=seed)


def assigned(path: Path, seed: int = 0, **choices: Any) -> Assigned:
    data = {"train": str(path), "label": "y", "id": "id", "parties": 2, "positive": ["yes"], **choices}
    return given(Data(**data), "binary", seed)


def test_every_column_is_at_exactly_one_party(table: Path) -> None:
    parties = assigned(table, parties=3).parties
    columns = [column for held in parties.values() for column in held.train.columns]
    assert sorted(columns) == ["a", "b", "c", "colour"]
    assert len(parties) == 3


def test_the_label_is_at_its_holders_and_nowhere_else(table: Path) -> None:
    done = assigned(table, parties=4, active=2)
    assert done.label_holders == tuple(done.parties)[:2]
    for party, held in done.parties.items():
        assert held.test is not None
        assert (held.train.y is not None) == (held.test.y is not None) == (party in done.label_holders)
        # the columns must not carry it along either
        assert "y" not in held.train.columns


def test_training_and_test_rows_are_the_same_people_at_every_party_and_never_both(table: Path) -> None:
    parties = list(assigned(table, parties=3, test_fraction=0.25).parties.values())
    ids = []
    for held in parties:
        assert held.train.ids is not None
        assert held.test is not None
        assert held.test.ids is not None
        ids.append((held.train.ids.tolist(), held.test.ids.tolist()))
    assert all(one == ids[0] for one in ids)
    train, test = ids[0]
    assert sorted([*train, *test]) == sorted(f"r{i}" for i in range(ROWS))
    assert len(test) == ROWS // 4


def test_labels_stay_with_their_rows(table: Path) -> None:
    done = assigned(table)
    held = done.parties[done.label_holders[0]]
    assert held.train.y is not None
    assert held.train.ids is not None
    expected = [1.0 if int(name[1:]) % 3 else -1.0 for name in held.train.ids]
    assert held.train.y.tolist() == expected


def test_the_same_seed_gives_everybody_the_same_and_another_seed_something_else(table: Path) -> None:
    def fingerprint(seed: int) -> tuple[Any, ...]:
        trains = [held.train for held in assigned(table, seed).parties.values()]
        return tuple((raw.columns, *([] if raw.ids is None else raw.ids.tolist())) for raw in trains)

    assert fingerprint(1) == fingerprint(1)
    assert fingerprint(1) != fingerprint(2)


def test_named_columns_go_where_the_job_says_and_dropped_ones_nowhere(table: Path) -> None:
    columns = {"bank": ["c", "a"], "shop": ["colour"]}
    done = assigned(table, parties=None, columns=columns, drop=["b"], active=["shop"])
    assert {party: set(held.train.columns) for party, held in done.parties.items()} == {
        "bank": {"a", "c"},
        "shop": {"colour"},
    }
    assert done.label_holders == ("shop",)


def test_the_intercept_is_one_column_at_the_first_active_party(table: Path) -> None:
    columns = {"bank": ["a"], "shop": ["b", "c"]}
    widths = {}
    for intercept in (False, True):
        done = assigned(
            table, parties=None, columns=columns, drop=["colour"], active=["shop"], intercept=intercept
        )
        widths[intercept] = {party: held.prepare()[1].width for party, held in done.parties.items()}
    assert widths == {False: {"bank": 1, "shop": 2}, True: {"bank": 1, "shop": 3}}


def test_preparation_takes_its_statistics_from_training_rows_alone(table: Path) -> None:
    done = assigned(table, parties=None, columns={"bank": ["a", "b", "c"]}, drop=["colour"], scale="zscore")
    _, train, test = done.parties["bank"].prepare()
    assert test is not None
    assert isinstance(train.X, np.ndarray)
    np.testing.assert_allclose(train.X.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(train.X.std(axis=0), 1.0, atol=1e-12)
    assert np.abs(np.asarray(test.X).mean(axis=0)).max() > 1e-6


def test_an_intercept_goes_to_another_party_where_the_first_label_holder_has_no_columns(table: Path) -> None:
    columns: dict[str, list[str]] = {"server": [], "bank": ["a", "b"], "shop": ["c"]}
    done = assigned(table, parties=None, columns=columns, drop=["colour"], intercept=True)
    held = {party: held.prepare()[1].columns for party, held in done.parties.items()}
    assert held == {"server": (), "bank": ("a", "b", "(intercept)"), "shop": ("c",)}


def test_files_of_several_parties_are_joined_by_id(tmp_path: Path) -> None:
    rows = range(12)
    (tmp_path / "bank.csv").write_text("id,a\n" + "".join(f"r{i},{i}\n" for i in rows))
    (tmp_path / "shop.csv").write_text(
        "id,b,y\n" + "".join(f"r{i},{10 * i},{i % 2}\n" for i in reversed(rows))
    )
    files = {"bank": str(tmp_path / "bank.csv"), "shop": str(tmp_path / "shop.csv")}
    done = given(Data(files=files, id="id", label="y", active=["shop"]))
    bank, shop = (done.parties[party] for party in ("bank", "shop"))
    np.testing.assert_array_equal(10 * bank.train.column("a"), shop.train.column("b"))
    assert bank.train.y is None
    assert shop.train.y is not None
    expected = np.where(bank.train.column("a") % 2 == 1, 1.0, -1.0)
    np.testing.assert_array_equal(shop.train.y, expected)


def test_a_dropped_column_need_not_be_in_every_file_but_in_one(tmp_path: Path) -> None:
    rows = range(12)
    (tmp_path / "bank.csv").write_text("id,a,when\n" + "".join(f"r{i},{i},{i}\n" for i in rows))
    (tmp_path / "shop.csv").write_text("id,b,y\n" + "".join(f"r{i},{i},{i % 2}\n" for i in rows))
    files = {"bank": str(tmp_path / "bank.csv"), "shop": str(tmp_path / "shop.csv")}
    terms: dict[str, Any] = {"files": files, "id": "id", "label": "y", "active": ["shop"]}
    parties = given(Data(**terms, drop=["when"])).parties
    assert {party: held.train.columns for party, held in parties.items()} == {"bank": ("a",), "shop": ("b",)}
    with pytest.raises(DataError, match=r"data\.drop: no party has a column 'wen'; did you mean 'when'"):
        given(Data(**terms, drop=["wen"]))


@pytest.mark.parametrize(
    ("choices", "text"),
    [
        ({"label": None}, "no label; name its column with data.label"),
        (
            {"active": ["nobody"]},
            "data.active: there is no party 'nobody'; the parties are party-0, party-1",
        ),
        ({"active": []}, "data.active: at least one party must hold the label"),
        ({"drop": ["colr"]}, "no column 'colr'"),
        ({"parties": 9}, "every party needs at least one column"),
    ],
)
def test_what_cannot_be_assigned_is_named(table: Path, choices: dict[str, Any], text: str) -> None:
    with pytest.raises(DataError, match=text):
        assigned(table, **choices)


def test_files_without_an_id_or_a_label_are_refused() -> None:
    with pytest.raises(DataError, match=r"name the id column \(data.id\) and the label column"):
        given(Data(files={"a": "a.csv"}))


def test_test_files_must_be_one_for_every_party(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,x,y\nr1,1,0\nr2,2,1\n")
    (tmp_path / "b.csv").write_text("id,z\nr1,1\nr2,2\n")
    files = {name: str(tmp_path / f"{name}.csv") for name in ("a", "b")}
    data = Data(files=files, test_files={"a": files["a"]}, id="id", label="y", active=["a"])
    with pytest.raises(DataError, match="one test file for every party"):
        given(data)


@pytest.mark.parametrize(
    ("label", "task"),
    [
        (lambda i: i % 5, "multiclass"),
        (lambda i: "abcd"[i % 4], "multiclass"),
        (lambda i: i / 7, "regression"),
        (lambda i: 3 * i, "regression"),
        (lambda i: i % 2, "binary"),
    ],
)
def test_what_a_label_is_is_guessed_unless_the_job_says_it(tmp_path: Path, label: Any, task: str) -> None:
    path = tmp_path / "many.csv"
    path.write_text("x,y\n" + "".join(f"{i},{label(i)}\n" for i in range(30)))
    done = given(Data(train=str(path), label="y", parties=1))
    assert done.guessed
    assert done.labels.task == task
    if task == "multiclass" and label(0) == 0:
        assert given(Data(train=str(path), label="y", parties=1), "regression").labels.task == "regression"


def test_a_label_of_names_is_neither_class_nor_number(tmp_path: Path) -> None:
    path = tmp_path / "names.csv"
    path.write_text("x,y\n" + "".join(f"{i},name{i}\n" for i in range(30)))
    with pytest.raises(DataError, match="30 different texts in 30 rows"):
        given(Data(train=str(path), label="y", parties=1))


def test_a_label_that_is_always_the_same_teaches_nothing(tmp_path: Path) -> None:
    path = tmp_path / "one.csv"
    path.write_text("x,y\n" + "".join(f"{i},yes\n" for i in range(20)))
    with pytest.raises(DataError, match="every label is yes; training needs at least two classes"):
        given(Data(train=str(path), label="y", parties=1))
