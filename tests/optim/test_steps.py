"""Steps: their limits, their order, and where delayed gradient descent stops being stable."""

from __future__ import annotations

import math
from collections import deque

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colonnade.arrays import Floats
from colonnade.optim.estimators import Sgd
from colonnade.optim.steps import Smoothness, automatic_step

sizes = st.integers(1, 500)


@st.composite
def smoothnesses(draw: st.DrawFn) -> Smoothness:
    mean = draw(st.floats(1e-3, 1e3))
    return Smoothness(mean, mean * draw(st.floats(1, 100)))


@given(smoothnesses(), sizes)
def test_one_row_has_the_worst_row_s_smoothness_and_all_rows_the_mean(s: Smoothness, rows: int) -> None:
    assert s.of_batch(1, rows) == pytest.approx(s.worst_row)
    if rows > 1:
        assert s.of_batch(rows, rows) == pytest.approx(s.mean)


@given(smoothnesses(), sizes, sizes)
def test_a_batch_lies_between_the_mean_and_the_worst_row(s: Smoothness, batch: int, rows: int) -> None:
    assert s.mean * (1 - 1e-9) <= s.of_batch(batch, rows) <= s.worst_row * (1 + 1e-9)


@given(smoothnesses(), sizes, st.integers(2, 500))
def test_a_larger_batch_is_no_rougher(s: Smoothness, batch: int, rows: int) -> None:
    assert s.of_batch(batch + 1, rows) <= s.of_batch(batch, rows) * (1 + 1e-9)


@given(smoothnesses(), sizes)
def test_a_batch_larger_than_the_data_is_all_of_it(s: Smoothness, rows: int) -> None:
    assert s.of_batch(rows + 7, rows) == s.of_batch(rows, rows)


@given(smoothnesses(), sizes, sizes, st.integers(0, 200))
def test_the_step_never_grows_with_the_delay_nor_shrinks_with_the_batch(
    s: Smoothness, batch: int, rows: int, delay: int
) -> None:
    step = automatic_step(s, batch, rows, delay)
    assert 0 < automatic_step(s, batch, rows, delay + 1) <= step
    assert automatic_step(s, batch + 1, rows, delay) >= step * (1 - 1e-9)


@given(smoothnesses(), sizes, sizes, st.integers(0, 200))
def test_the_step_stays_below_both_of_its_bounds(s: Smoothness, batch: int, rows: int, delay: int) -> None:
    step = automatic_step(s, batch, rows, delay)
    assert step <= 1 / s.of_batch(batch, rows)
    assert step < math.pi / ((2 * delay + 1) * s.mean)


def test_without_delay_the_step_on_all_rows_is_one_over_the_smoothness() -> None:
    assert automatic_step(Smoothness(4.0, 40.0), batch=100, rows=100, delay=0) == 0.25


def test_a_long_delay_makes_the_step_fall_like_its_inverse() -> None:
    s = Smoothness(1.0, 1.0)
    steps = [automatic_step(s, 10, 100, delay) for delay in (100, 200)]
    assert steps[0] / steps[1] == pytest.approx(401 / 201)


def largest_late_distance(step: float, delay: int, curvature: float) -> float:
    """How far w is from the optimum late in w_{t+1} = w_t - step * curvature * w_{t - delay}, w_0 = 1."""
    w = deque([1.0] * (delay + 1), maxlen=delay + 1)
    steps = 400 * (delay + 1)
    late = 0.0
    for t in range(steps):
        w.append(w[-1] - step * curvature * w[0])
        if t >= steps - 8 * (delay + 1):
            late = max(late, abs(w[-1]))
        if late > 1e6:
            break
    return late


@pytest.mark.parametrize("delay", [0, 1, 2, 3, 5, 8, 16, 32, 64])
def test_delayed_gradient_descent_converges_at_the_automatic_step_and_explodes_above_the_bound(
    delay: int,
) -> None:
    L = 3.0
    automatic = automatic_step(Smoothness(L, L), batch=10, rows=10, delay=delay)
    assert largest_late_distance(automatic, delay, L) < 1e-6
    # the bound pi / ((2 tau + 1) L) is asymptotic in tau: exact is 2 sin(pi / (4 tau + 2)) / L
    exact = 2 * math.sin(math.pi / (4 * delay + 2)) / L
    assert largest_late_distance(0.97 * exact, delay, L) < 1.0
    assert largest_late_distance(math.pi / ((2 * delay + 1) * L) * 1.2, delay, L) > 100.0


@pytest.mark.parametrize("delay", range(0, 65, 4))
def test_the_automatic_step_is_below_the_exact_stability_limit_for_every_flatter_direction_too(
    delay: int,
) -> None:
    automatic = automatic_step(Smoothness(1.0, 1.0), batch=1, rows=1, delay=delay)
    assert automatic < 2 * math.sin(math.pi / (4 * delay + 2))
    for curvature in (0.1, 0.5):
        assert largest_late_distance(automatic, delay, curvature) < 1.0


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=5))
@settings(max_examples=20)
def test_plain_sgd_remembers_nothing(values: list[float]) -> None:
    rows, theta = np.arange(len(values)), np.array(values)
    sgd = Sgd(len(values), (1,))
    for _ in range(2):
        step, along, change = sgd.coefficients(rows, theta)
        np.testing.assert_array_equal(step, theta)
        assert not along
        assert change is None


def growth_of_delayed_saga(
    step: float, delay: int, batches: int, seed: int, curved: Floats | float = 1.0
) -> float:
    """By which factor SAGA on w^2 / 2 grows in a shuffled pass, in the long run; below 1 it converges.

    `curved` is how much w^2 / 2 counts in each of the batches.
    """
    rng = np.random.default_rng(seed)
    curved = np.broadcast_to(curved, batches)
    w = deque([1.0] * (delay + 1), maxlen=delay + 1)
    memory, logs = np.ones(batches), []
    for _ in range(60):
        for batch in rng.permutation(batches):
            v = curved[batch] * (w[0] - memory[batch]) + (curved * memory).mean()
            memory[batch] = w[0]
            w.append(w[-1] - step * v)
        scale = max(np.abs(memory).max(), *(abs(x) for x in w))
        logs.append(math.log(scale))
        memory /= scale
        w = deque([x / scale for x in w], maxlen=delay + 1)
    return math.exp(np.mean(logs[10:]))


@pytest.mark.parametrize("batches", [2, 5, 8, 10, 16, 20, 32, 50, 64])
def test_delayed_saga_converges_at_the_automatic_step_however_delay_and_passes_fall_together(
    batches: int,
) -> None:
    for delay in (0, 1, 2, 3, 4, 5, 8, 13, 18, 25):
        step = automatic_step(Smoothness(1.05, 1.05), 10, 10 * batches, delay, remembers=True)
        assert growth_of_delayed_saga(step, delay, batches, seed=delay) < 1, delay


@pytest.mark.parametrize(("delay", "batches"), [(1, 5), (4, 10), (8, 20), (16, 50)])
def test_a_step_that_delayed_gradient_descent_survives_is_too_large_for_delayed_saga(
    delay: int, batches: int
) -> None:
    plain = automatic_step(Smoothness(1.0, 1.0), 10, 10 * batches, delay)
    assert largest_late_distance(plain, delay, 1.0) < 1e-6
    assert growth_of_delayed_saga(plain, delay, batches, seed=0) > 1


@pytest.mark.parametrize("batches", [5, 20, 64])
def test_a_row_alone_in_its_direction_bears_the_automatic_step_of_saga_and_not_that_of_sgd(
    batches: int,
) -> None:
    lone = np.eye(batches)[0]  # a batch of 10 rows, of which one has all of the direction
    smoothness = Smoothness(mean=1 / batches, worst_row=10.0)
    for seed in range(5):
        steps = [
            automatic_step(smoothness, 10, 10 * batches, 0, remembers=saga, numbers=True)
            for saga in (True, False)
        ]
        saga, sgd = (growth_of_delayed_saga(step, 0, batches, seed, lone) for step in steps)
        assert saga < 1 < sgd
