"""The schedule: every epoch is every row once, the same at every party."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colonnade.conversations.pacing import schedule as module
from colonnade.conversations.pacing.schedule import OwnPasses, OwnTurns, Schedule

schedules = st.builds(
    Schedule,
    rows=st.integers(1, 60),
    batch=st.integers(1, 70),
    epochs=st.integers(1, 4),
    seed=st.integers(0, 2**32),
    dominators=st.sampled_from([("a",), ("a", "b"), ("c", "a", "b")]),
    reshuffle=st.booleans(),
)


@given(schedules)
@settings(max_examples=60)
def test_every_epoch_covers_every_row_exactly_once(schedule: Schedule) -> None:
    seen: dict[int, list[int]] = {epoch: [] for epoch in range(schedule.epochs)}
    for number in range(schedule.rounds):
        batch = schedule.round(number)
        seen[batch.epoch] += schedule.order(batch.epoch)[batch.start : batch.end].tolist()
    assert all(sorted(rows) == list(range(schedule.rows)) for rows in seen.values())


@given(schedules)
@settings(max_examples=60)
def test_a_pass_is_cut_into_equal_batches(schedule: Schedule) -> None:
    for epoch in range(schedule.epochs):
        numbers = range(epoch * schedule.per_epoch, (epoch + 1) * schedule.per_epoch)
        batches = [schedule.round(number) for number in numbers]
        assert [batch.number for batch in batches] == list(numbers)
        expected = np.array_split(np.arange(schedule.rows), schedule.per_epoch)
        for batch, rows in zip(batches, expected, strict=True):
            assert (batch.start, batch.end) == (rows[0], rows[-1] + 1)
        assert schedule.largest == batches[0].size == max(batch.size for batch in batches) <= schedule.batch


@given(schedules, st.integers(0, 20))
@settings(max_examples=60)
def test_with_an_offset_a_pass_begins_later_and_has_the_same_batches(schedule: Schedule, offset: int) -> None:
    numbers = range(schedule.per_epoch)
    plain = [schedule.round(number) for number in numbers]
    shifted = [schedule.round(number, offset) for number in numbers]
    assert [batch.number for batch in shifted] == list(numbers)
    assert {(batch.start, batch.end) for batch in shifted} == {(batch.start, batch.end) for batch in plain}
    assert shifted[0].start == plain[offset % len(plain)].start


@given(schedules)
def test_dominators_take_turns(schedule: Schedule) -> None:
    turns = [schedule.dominator(number) for number in range(2 * len(schedule.dominators))]
    assert turns == list(schedule.dominators) * 2


@given(schedules, st.integers(0, 3))
def test_two_parties_derive_the_same_order_without_a_word(schedule: Schedule, epoch: int) -> None:
    twin = replace(schedule)
    np.testing.assert_array_equal(schedule.order(epoch), twin.order(epoch))


def test_another_epoch_or_another_seed_is_another_order() -> None:
    orders = [Schedule(50, 8, 3, seed, ("a",)).order(epoch).tolist() for seed in (0, 1) for epoch in (0, 1)]
    assert len({tuple(order) for order in orders}) == 4


def test_rows_that_are_not_shuffled_anew_keep_the_order_of_the_first_epoch() -> None:
    schedule = Schedule(50, 8, 3, 0, ("a",), reshuffle=False)
    for epoch in (1, 2):
        np.testing.assert_array_equal(schedule.order(epoch), Schedule(50, 8, 3, 0, ("a",)).order(0))


@given(rows=st.integers(33, 400), epoch=st.integers(0, 3))
def test_blocks_are_a_shuffle_of_all_rows_from_anywhere_in_the_file(rows: int, epoch: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BLOCK", 32)
        patch.setattr(module, "SLICE", 4)
        module._shuffle.cache_clear()
        module._slices.cache_clear()
        schedule = Schedule(rows, 8, 4, 0, ("a",))
        order = schedule.order(epoch)
        assert sorted(order.tolist()) == list(range(rows))
        blocks = [schedule.block(epoch, number) for number in range(schedule.blocks)]
        assert all(len(block) == 32 for block in blocks[:-1])
        if rows >= 320:  # the chance that eight of ten slices are neighbours is nil
            assert all(np.ptp(block) > 40 for block in blocks[:-1])
        for start, end in ((0, rows), (5, 5), (30, 35), (rows - 3, rows)):
            np.testing.assert_array_equal(schedule.places(epoch, start, end), order[start:end])
    module._shuffle.cache_clear()
    module._slices.cache_clear()


@given(schedules)
@settings(max_examples=60)
def test_every_dominator_passes_over_all_rows_and_equally_fast_ones_do_so_together(
    schedule: Schedule,
) -> None:
    own = OwnPasses(**vars(replace(schedule)))
    m, per_epoch = len(own.dominators), own.per_epoch
    for j in range(m):
        batches = [own.round(number) for number in range(j, m * per_epoch, m)]
        assert {batch.epoch for batch in batches} == {0}
        assert sorted(batch.start for batch in batches) == [own.round(n).start for n in range(per_epoch)]
    for number in range(0, m * per_epoch - m, m):  # what is worked on at one time lies side by side
        for one, other in pairwise([own.round(number + j) for j in range(m)]):
            assert other.start == one.end % own.rows


@given(schedules)
@settings(max_examples=60)
def test_with_turns_of_their_own_equally_fast_dominators_share_every_epoch(schedule: Schedule) -> None:
    own = OwnTurns(**vars(replace(schedule)))
    assert [own.round(number) for number in range(own.rounds)] == [
        schedule.round(number) for number in range(own.rounds)
    ]
    m = len(own.dominators)
    assert [next(numbers) for numbers in own.given("a")] == [
        j for j in range(m) if own.dominators[j] != "a"
    ], "a list for every other dominator"
