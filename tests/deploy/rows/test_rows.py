"""Ids in one form, rows on one side: what every party must derive alike."""

from __future__ import annotations

import re

import numpy as np
import pytest

from colonnade.deploy.rows.rows import commitment, digests, rules_of, split_rows
from colonnade.deploy.terms.terms import Split
from colonnade.errors import DataError
from colonnade.job import Key


def same(one: list[str], other: list[str], *keys: Key) -> bool:
    def hashed(parts: list[str]) -> bytes:
        return digests([np.array([p]) for p in parts], keys, [f"k{i}" for i in range(len(keys))]).tobytes()

    return hashed(one) == hashed(other)


def test_normal_forms() -> None:
    assert same([" Ada "], ["Ada"], Key())
    assert not same(["ada"], ["Ada"], Key())
    assert same(["STRASSE"], ["straße"], Key(case="lower"))
    assert same(["007"], ["7"], Key(kind="integer"))
    assert not same(["007"], ["7"], Key())
    assert same(["7.0"], ["7"], Key(kind="integer"))
    assert same(["1.2.2003"], ["2003-02-01"], Key(kind="date", formats=("%d.%m.%Y", "%Y-%m-%d")))
    assert same(["é"], ["é"], Key())  # one code point or two
    assert not same([" a"], ["a"], Key(trim=False))


def test_composite_keys_do_not_run_together() -> None:
    assert not same(["ab", "c"], ["a", "bc"], Key(), Key())
    assert same(
        ["Ada", "01.02.1990"],
        ["ada", "1990-02-01"],
        Key(case="lower"),
        Key(kind="date", formats=("%d.%m.%Y", "%Y-%m-%d")),
    )


@pytest.mark.parametrize(
    ("value", "key", "text"),
    [
        ("x", Key(kind="integer"), "row 1: 'x' is not a whole number"),
        ("+-5", Key(kind="integer"), "row 1: '+-5' is not a whole number"),
        ("²", Key(kind="integer"), "row 1: '²' is not a whole number"),
        ("9" * 5000, Key(kind="integer"), "9' is not a whole number"),
        ("1", Key(kind="date", formats=("%d%d", "%")), "row 1: '1' is not a date like %d%d, %"),
        ("32.1.2000", Key(kind="date", formats=("%d.%m.%Y",)), "is not a date like %d.%m.%Y"),
        ("  ", Key(), "row 1 is empty"),
    ],
)
def test_ids_that_have_no_form_are_named(value: str, key: Key, text: str) -> None:
    with pytest.raises(DataError, match=re.escape(text)):
        digests([np.array([value])], [key], ["id"])


def test_the_split_depends_on_the_id_alone() -> None:
    ids = digests([np.arange(5000).astype(str)], [Key()], ["id"])
    split = Split(test=0.2, validation=0.1)
    train, validation, test = split_rows(ids, split, seed=3)
    assert abs(len(test) / 5000 - 0.2) < 0.02
    assert abs(len(validation) / 5000 - 0.1) < 0.02
    assert sorted([*train, *validation, *test]) == list(range(5000))
    fewer = np.arange(0, 5000, 3)
    assert set(fewer[split_rows(ids[fewer], split, seed=3)[2]]) == set(test) & set(fewer)
    assert set(split_rows(ids, split, seed=4)[2]) != set(test)


def test_a_commitment_changes_with_the_set_and_not_with_its_order() -> None:
    ids = digests([np.arange(50).astype(str)], [Key()], ["id"])
    assert commitment(ids, b"salt") == commitment(ids[::-1], b"salt")
    assert commitment(ids, b"salt") != commitment(ids[1:], b"salt")
    assert commitment(ids, b"salt") != commitment(ids, b"other")


def test_rules_name_the_normalisation() -> None:
    assert rules_of([Key()]) == rules_of([Key()])
    assert rules_of([Key()]) != rules_of([Key(case="lower")])
    assert rules_of([Key()]) != rules_of([Key(), Key()])
