"""Presets: what there is, and which combinations are refused with the reason."""

from __future__ import annotations

from typing import Any

import pytest
from tests.oracles.tables import random_tables, run

from colonnade.conversations.linear.settings import LinearSettings
from colonnade.errors import JobError
from colonnade.job import Job, job_from
from colonnade.job.plan import Facts
from colonnade.job.presets import PRESETS
from colonnade.run.resolve import compose, resolve


def job(algorithm: str, terms: dict[str, Any] | None = None, **train: Any) -> Job:
    """A job of four parties; `terms` are its [direction]."""
    sections = {"data": {"train": "x", "parties": 4, "active": 2}, "privacy": {"epsilon": 1.0}}
    return job_from({"algorithm": algorithm, **sections, "train": train, "direction": terms or {}})


PULL = sorted(name for name, preset in PRESETS.items() if preset.conversation == "pull")
BACKWARD = sorted(name for name, preset in PRESETS.items() if preset.conversation == "backward")
NOT_LINEAR = sorted(set(PRESETS) - {*PULL, *BACKWARD, "lbfgs"})
SYNCHRONOUS = sorted(name for name, preset in PRESETS.items() if preset.schedule == "sync")


def settings(job: Job) -> LinearSettings:
    """The settings that a linear job's plan has."""
    names = job.data.party_names
    facts = Facts(columns=dict.fromkeys(names, 2), label_holders=names, rows=1000, task="binary")
    chosen: LinearSettings = resolve(compose(job), facts).settings
    return chosen


def choices(job: Job) -> tuple[str, str]:
    found = settings(job)
    return found.estimator, "plain" if found.pairs == "none" else "lbfgs"


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_every_preset_goes_by_its_own_name_and_says_in_one_line_what_it_is(name: str) -> None:
    preset = PRESETS[name]
    assert compose(job(name)).preset is preset
    assert preset.name == name
    assert preset.summary
    assert "\n" not in preset.summary
    assert preset.paper


def test_an_unknown_algorithm_suggests_the_nearest() -> None:
    with pytest.raises(JobError, match=r"^algorithm: there is no 'vfb2-sdg'; did you mean vfb2-sgd\?$"):
        compose(job("vfb2-sdg"))


def test_an_algorithm_like_no_other_points_to_the_list() -> None:
    with pytest.raises(JobError, match="there is no 'qqq'; `colonnade algorithms` lists them"):
        compose(job("qqq"))


@pytest.mark.parametrize("name", SYNCHRONOUS)
def test_a_synchronous_algorithm_has_one_batch_in_flight_and_refuses_more(name: str) -> None:
    with pytest.raises(JobError, match=f"train.ahead: {name} is synchronous.*drop ahead"):
        compose(job(name, ahead=2))
    assert compose(job(name, ahead=1)).ahead(3) == 1
    assert compose(job(name, max_delay=0)).ahead(3) == 1


@pytest.mark.parametrize("active", [1, 2, 5])
def test_an_asynchronous_algorithm_has_one_batch_per_dominator_in_flight_unless_told(active: int) -> None:
    assert compose(job("vfb2-sgd")).ahead(active) == active
    assert compose(job("vfb2-sgd", ahead=7)).ahead(active) == 7


@pytest.mark.parametrize(("ahead", "max_delay"), [(2, 1), (3, 3), (9, 15), (2, 0)])
def test_more_in_flight_than_the_delay_allows_is_refused_and_both_ways_out_work(
    ahead: int, max_delay: int
) -> None:
    with pytest.raises(JobError, match=f"can be {2 * (ahead - 1)} updates late, over max_delay") as caught:
        compose(job("vfb2-sgd", ahead=ahead, max_delay=max_delay)).ahead(1)
    fewer, later = max_delay // 2 + 1, 2 * (ahead - 1)
    assert f"set ahead = {fewer} or max_delay = {later}" in str(caught.value)
    assert compose(job("vfb2-sgd", ahead=fewer, max_delay=max_delay)).ahead(1) == fewer
    assert compose(job("vfb2-sgd", ahead=ahead, max_delay=later)).ahead(1) == ahead


# -- estimators, directions, labels -------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in (*PULL, *BACKWARD) if not PRESETS[name].literal])
def test_a_job_may_choose_another_estimator_or_direction_than_its_algorithm_s(name: str) -> None:
    preset = PRESETS[name]
    assert choices(job(name)) == (preset.estimator, preset.direction)
    assert choices(job(name, estimator="saga")) == ("saga", preset.direction)
    assert choices(job(name, direction="lbfgs")) == (preset.estimator, "lbfgs")
    assert choices(job(name, direction="plain")) == (preset.estimator, "plain")


@pytest.mark.parametrize("name", NOT_LINEAR)
@pytest.mark.parametrize("choice", [{"estimator": "saga"}, {"direction": "lbfgs"}])
def test_estimators_and_directions_are_for_linear_scores_only(name: str, choice: dict[str, Any]) -> None:
    with pytest.raises(JobError, match=f"{name} is not an algorithm of linear scores"):
        compose(job(name, **choice))


@pytest.mark.parametrize("name", NOT_LINEAR)
def test_one_order_for_all_epochs_is_for_linear_scores_only(name: str) -> None:
    with pytest.raises(JobError, match=r"train.reshuffle = False: .* drop it"):
        compose(job(name, reshuffle=False))


@pytest.mark.parametrize("name", [name for name in PULL if not PRESETS[name].literal])
def test_one_h_over_all_blocks_is_refused_where_parties_step_for_themselves(name: str) -> None:
    with pytest.raises(JobError, match=r"direction.pairs = 'joint'.*at its own pace; use 'hvp' or 'batch'"):
        compose(job(name, {"pairs": "joint"}, direction="lbfgs"))
    assert settings(job(name, direction="lbfgs")).pairs == "hvp"
    assert settings(job(name, {"pairs": "batch"}, direction="lbfgs")).pairs == "batch"


@pytest.mark.parametrize("name", BACKWARD)
def test_one_h_over_all_blocks_is_the_rule_where_all_step_on_the_same_batch(name: str) -> None:
    assert settings(job(name, direction="lbfgs")).pairs == "joint"


@pytest.mark.parametrize("terms", [{"pairs": "hvp"}, {"memory": 5}, {"step": 0.1}])
@pytest.mark.parametrize("name", ["vfb2-svrg", "afsgd-vp", "fd-svrg"])
def test_terms_of_a_direction_that_is_not_taken_are_refused(name: str, terms: dict[str, Any]) -> None:
    with pytest.raises(JobError, match=r"direction: .* set train.direction = 'lbfgs' as well"):
        compose(job(name, terms))
    compose(job(name, terms, direction="lbfgs"))


@pytest.mark.parametrize(
    ("terms", "text"),
    [
        ({"memory": 0}, "direction.memory: 0 is not a positive number"),
        ({"every": -1}, "direction.every: -1 is not a positive number"),
        ({"delta": 0.0}, "direction.delta: 0.0 is not a positive number"),
        ({"step": -0.5}, "direction.step: -0.5 is not a positive number"),
    ],
)
def test_terms_of_a_direction_that_mean_nothing_are_refused(terms: dict[str, Any], text: str) -> None:
    with pytest.raises(JobError, match=text):
        job("asysqn-svrg", terms)


@pytest.mark.parametrize("labels_at", [0, -1, 5])
def test_as_many_label_holders_as_there_are_parties_at_most_and_one_at_least(labels_at: int) -> None:
    with pytest.raises(JobError, match=f"train.labels_at: {labels_at} of 4 parties; give 1 to 4"):
        compose(job("afsvrg-vp", labels_at=labels_at))


@pytest.mark.parametrize("name", sorted(set(PRESETS) - set(PULL)))
def test_labels_at_is_refused_where_the_data_says_who_holds_the_label(name: str) -> None:
    with pytest.raises(JobError, match=r"train.labels_at: .*data.active says who holds the label"):
        compose(job(name, labels_at=2))


def test_a_number_of_classes_goes_with_softmax_and_softmax_with_a_number_of_classes() -> None:
    with pytest.raises(JobError, match=r"train.classes: logistic has one score per row"):
        compose(job("vfb2-saga", loss="logistic", classes=3))
    with pytest.raises(JobError, match=r"train.classes: 1 is less than two"):
        job("vfb2-saga", loss="softmax", classes=1)
    with pytest.raises(JobError, match=r"train.classes: softmax has a score per class"):
        run(random_tables(classes=3), "vfb2-saga", train={"loss": "softmax"})
