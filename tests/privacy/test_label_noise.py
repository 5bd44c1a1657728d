"""Private labels: noise as large as it says, labels no further apart than was accounted for, none unasked."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles.tables import random_job, random_tables

from colonnade.arrays import Numbers
from colonnade.errors import JobError
from colonnade.losses import LOSSES
from colonnade.privacy.accountant import multiplier_for
from colonnade.privacy.discrete import SCALE
from colonnade.privacy.label_noise import (
    delta_of,
    keep_probability,
    label_points,
    noisy_labels,
    private_table,
)
from colonnade.run.federate import plan_for


@pytest.mark.parametrize("name", ["logistic", "smooth_hinge", "softmax", "squared"])
def test_the_derivative_at_a_noisy_label_is_that_of_the_loss_continued_linearly(name: str) -> None:
    rng, loss = np.random.default_rng(0), LOSSES[name]
    z: Numbers = rng.standard_normal((40, 4)) if name == "softmax" else 2 * rng.standard_normal(40)
    y: Numbers = {"softmax": rng.integers(0, 4, 40) * 1.0, "squared": rng.standard_normal(40)}.get(
        name, np.where(rng.random(40) < 0.5, 1.0, -1.0)
    )
    points, *_ = label_points(y, loss, 100.0, 4)
    np.testing.assert_allclose(loss.soft_dz(z, points), loss.dz(z, y), atol=1e-15)
    # linear: the mean over noise that cancels is the exact derivative
    noise = rng.standard_normal(points.shape)
    both = (loss.soft_dz(z, points + noise) + loss.soft_dz(z, points - noise)) / 2
    np.testing.assert_allclose(both, loss.dz(z, y), atol=1e-13)


def test_noise_of_the_softmax_and_the_logistic_loss_is_noise_on_the_gradient() -> None:
    rng = np.random.default_rng(0)
    z: Numbers = rng.standard_normal((9, 3))
    y: Numbers = rng.integers(0, 3, 9) * 1.0
    noise: Numbers = rng.standard_normal((9, 3))
    points, *_ = label_points(y, LOSSES["softmax"], 1.0, 3)
    moved = LOSSES["softmax"].soft_dz(z, points + noise) - LOSSES["softmax"].dz(z, y)
    np.testing.assert_allclose(moved, -noise)
    z, y, noise = z[:, 0], np.where(y > 0, 1.0, -1.0), noise[:, 0]
    moved = LOSSES["logistic"].soft_dz(z, y + noise) - LOSSES["logistic"].dz(z, y)
    np.testing.assert_allclose(moved, -noise / 2)


def test_a_number_is_clipped_before_it_gets_noise() -> None:
    points, bound, sensitivity = label_points(np.array([-9.0, 0.3, 5.0]), LOSSES["squared"], 2.0)
    assert points.tolist() == [-2.0, 0.3, 2.0]
    assert (bound, sensitivity) == (2.0, 4.0)


@given(st.sampled_from(["logistic", "softmax", "squared"]), st.floats(0.05, 1e4), st.floats(1e-3, 1e6))
def test_on_the_grid_no_two_labels_lie_further_apart_than_was_accounted_for(
    name: str, multiplier: float, clip: float
) -> None:
    y = {"logistic": [-1.0, 1.0], "softmax": [0.0, 2.0], "squared": [-9 * clip, clip]}[name]
    labels = noisy_labels(np.array(y), LOSSES[name], clip, multiplier, 3)
    apart = float(np.linalg.norm(labels.points[1] - labels.points[0]))
    assert apart * multiplier <= SCALE * (1 + 1e-15)
    sensitivity = label_points(np.array(y), LOSSES[name], clip, 3)[2]
    assert labels.grid.deviation * (1 + 1e-15) >= multiplier * sensitivity
    assert apart * multiplier > 0.99 * SCALE  # and little is lost by it


def test_noise_that_drowns_everything_is_refused() -> None:
    with pytest.raises(JobError, match=r"privacy\.epsilon"):
        noisy_labels(np.array([1.0]), LOSSES["logistic"], 1.0, 2.0**24)


def test_labels_are_replaced_at_their_holder_alone_and_only_if_asked_for() -> None:
    setting = random_tables(parties=2, active=1, rows=2000)
    terms = {"mechanism": "labels", "epsilon": 1.0}
    plan, _ = plan_for(random_job(setting, "vafl", privacy=terms), setting)
    holder, other = setting.train["party0"], setting.train["party1"]
    assert private_table(other, plan) is other
    assert private_table(holder, plan_for(random_job(setting, "vafl"), setting)[0]) is holder
    told = private_table(holder, plan)
    assert told.y is not None and holder.y is not None  # noqa: PT018
    assert told.X is holder.X
    assert set(np.unique(told.y)) == {-1.0, 1.0}
    assert (told.y == holder.y).mean() == pytest.approx(keep_probability(1.0, 2), abs=0.05)
    again = private_table(holder, plan)
    assert again.y is not None
    assert not np.array_equal(told.y, again.y)  # the job's seed has no part in it
    assert delta_of(plan.privacy, plan.objective.loss) == 0.0


def test_numbers_get_gaussian_noise_once() -> None:
    setting = random_tables(parties=2, active=1, rows=4000, regression=True)
    job = random_job(
        setting,
        "vafl",
        train={"loss": "squared"},
        privacy={"mechanism": "labels", "epsilon": 2.0, "clip": 3.0},
    )
    plan, _ = plan_for(job, setting)
    y = setting.train["party0"].y
    told = private_table(setting.train["party0"], plan).y
    assert y is not None and told is not None  # noqa: PT018
    expected = multiplier_for(2.0, 1e-5, 1) * 6.0
    assert (told - np.clip(y, -3, 3)).std() == pytest.approx(expected, rel=0.06)
    assert delta_of(plan.privacy, plan.objective.loss) == 1e-5


def test_classes_that_no_row_has_are_possible_answers() -> None:
    setting = random_tables(parties=2, active=1, rows=500, classes=3)
    holder = setting.train["party0"]
    holder = replace(holder, y=np.zeros(500))
    train = {"loss": "softmax", "classes": 4}
    job = random_job(setting, "vafl", train=train, privacy={"mechanism": "labels", "epsilon": 0.1})
    plan, _ = plan_for(job, setting)
    told = private_table(holder, plan).y
    assert told is not None
    assert set(told.tolist()) == {0.0, 1.0, 2.0, 3.0}


def test_every_call_draws_anew() -> None:
    labels, rows = noisy_labels(np.arange(3.0), LOSSES["softmax"], 1.0, 0.5), np.array([0, 2])
    first, second = labels(rows), labels(rows)
    assert first.shape == (2, 3)
    assert not np.array_equal(first, second)


def test_a_row_that_had_as_many_draws_gets_the_same_one_next_whatever_is_asked_beside_it() -> None:
    labels = noisy_labels(np.arange(3.0), LOSSES["softmax"], 1.0, 0.5)
    first = [labels(np.array([0, 2])), labels(np.array([0, 1, 2]))]
    labels.drawn[:] = [1, 0, 1]  # as at a checkpoint
    assert np.array_equal(labels(np.array([2])), first[1][2:])
    assert np.array_equal(labels(np.array([1, 0])), first[1][[1, 0]])
