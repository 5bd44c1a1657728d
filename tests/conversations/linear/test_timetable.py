"""Timetables: every pass that was asked for is spent, on steps or on a snapshot, and counted once."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles.variance_reduced import svrg_passes

from colonnade.conversations.linear.timetable import INNER, Timetable

passes = st.integers(1, 60)
per_epoch = st.integers(1, 20)


@given(passes, per_epoch, st.booleans(), st.booleans())
def test_a_run_takes_exactly_the_passes_it_was_given(n: int, per: int, svrg: bool, tune: bool) -> None:
    plan = Timetable.of(n, per, svrg=svrg, tune=tune, pair_every=None)
    assert plan.passes(plan.epochs * per) == n
    assert plan.rounds(plan.epochs * per) == n * per
    assert plan.epochs + len(plan.snapshots) == n


@given(passes, per_epoch)
def test_passes_and_rounds_count_a_snapshot_when_the_first_step_after_it_is_done(n: int, per: int) -> None:
    plan = Timetable.of(n, per, svrg=True, tune=False, pair_every=None)
    spent, epoch = [], 0
    for what in svrg_passes(n):
        spent.append(what)
        if what == "steps":
            epoch += 1
            assert plan.passes(epoch * per) == len(spent)
            assert plan.rounds(epoch * per) == len(spent) * per
            # a snapshot that lies between two epochs is not yet paid for at the end of the first
            assert plan.rounds((epoch - 1) * per + 1) == 1 + (len(spent) - 1) * per
    assert [spent[:k].count("steps") for k, what in enumerate(spent) if what == "snapshot"] == list(
        plan.snapshots
    )


@given(passes, per_epoch)
def test_snapshots_are_at_most_a_few_passes_of_steps_apart_and_each_is_used(n: int, per: int) -> None:
    plan = Timetable.of(n, per, svrg=True, tune=False, pair_every=None)
    apart = [b - a for a, b in itertools.pairwise((*plan.snapshots, plan.epochs))]
    assert all(1 <= steps <= INNER + 1 for steps in apart)
    assert plan.snapshots[:1] == ((1,) if n >= 3 else ())  # the first pass is plain SGD


@given(passes)
def test_the_step_is_measured_anew_after_one_three_seven_epochs_and_so_on(n: int) -> None:
    plan = Timetable.of(n, 5, svrg=False, tune=True, pair_every=None)
    assert plan.tunings == tuple(k for k in (1, 3, 7, 15, 31, 63) if k < n)


@pytest.mark.parametrize(("every", "pairs"), [(4, (4, 8)), (5, (5, 10)), (12, ()), (None, ())])
def test_pairs_come_every_so_many_rounds_and_never_after_the_last(
    every: int | None, pairs: tuple[int, ...]
) -> None:
    plan = Timetable.of(2, 6, svrg=False, tune=False, pair_every=every)
    assert plan.pairs == pairs
    assert plan.gates == set(pairs)


def test_gates_are_where_something_is_done_together() -> None:
    plan = Timetable.of(7, 10, svrg=True, tune=True, pair_every=15)
    assert plan.snapshots == (1, 3)
    assert plan.gates == {10, 30} | {15, 30, 45}
