"""A private reply moves by at most its sensitivity when one label changes, and carries the noise it says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colonnade.arrays import Rows
from colonnade.errors import JobError
from colonnade.losses import LOSSES
from colonnade.optim.smoothing import Smoothing
from colonnade.privacy.discrete import SCALE
from colonnade.privacy.grid import Grid
from colonnade.privacy.mechanisms import NoisyScalars, clip_rows, mean_losses, rounded_rows
from colonnade.privacy.noise import Noise


class Silent(Noise):
    """Noise that is always nothing."""

    def gaussian(self, rows: Rows, draws: Rows, width: int = 1) -> Rows:
        return np.zeros((len(rows), width), dtype=np.int64)


@given(
    st.integers(0, 10_000),
    st.integers(1, 4),
    st.sampled_from([1, 3, 40]),
    st.booleans(),
    st.sampled_from([0.1, 3.0, 1e5]),
)
def test_one_label_moves_a_reply_by_no_more_than_its_sensitivity(
    seed: int, K: int, B: int, two_sided: bool, multiplier: float
) -> None:
    rng = np.random.default_rng(seed)
    smoothing = Smoothing("gaussian", K, 1e-3, two_sided)
    clip = float(rng.uniform(0.01, 5))
    mechanism = NoisyScalars(smoothing, clip, multiplier, Silent)
    # outputs of any size: the client may send what it likes
    z = rng.standard_normal((smoothing.points_per_step, B)) * 10 ** rng.uniform(-3, 3)
    y = np.where(rng.random(B) < 0.5, 1.0, -1.0)
    other = y.copy()
    other[rng.integers(B)] *= -1
    logistic = LOSSES["logistic"]
    before, after = (mechanism(logistic.value(z, labels)) for labels in (y, other))
    assert np.linalg.norm(before - after) <= 2 * clip * K**0.5 / B * (1 + 1e-9)


@given(st.integers(0, 10_000), st.integers(1, 9), st.integers(8, 2**30))
def test_rows_on_the_grid_are_no_longer_than_its_bound(seed: int, K: int, steps: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((50, K)) * 10 ** rng.uniform(-2, 4)
    whole = rounded_rows(rows, Grid(K**0.5, steps))
    assert max(sum(int(n) ** 2 for n in row) for row in whole) <= steps**2


def test_the_bound_is_reached() -> None:
    smoothing = Smoothing("gaussian", 1, 1.0)
    mechanism = NoisyScalars(smoothing, 1.0, 1.0, Silent)
    z = np.array([[0.0, 0.0], [50.0, 0.0]])
    logistic = LOSSES["logistic"]
    up = mechanism(logistic.value(z, np.array([1.0, 1.0])))
    down = mechanism(logistic.value(z, np.array([-1.0, 1.0])))
    assert 0.8 < float(np.abs(up - down)[0]) <= 1.0  # 2 clip / B = 1


def test_the_noise_has_the_deviation_that_was_asked_for() -> None:
    class Step(Noise):
        def gaussian(self, rows: Rows, draws: Rows, width: int = 1) -> Rows:
            return np.full((len(rows), width), SCALE)  # one deviation

    mechanism = NoisyScalars(Smoothing("gaussian", 3), 0.5, 7.0, Step)
    expected = 7.0 * 2 * 0.5 * 3**0.5 / 10
    reply = mechanism(np.zeros((4, 10)))
    np.testing.assert_allclose(reply, [expected] * 3, rtol=1e-5)
    assert (reply >= expected).all()


def test_numbers_of_a_reply_are_drawn_apart() -> None:
    """Two numbers of one Box-Muller pair, for one, lie on a circle of a radius that is drawn once."""
    mechanism = NoisyScalars(Smoothing("gaussian", 2), 1.0, 1.0)
    drawn = np.array([mechanism(np.zeros((3, 5))) for _ in range(1500)])
    for power in (1, 2):
        assert abs(np.corrcoef((drawn**power).T)[0, 1]) < 5 / len(drawn) ** 0.5


def test_noise_that_drowns_everything_is_refused() -> None:
    with pytest.raises(JobError, match=r"privacy\.epsilon"):
        NoisyScalars(Smoothing("gaussian", 9), 1.0, SCALE / 5)(np.zeros((10, 5)))


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
