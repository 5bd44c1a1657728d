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
from colonnade.conversations.blind.fixed_point import Lengths, Slot, bits_for, column_bits
from colonnade.conversations.linear.parties.blind_refusals import check_size
from colonnade.errors import FixedPointOverflow, JobError
from colonnade.job.plan import Facts

UNIT = Lengths(1.0, 1.0)


def slot(bits: int, lengths: Lengths = UNIT, ahead: int = 1) -> Slot:
    return Slot(lengths, bits, np.random.default_rng(0), np.zeros(()), ahead)


@pytest.mark.parametrize("bits", [columns.COARSEST, columns.FINEST])
@pytest.mark.parametrize("value", [columns.LARGEST, -columns.LARGEST, np.nan, np.inf])
def test_a_column_s_value_that_is_too_large_or_no_number(value: float, bits: int) -> None:
    X = np.full((4, 2), 0.999 * columns.LARGEST)
    turn = columns.Turn.none(2)
    columns.fixed(X, turn, bits)
    columns.lengths(X)
    X[2, 1] = value
    with pytest.raises(FixedPointOverflow, match="blind training takes values below"):
        columns.fixed(X, turn, bits)


@pytest.mark.parametrize("value", [1e9, -1e9, 1e200, np.nan, np.inf])
def test_a_row_that_is_too_long_or_no_numbers(value: float) -> None:
    X = np.ones((4, 2))
    X[2, 1] = value
    with pytest.raises(FixedPointOverflow, match="blind training takes values below"):
        columns.lengths(X)


@given(st.integers(columns.COARSEST, columns.FINEST), st.integers(1, 200), st.floats(-10, 19))
def test_rows_are_never_longer_than_their_owner_says(bits: int, width: int, size: float) -> None:
    rng = np.random.default_rng(width)
    X = rng.standard_normal((20, width)) * 2.0**size / 8
    turn = columns.Turn.secret(width, bytes(32))
    values = columns.fixed(X, turn, bits).values.astype(np.float64) * 2.0**-bits
    longest, together = columns.lengths(X)
    assert (values**2).sum(axis=1).max() <= longest * (1 + 1e-12)
    assert (values**2).sum() <= together * (1 + 1e-12)


@pytest.mark.parametrize("value", [2.0**29, -(2.0**40), np.nan])
def test_a_step_that_does_not_fit(value: float) -> None:
    words, sent = slot(34).written(np.array([1.0, 2.0**27]))
    np.testing.assert_array_equal(words.view(np.int64)[0] * 2.0**-34, sent)
    with pytest.raises(FixedPointOverflow, match="does not fit"):
        slot(34).written(np.array([1.0, value]))


@given(st.floats(1e-6, 2.0**37), st.integers(columns.COARSEST, columns.FINEST))
def test_scores_as_large_as_bits_were_chosen_for_fit_and_twice_as_large_ones_are_not_read(
    largest: float, columns: int
) -> None:
    one = slot(bits_for(largest, columns), replace(UNIT, bits=columns))
    assert largest < one.limit
    total = np.zeros((1, 3), dtype=np.uint64)
    one.value(total, np.array(largest))
    with pytest.raises(FixedPointOverflow, match="beyond the range"):
        one.value(total, np.array(one.limit))


@given(st.floats(0.0, 200.0), st.floats(-10.0, 10.0))
def test_columns_are_written_as_finely_as_coefficients_that_need_more(free: float, more: float) -> None:
    bits = column_bits(free, more)
    assert columns.COARSEST <= bits <= columns.FINEST
    left = free - 2 * bits  # the coefficients'
    assert bits == columns.COARSEST or left >= bits + more
    assert bits == columns.FINEST or left <= bits + more + 3


@pytest.mark.parametrize("classes", [0, 3])
@pytest.mark.parametrize("ahead", [1, 2, 4])
@given(st.integers(0, 2**16), st.floats(0.0, 3.0), st.floats(-9.0, 9.0))
def test_a_vector_is_never_longer_than_its_bound(
    ahead: int, classes: int, seed: int, outlier: float, aimed: float
) -> None:
    """Whatever is added, also batches that all point one way, and scored some changes before."""
    rng = np.random.default_rng(seed)
    rows, size, shape = 24, 6, (classes,) if classes else ()
    X = rng.standard_normal((rows, 4))
    X[0] *= 10.0**outlier
    squared = (X * X).sum(axis=1)
    one = Slot(Lengths.of(np.array([squared.max(), squared.sum()])), 20, rng, np.zeros(shape), ahead)
    p, C = np.zeros((4, *shape)), np.zeros((rows, *shape))
    for epoch in range(4):
        asked, order = [], rng.permutation(rows)
        for k, batch in enumerate([*order.reshape(-1, size)] + [None] * (ahead - 1)):
            if batch is not None:
                asked.append((batch, X[batch] @ p))
            if k < ahead - 1:
                continue
            now, z = asked.pop(0)
            _, sent = one.write(aimed * np.sign(z) + rng.standard_normal(z.shape), z)
            p, C[now] = p + X[now].T @ sent, C[now] + sent
            assert (np.sqrt((p * p).sum(axis=0)) <= one.length * (1 + 1e-9)).all()
        one.settle((C * (X @ p)).sum(axis=0) if epoch == 2 else None)
        assert ((p * p).sum(axis=0) <= one.length**2 * (1 + 1e-9)).all()


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
