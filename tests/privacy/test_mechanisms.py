"""A private reply moves by at most its sensitivity when one label changes, and carries the noise it says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colonnade.losses import LOSSES
from colonnade.optim.smoothing import Smoothing
from colonnade.privacy.mechanisms import NoisyScalars, clip_rows, mean_losses


def silent(mean: float, deviation: float) -> float:
    return mean


@given(st.integers(0, 10_000), st.integers(1, 4), st.sampled_from([1, 3, 40]), st.booleans())
def test_one_label_moves_a_reply_by_no_more_than_its_sensitivity(
    seed: int, K: int, B: int, two_sided: bool
) -> None:
    rng = np.random.default_rng(seed)
    smoothing = Smoothing("gaussian", K, 1e-3, two_sided)
    clip = float(rng.uniform(0.01, 5))
    mechanism = NoisyScalars(smoothing, clip, 0.0, silent)
    # outputs of any size: the client may send what it likes
    z = rng.standard_normal((smoothing.points_per_step, B)) * 10 ** rng.uniform(-3, 3)
    y = np.where(rng.random(B) < 0.5, 1.0, -1.0)
    other = y.copy()
    other[rng.integers(B)] *= -1
    logistic = LOSSES["logistic"]
    before, after = (mechanism(logistic.value(z, labels)) for labels in (y, other))
    assert np.linalg.norm(before - after) <= 2 * clip * K**0.5 / B * (1 + 1e-9)


def test_the_bound_is_reached() -> None:
    smoothing = Smoothing("gaussian", 1, 1.0)
    mechanism = NoisyScalars(smoothing, 1.0, 0.0, silent)
    z = np.array([[0.0, 0.0], [50.0, 0.0]])
    logistic = LOSSES["logistic"]
    up = mechanism(logistic.value(z, np.array([1.0, 1.0])))
    down = mechanism(logistic.value(z, np.array([-1.0, 1.0])))
    assert 0.8 < float(np.abs(up - down)[0]) <= 1.0  # 2 clip / B = 1


def test_the_noise_has_the_deviation_that_was_asked_for() -> None:
    asked: list[float] = []

    def note(mean: float, deviation: float) -> float:
        asked.append(deviation)
        return mean + deviation

    mechanism = NoisyScalars(Smoothing("gaussian", 3), 0.5, 7.0, note)
    reply = mechanism(np.zeros((4, 10)))
    expected = 7.0 * 2 * 0.5 * 3**0.5 / 10
    assert asked == pytest.approx([expected] * 3)
    np.testing.assert_allclose(reply, expected)


def test_noise_is_fresh_and_does_not_come_from_a_seed() -> None:
    mechanism = NoisyScalars(Smoothing("gaussian", 2), 1.0, 1.0)
    np.random.seed(0)  # noqa: NPY002  somebody may try
    first = mechanism(np.zeros((3, 5)))
    np.random.seed(0)  # noqa: NPY002
    assert not np.array_equal(first, mechanism(np.zeros((3, 5))))


def test_without_a_mechanism_the_reply_is_the_mean_loss() -> None:
    np.testing.assert_array_equal(mean_losses(np.array([[1.0, 3.0], [5.0, 7.0]])), [2.0, 6.0])


def test_what_is_not_finite_counts_as_nothing() -> None:
    rows = np.array([[np.nan, 1.0], [np.inf, np.inf], [3.0, 4.0]])
    np.testing.assert_allclose(clip_rows(rows, 1.0), [[0.0, 1.0], [0.0, 0.0], [0.6, 0.8]])
