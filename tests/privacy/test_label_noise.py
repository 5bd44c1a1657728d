"""Private labels: frequencies of randomised response, noise as large as it says, and neither unasked."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles.tables import random_job, random_tables

from colonnade.arrays import Numbers
from colonnade.losses import LOSSES
from colonnade.privacy.accountant import multiplier_for
from colonnade.privacy.label_noise import (
    NoisyLabels,
    delta_of,
    keep_probability,
    label_points,
    private_table,
    randomised,
)
from colonnade.privacy.noise import Noise
from colonnade.run.federate import plan_for


@pytest.mark.parametrize(("classes", "epsilon"), [(2, 1.0), (10, 1.0), (10, 4.0), (3, 0.1)])
def test_frequencies_are_those_of_the_definition(classes: int, epsilon: float) -> None:
    n = 60_000
    told = randomised(np.full(n, classes - 1), classes, epsilon)
    counts = np.bincount(told.astype(int), minlength=classes)
    keep = keep_probability(epsilon, classes)
    expected = np.full(classes, (1 - keep) / (classes - 1))
    expected[classes - 1] = keep
    assert keep / expected[0] == pytest.approx(np.exp(epsilon))  # this ratio is the guarantee
    deviation = np.sqrt(n * expected * (1 - expected))
    assert (np.abs(counts - n * expected) < 5 * deviation).all()


@given(st.integers(2, 6), st.floats(0.01, 60), st.floats(0, 1, exclude_max=True))
def test_every_draw_gives_a_class(classes: int, epsilon: float, u: float) -> None:
    codes = np.arange(classes)
    told = randomised(codes, classes, epsilon, lambda rows, draws, width: np.full((len(rows), width), u))
    assert set(told.tolist()) <= set(range(classes))
    assert (told == codes).all() == (u < keep_probability(epsilon, classes))


def test_noise_has_the_right_distribution() -> None:
    rows, none = np.arange(40_000), np.zeros(40_000, dtype=np.int64)
    u, z = Noise().uniform(rows, none)[:, 0], Noise().gaussian(rows[:200], none[:200], 200).ravel()
    assert 0 < u.min() < u.max() < 1
    assert abs(u.mean() - 0.5) < 5 / np.sqrt(12 * len(u))
    assert abs(z.mean()) < 5 / np.sqrt(len(z))
    assert z.std() == pytest.approx(1, abs=5 / np.sqrt(2 * len(z)))
    assert abs((np.abs(z) < 1).mean() - 0.6827) < 5 * 0.5 / np.sqrt(len(z))


def test_noise_is_the_same_for_one_key_row_and_draw_and_another_for_any_other() -> None:
    noise, rows = Noise(bytes(32)), np.arange(50)
    drawn = np.concatenate([noise.uniform(rows, np.full(50, draw), 5) for draw in range(4)])
    assert len(np.unique(drawn)) == drawn.size
    assert np.array_equal(noise.uniform(rows[::-1], np.full(50, 2), 5), drawn[100:150][::-1])
    assert not np.isin(Noise().uniform(rows, np.zeros(50, dtype=np.int64)), drawn).any()
    # more classes than there were change nothing for the others
    assert np.array_equal(noise.uniform(rows, np.zeros(50, dtype=np.int64), 2), drawn[:50, :2])


@pytest.mark.parametrize("name", ["logistic", "smooth_hinge", "softmax", "squared"])
def test_the_derivative_at_a_noisy_label_is_that_of_the_loss_continued_linearly(name: str) -> None:
    rng, loss = np.random.default_rng(0), LOSSES[name]
    z: Numbers = rng.standard_normal((40, 4)) if name == "softmax" else 2 * rng.standard_normal(40)
    y: Numbers = {"softmax": rng.integers(0, 4, 40) * 1.0, "squared": rng.standard_normal(40)}.get(
        name, np.where(rng.random(40) < 0.5, 1.0, -1.0)
    )
    points, _ = label_points(y, loss, 100.0, 4)
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
    points, _ = label_points(y, LOSSES["softmax"], 1.0, 3)
    moved = LOSSES["softmax"].soft_dz(z, points + noise) - LOSSES["softmax"].dz(z, y)
    np.testing.assert_allclose(moved, -noise)
    z, y, noise = z[:, 0], np.where(y > 0, 1.0, -1.0), noise[:, 0]
    moved = LOSSES["logistic"].soft_dz(z, y + noise) - LOSSES["logistic"].dz(z, y)
    np.testing.assert_allclose(moved, -noise / 2)


def test_a_number_is_clipped_before_it_gets_noise() -> None:
    points, sensitivity = label_points(np.array([-9.0, 0.3, 5.0]), LOSSES["squared"], 2.0)
    assert points.tolist() == [-2.0, 0.3, 2.0]
    assert sensitivity == 4.0


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
    labels, rows = NoisyLabels(np.eye(3), 0.5), np.array([0, 2])
    first, second = labels(rows), labels(rows)
    assert first.shape == (2, 3)
    assert not np.array_equal(first, second)


def test_a_row_that_had_as_many_draws_gets_the_same_one_next_whatever_is_asked_beside_it() -> None:
    labels = NoisyLabels(np.eye(3), 0.5)
    first = [labels(np.array([0, 2])), labels(np.array([0, 1, 2]))]
    labels.drawn[:] = [1, 0, 1]  # as at a checkpoint
    assert np.array_equal(labels(np.array([2])), first[1][2:])
    assert np.array_equal(labels(np.array([1, 0])), first[1][[1, 0]])
