"""Gradient estimators: right on average whatever they remember, and one number per row is all they do."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from colonnade.arrays import Floats
from colonnade.optim.estimators import ESTIMATORS, Estimator, Remembered, Saga, Svrg

ROWS, COLUMNS = 24, 5
shapes = st.sampled_from([(), (3,)])
seeds = st.integers(0, 2**32 - 1)


def estimate(estimator: Estimator, X: Floats, rows: NDArray[np.int64], theta: Floats) -> Floats:
    """X' c / |batch| + m, as a block does it."""
    step, along, change = estimator.coefficients(rows, theta)
    v: Floats = X[rows].T @ step / len(rows) + (estimator.mean if along else 0.0)
    if change is not None:
        estimator.learn(rows, theta, X[rows].T @ change)
    return v


def filled(name: str, X: Floats, classes: tuple[int, ...], rng: np.random.Generator) -> Estimator:
    """An estimator that has been through more than one pass of other thetas."""
    estimator = ESTIMATORS[name](ROWS, (COLUMNS, *classes))
    if estimator.snapshots:
        theta = rng.standard_normal((ROWS, *classes))
        estimator.snapshot(theta, X.T @ theta / ROWS)
    for start in (*range(0, ROWS, 4), 0, 8):
        rows = np.arange(start, start + 4)
        estimate(estimator, X, rows, rng.standard_normal((4, *classes)))
    return estimator


@pytest.mark.parametrize("name", ESTIMATORS)
@given(seed=seeds, classes=shapes, batch=st.sampled_from([1, 3, 8, 24]))
@settings(max_examples=25)
def test_the_mean_of_the_estimates_of_all_batches_is_the_full_gradient(
    name: str, seed: int, classes: tuple[int, ...], batch: int
) -> None:
    rng = np.random.default_rng(seed)
    X, theta = rng.standard_normal((ROWS, COLUMNS)), rng.standard_normal((ROWS, *classes))
    remembered = filled(name, X, classes, rng)
    order = rng.permutation(ROWS)
    estimates = [
        estimate(copy.deepcopy(remembered), X, rows, theta[rows])  # every one from the same memory
        for rows in np.split(order, ROWS // batch)
    ]
    np.testing.assert_allclose(np.mean(estimates, axis=0), X.T @ theta / ROWS, atol=1e-12)


@pytest.mark.parametrize("name", ["svrg", "saga"])
@given(seed=seeds, classes=shapes)
@settings(max_examples=25)
def test_where_nothing_has_changed_since_it_was_remembered_every_estimate_is_the_full_gradient(
    name: str, seed: int, classes: tuple[int, ...]
) -> None:
    rng = np.random.default_rng(seed)
    X, theta = rng.standard_normal((ROWS, COLUMNS)), rng.standard_normal((ROWS, *classes))
    estimator = filled(name, X, classes, rng)
    if estimator.snapshots:
        estimator.snapshot(theta, X.T @ theta / ROWS)
    for rows in np.split(rng.permutation(ROWS), 6):
        estimate(estimator, X, rows, theta[rows])
    for rows in np.split(rng.permutation(ROWS), 6):
        np.testing.assert_allclose(estimate(estimator, X, rows, theta[rows]), X.T @ theta / ROWS, atol=1e-12)


@given(seed=seeds, classes=shapes, batches=st.lists(st.integers(0, 5), min_size=1, max_size=20))
@settings(max_examples=40)
def test_saga_s_mean_is_that_of_the_thetas_it_remembers_after_any_batches(
    seed: int, classes: tuple[int, ...], batches: list[int]
) -> None:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((ROWS, COLUMNS))
    saga, table = Saga(ROWS, (COLUMNS, *classes)), np.zeros((ROWS, *classes))
    for number in [*range(6), *batches]:
        rows = np.arange(4 * number, 4 * number + 4)
        table[rows] = rng.standard_normal((4, *classes))
        estimate(saga, X, rows, table[rows])
    np.testing.assert_allclose(saga.mean, X.T @ table / ROWS, atol=1e-12)


def test_in_its_first_pass_saga_and_before_its_first_snapshot_svrg_are_plain_sgd() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((ROWS, COLUMNS))
    for estimator in (Saga(ROWS, (COLUMNS,)), Svrg(ROWS, (COLUMNS,))):
        for rows in np.split(rng.permutation(ROWS), 6):
            theta = rng.standard_normal(4)
            np.testing.assert_array_equal(estimate(estimator, X, rows, theta), X[rows].T @ theta / 4)


@pytest.mark.parametrize("classes", [(), (7,)])
def test_saga_keeps_one_number_per_row_and_class_and_one_gradient(classes: tuple[int, ...]) -> None:
    saga = Saga(1000, (50, *classes))
    kept = sum(value.size for value in vars(saga.memory).values() if isinstance(value, np.ndarray))
    assert kept == (1000 + 50) * int(np.prod(classes))


@pytest.mark.parametrize("name", ESTIMATORS)
@given(seed=seeds, classes=shapes)
@settings(max_examples=10)
def test_an_estimator_with_the_memory_of_another_goes_on_as_that_one_would(
    name: str, seed: int, classes: tuple[int, ...]
) -> None:
    """The memory is all there is: what a checkpoint stores is enough."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((ROWS, COLUMNS))
    first = filled(name, X, classes, rng)
    second = ESTIMATORS[name](ROWS, (COLUMNS, *classes))
    second.memory = Remembered(**{key: copy.copy(value) for key, value in vars(first.memory).items()})
    for rows in np.split(rng.permutation(ROWS), 6):
        theta = rng.standard_normal((4, *classes))
        np.testing.assert_array_equal(estimate(first, X, rows, theta), estimate(second, X, rows, theta))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_to_ask_for_coefficients_changes_nothing_and_who_takes_no_snapshots_is_given_none(name: str) -> None:
    rng = np.random.default_rng(0)
    X, rows, theta = rng.standard_normal((ROWS, COLUMNS)), np.arange(4), rng.standard_normal(4)
    estimator = filled(name, X, (), rng)
    before = copy.deepcopy(estimator.memory)
    first, second = estimator.coefficients(rows, theta), estimator.coefficients(rows, theta)
    np.testing.assert_array_equal(first.step, second.step)
    for key, value in vars(before).items():
        np.testing.assert_array_equal(value, getattr(estimator.memory, key))
    if not estimator.has_mean():
        with pytest.raises(TypeError, match="takes no snapshots"):
            estimator.snapshot(np.zeros(ROWS), np.zeros(COLUMNS))
