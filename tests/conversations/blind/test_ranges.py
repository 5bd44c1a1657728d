"""Every rule on how large numbers of a blind run may be: what breaks one is refused, never wrapped around."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles.tables import random_tables, run

from colonnade.conversations.blind import columns
from colonnade.conversations.blind.check import check_size
from colonnade.conversations.blind.slots import Lengths, Slot, bits_for
from colonnade.errors import FixedPointOverflow, JobError
from colonnade.job.plan import Facts


def slot(bits: int, rows: int = 3) -> Slot:
    return Slot(Lengths(1.0, 1.0), bits, np.random.default_rng(0), np.zeros(rows))


@pytest.mark.parametrize("value", [columns.LARGEST, -columns.LARGEST, np.nan, np.inf])
def test_a_column_s_value_that_is_too_large_or_no_number(value: float) -> None:
    X = np.full((4, 2), 0.999 * columns.LARGEST)
    turn = columns.Turn.none(2)
    columns.fixed(X, turn)
    X[2, 1] = value
    with pytest.raises(FixedPointOverflow, match="blind training takes values below"):
        columns.fixed(X, turn)


@pytest.mark.parametrize("value", [2.0**29, -(2.0**40), np.nan])
def test_a_step_that_does_not_fit(value: float) -> None:
    words, sent = slot(34).write(np.array([1.0, 2.0**27]))
    np.testing.assert_array_equal(words.view(np.int64)[0] * 2.0**-34, sent)
    with pytest.raises(FixedPointOverflow, match="does not fit"):
        slot(34).write(np.array([1.0, value]))


@given(st.floats(1e-6, 2.0**37))
def test_scores_as_large_as_bits_were_chosen_for_fit_and_twice_as_large_ones_are_not_read(
    largest: float,
) -> None:
    bits = bits_for(largest)
    limit = 2.0 ** (63 - 2 * columns.BITS - bits)
    assert largest < limit
    total = np.zeros((1, 3), dtype=np.uint64)
    slot(bits).value(total, reach=largest)
    with pytest.raises(FixedPointOverflow, match="beyond the range"):
        slot(bits).value(total, reach=limit)


def test_a_row_that_was_not_looked_at_for_long() -> None:
    """Its bound grows with all that was added since, until it could have wrapped around."""
    one, total = slot(bits_for(100.0)), np.zeros((1, 1), dtype=np.uint64)
    for _ in range(100):
        one.write(np.full(3, 20.0))
        one.value(total, np.array([0]))
    with pytest.raises(FixedPointOverflow, match="beyond the range"):
        one.value(total, np.array([1]))


def test_a_penalty_that_takes_all_at_once() -> None:
    with pytest.raises(JobError, match=r"blind training needs it below 0\.75"):
        run(
            random_tables(parties=3, active=1),
            "vfb-sgd",
            secure={"labels": "blind"},
            train={"step": 1.0, "l2": 0.8},
        )


def test_columns_that_are_too_many_to_be_veiled() -> None:
    def facts(rows: int) -> Facts:
        columns = {"bank": 10**6, "shop": 500, "telco": 500}
        return Facts(columns=columns, label_holders=("bank",), rows=rows, task="binary")

    check_size(facts(10**6))
    with pytest.raises(JobError, match=r"1,000 columns of 2,000,000 rows are 15 GiB"):
        check_size(facts(2 * 10**6))


@pytest.mark.parametrize("secure", [{}, {"scores": "hidden"}])
def test_labels_of_a_regression_that_leave_no_room(secure: dict[str, Any]) -> None:
    setting = random_tables(parties=3, active=1, rows=60, regression=True)
    train = {p: t if t.y is None else replace(t, y=t.y * 1e9) for p, t in setting.train.items()}
    with pytest.raises(FixedPointOverflow, match=r"label of size|beyond the range"):
        run(
            replace(setting, train=train),
            "vfb-sgd",
            secure={"labels": "blind", **secure},
            compare=False,
            train={"loss": "squared", "step": 1.9, "epochs": 20, "tolerance": 0.0},
        )
