"""Two-point estimates are unbiased, as long as theory says, and exact where they must be."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from colonnade.arrays import Numbers
from colonnade.optim.smoothing import Directions, Smoothing

KINDS: tuple[Directions, ...] = ("gaussian", "sphere", "rademacher")
EVERY = [
    Smoothing(kind, count, 1e-3, two_sided)
    for kind, count, two_sided in product(KINDS, (1, 4), (False, True))
]


def estimates(smoothing: Smoothing, f: Any, w: Numbers, repeats: int, seed: int = 0) -> Numbers:
    rng = np.random.default_rng(seed)
    found = np.empty((repeats, len(w)))
    for i in range(repeats):
        u = smoothing.draw(rng, len(w))
        values = np.array([f(point) for point in smoothing.points(w, u)])
        found[i] = smoothing.gradient(smoothing.quotients(values), u)
    return found


@pytest.mark.parametrize("smoothing", EVERY, ids=str)
def test_the_mean_estimate_is_the_gradient_within_sampling_error(smoothing: Smoothing) -> None:
    rng = np.random.default_rng(1)
    A, w = rng.standard_normal((7, 5)), rng.standard_normal(5)
    y = np.where(rng.random(7) < 0.5, 1.0, -1.0)

    def f(v: Numbers) -> float:
        return float(np.logaddexp(0, -y * (A @ v)).mean())

    true = -(A.T @ (y / (1 + np.exp(y * (A @ w))))) / 7
    found = estimates(smoothing, f, w, 4000)
    error = found.mean(axis=0) - true
    standard = found.std(axis=0) / np.sqrt(len(found))
    assert np.all(np.abs(error) < 4.5 * standard + 2e-3 * np.linalg.norm(true))


@pytest.mark.parametrize("smoothing", EVERY, ids=str)
def test_an_estimate_is_as_long_as_theory_says(smoothing: Smoothing) -> None:
    g = np.random.default_rng(2).standard_normal(12)
    found = estimates(smoothing, lambda v: float(g @ v), np.zeros(12), 6000)
    lengths = (found**2).sum(axis=1)
    expected = smoothing.stretch(12) * float(g @ g)
    standard = lengths.std() / np.sqrt(len(lengths))
    assert abs(lengths.mean() - expected) < 4.5 * standard


def test_the_factor_d_belongs_to_the_sphere_alone() -> None:
    g = np.ones(40)
    gaussian = estimates(Smoothing("gaussian", 8), lambda v: float(g @ v), np.zeros(40), 2000).mean(axis=0)
    sphere = estimates(Smoothing("sphere", 8), lambda v: float(g @ v), np.zeros(40), 2000).mean(axis=0)
    assert 0.9 < gaussian.mean() < 1.1  # with the paper's factor for both it would be 40
    assert 0.9 < sphere.mean() < 1.1


def test_two_sides_cancel_curvature_and_one_side_does_not() -> None:
    w, u = np.zeros(3), np.array([[1.0, 0.0, 0.0]])

    def f(v: Numbers) -> float:
        return float(2 * v[0] + 5 * v[0] ** 2)

    for two_sided, expected in ((False, 2 + 5 * 0.1), (True, 2.0)):
        smoothing = Smoothing("gaussian", 1, 0.1, two_sided)
        values = np.array([f(point) for point in smoothing.points(w, u)])
        assert smoothing.quotients(values) == pytest.approx([expected], abs=1e-12)


@pytest.mark.parametrize("smoothing", EVERY, ids=str)
def test_points_are_what_quotients_expect_and_keep_the_type(smoothing: Smoothing) -> None:
    w = np.arange(4, dtype=np.float32)
    u = smoothing.draw(np.random.default_rng(3), 4)
    points = smoothing.points(w, u)
    assert points.shape == (smoothing.points_per_step, 4)
    assert points.dtype == np.float32
    np.testing.assert_array_equal(points[0], w)
    many = np.stack([points @ np.ones(4), points @ np.arange(4.0)], axis=1)  # several values a point
    np.testing.assert_allclose(smoothing.quotients(many)[:, 1], u @ np.arange(4.0), rtol=2e-2, atol=2e-2)


def test_directions_have_the_lengths_their_names_promise() -> None:
    rng = np.random.default_rng(4)
    sphere = Smoothing("sphere", 50).draw(rng, 9)
    np.testing.assert_allclose(np.linalg.norm(sphere, axis=1), 1.0)
    signs = Smoothing("rademacher", 50).draw(rng, 9)
    assert set(np.unique(signs)) == {-1.0, 1.0}
    gaussian = Smoothing("gaussian", 4000).draw(rng, 9)
    np.testing.assert_allclose(gaussian.T @ gaussian / 4000, np.eye(9), atol=0.12)
