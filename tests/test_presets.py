"""Presets: what there is, and which combinations are refused with the reason."""

from __future__ import annotations

from typing import Any

import pytest

from colonnade.config import Job, job_from
from colonnade.errors import JobError
from colonnade.presets import PRESETS, batches_in_flight, preset_of


def job(algorithm: str, **train: Any) -> Job:
    return job_from(
        {"algorithm": algorithm, "data": {"train": "x", "parties": 4, "active": 2}, "train": train}
    )


SYNCHRONOUS = sorted(name for name, preset in PRESETS.items() if preset.schedule == "sync")


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_every_preset_goes_by_its_own_name_and_says_in_one_line_what_it_is(name: str) -> None:
    preset = PRESETS[name]
    assert preset_of(job(name)) is preset
    assert preset.name == name
    assert preset.summary
    assert "\n" not in preset.summary
    assert preset.paper


def test_an_unknown_algorithm_suggests_the_nearest() -> None:
    with pytest.raises(JobError, match=r"^algorithm: there is no 'vfb2-sdg'; did you mean vfb2-sgd\?$"):
        preset_of(job("vfb2-sdg"))


def test_an_algorithm_like_no_other_points_to_the_list() -> None:
    with pytest.raises(JobError, match="there is no 'qqq'; `colonnade algorithms` lists them"):
        preset_of(job("qqq"))


@pytest.mark.parametrize("name", SYNCHRONOUS)
def test_a_synchronous_algorithm_has_one_batch_in_flight_and_refuses_more(name: str) -> None:
    with pytest.raises(JobError, match=f"train.ahead: {name} is synchronous.*drop ahead"):
        preset_of(job(name, ahead=2))
    assert batches_in_flight(job(name, ahead=1), active=3) == 1
    assert batches_in_flight(job(name, max_delay=0), active=3) == 1


@pytest.mark.parametrize("active", [1, 2, 5])
def test_an_asynchronous_algorithm_has_one_batch_per_dominator_in_flight_unless_told(active: int) -> None:
    assert batches_in_flight(job("vfb2-sgd"), active) == active
    assert batches_in_flight(job("vfb2-sgd", ahead=7), active) == 7


@pytest.mark.parametrize(("ahead", "max_delay"), [(2, 1), (3, 3), (9, 15), (2, 0)])
def test_more_in_flight_than_the_delay_allows_is_refused_and_both_ways_out_work(
    ahead: int, max_delay: int
) -> None:
    with pytest.raises(JobError, match=f"can be {2 * (ahead - 1)} updates late, over max_delay") as caught:
        batches_in_flight(job("vfb2-sgd", ahead=ahead, max_delay=max_delay), active=1)
    fewer, later = max_delay // 2 + 1, 2 * (ahead - 1)
    assert f"set ahead = {fewer} or max_delay = {later}" in str(caught.value)
    assert batches_in_flight(job("vfb2-sgd", ahead=fewer, max_delay=max_delay), active=1) == fewer
    assert batches_in_flight(job("vfb2-sgd", ahead=ahead, max_delay=later), active=1) == ahead
