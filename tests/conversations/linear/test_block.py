"""A block: a step from several batches is the sum of their gradients at the same weights; delays count."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from colonnade.conversations.linear.block import Block
from colonnade.conversations.pacing.delays import Delays
from colonnade.conversations.pacing.schedule import Schedule
from colonnade.optim.estimators import Saga, Sgd
from colonnade.regularizers import REGULARIZERS, Penalty


@given(
    st.data(),
    st.integers(1, 25),
    st.integers(1, 8),
    st.sampled_from(sorted(REGULARIZERS)),
    st.booleans(),
    st.integers(0, 2**32 - 1),
)
@settings(max_examples=100)
def test_a_coalesced_step_is_the_sum_of_the_batches_gradients_at_the_same_weights(
    data: st.DataObject, rows: int, batch: int, name: str, sparse: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, 4)) * (rng.random((rows, 4)) < 0.6)
    schedule = Schedule(rows, batch, 3, seed, ("a",))
    block = Block(csr_array(X) if sparse else X, schedule, Sgd(rows, (4,)), Penalty(REGULARIZERS[name], 0.1))
    block.w[:] = w = rng.standard_normal(4)
    numbers = data.draw(
        st.lists(st.integers(0, schedule.rounds - 1), min_size=1, max_size=6, unique=True), label="waiting"
    )
    thetas = [
        (schedule.round(number), rng.standard_normal(schedule.round(number).size)) for number in numbers
    ]

    expected = w.copy()
    for part, theta in thetas:
        which = schedule.order(part.epoch)[part.start : part.end]
        expected -= 0.3 * (X[which].T @ theta / part.size + 0.1 * REGULARIZERS[name].gradient(w))
    block.step(thetas, 0.3)
    np.testing.assert_allclose(block.w, expected, atol=1e-12)


def test_a_row_that_is_met_twice_before_all_were_met_gives_saga_plain_steps_and_the_right_mean() -> None:
    """Dominators of unequal pace meet some rows twice before others are met once."""
    rng = np.random.default_rng(5)
    X, schedule = rng.standard_normal((12, 3)), Schedule(12, 4, 9, 0, ("a",))
    block = Block(X, schedule, Saga(12, (3,)), Penalty(REGULARIZERS["l2"], 0.0))
    table = np.zeros(12)
    for number in (0, 3):  # the first batches of two passes, some of whose rows are the same
        batch, theta = schedule.round(number), rng.standard_normal(4)
        rows = schedule.rows_of(batch)
        table[rows] = theta
        np.testing.assert_allclose(block.estimate([(batch, theta)]), X[rows].T @ theta / 4, atol=1e-12)
    assert set(schedule.rows_of(schedule.round(0))) & set(schedule.rows_of(schedule.round(3)))
    np.testing.assert_allclose(block.estimator.memory.mean, X.T @ table / 12, atol=1e-12)


def test_one_batch_is_one_plain_sgd_step() -> None:
    rng = np.random.default_rng(1)
    X, theta, w = rng.standard_normal((7, 3)), rng.standard_normal(2), rng.standard_normal(3)
    schedule = Schedule(7, 2, 1, 5, ("a",))
    block = Block(X, schedule, Sgd(4, (2,)), Penalty(REGULARIZERS["l2"], 0.01))
    block.w[:] = w
    part = schedule.round(1)
    which = schedule.order(0)[2:4]
    np.testing.assert_allclose(block.scores(part), X[which] @ w)
    block.step([(part, theta)], 0.5)
    np.testing.assert_allclose(block.w, w - 0.5 * (X[which].T @ theta / 2 + 0.01 * w))


def test_a_step_changes_the_weights_in_place() -> None:
    schedule = Schedule(4, 2, 1, 0, ("a",))
    block = Block(np.ones((4, 2)), schedule, Sgd(4, (2,)), Penalty(REGULARIZERS["l2"], 0.0))
    shared = block.w
    block.step([(schedule.round(0), np.ones(2))], 1.0)
    assert block.w is shared
    assert shared.tolist() == [-1.0, -1.0]


def test_a_received_theta_that_cannot_be_written_is_taken() -> None:
    schedule = Schedule(4, 2, 1, 0, ("a",))
    block = Block(csr_array(np.ones((4, 2))), schedule, Sgd(4, (2,)), Penalty(REGULARIZERS["l2"], 0.0))
    block.step([(schedule.round(i), np.frombuffer(np.ones(2).tobytes())) for i in (0, 1)], 1.0)
    assert block.w.tolist() == [-2.0, -2.0]


def test_forgotten_epochs_come_back_the_same() -> None:
    X = np.random.default_rng(2).standard_normal((6, 2))
    schedule = Schedule(6, 4, 3, 0, ("a",))
    block = Block(X, schedule, Sgd(4, (2,)), Penalty(REGULARIZERS["l2"], 0.0))
    block.w[:] = 1.0
    before = block.scores(schedule.round(0))
    block.scores(schedule.round(4))
    block.keep([2])
    np.testing.assert_array_equal(block.scores(schedule.round(0)), before)


@pytest.mark.parametrize("reshuffle", [False, True])
def test_rows_are_copied_once_unless_they_are_shuffled_anew(reshuffle: bool) -> None:
    block = Block(
        np.eye(6), Schedule(6, 4, 3, 0, ("a",), reshuffle), Sgd(6, (6,)), Penalty(REGULARIZERS["l2"], 0.0)
    )
    first = block.rows(0)
    block.keep([2])
    third = block.rows(2)
    assert (first is third) is not reshuffle


@pytest.mark.parametrize("kind", [np.asarray, csr_array], ids=["dense", "sparse"])
def test_values_count_the_stored_numbers_of_all_batches(kind: type) -> None:
    X = np.eye(6, 3)
    schedule = Schedule(6, 4, 1, 0, ("a",))
    block = Block(kind(X), schedule, Sgd(4, (2,)), Penalty(REGULARIZERS["l2"], 0.0))
    expected = X.size if kind is np.asarray else np.count_nonzero(X)
    assert block.values([schedule.round(0), schedule.round(1)]) == expected


def test_the_penalty_is_lambda_times_the_regularizer() -> None:
    block = Block(
        np.ones((2, 2)), Schedule(2, 2, 1, 0, ("a",)), Sgd(2, (2,)), Penalty(REGULARIZERS["l2"], 0.1)
    )
    block.w[:] = [3.0, 4.0]
    assert block.penalty.value(block.w) == pytest.approx(0.1 * 12.5)


def test_a_delay_is_the_number_of_updates_between_reading_and_applying() -> None:
    delays = Delays(expected=6)
    delays.read(0, finished=0)
    delays.read(1, finished=0)
    delays.apply([1], finished=0)
    delays.apply([0], finished=1)
    delays.read(2, finished=2)
    delays.apply([2], finished=5)
    assert delays.counts == {0: 1, 1: 1, 3: 1}


def test_the_recent_delay_is_the_expected_one_at_first_then_what_nine_of_ten_did_not_exceed() -> None:
    delays = Delays(expected=6)
    assert delays.recent() == 6
    for number in range(20):
        delays.read(number, 0)
        delays.apply([number], 9 if number < 2 else 4 if number < 10 else 1)
    assert delays.recent() == 6
    delays.turn()
    assert delays.recent() == 4
    delays.read(20, 4)
    delays.apply([20], 5)
    delays.turn()
    assert delays.recent() == 1
