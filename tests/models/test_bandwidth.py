"""The bandwidth is a length of the data; a chosen one predicts rows that were really left out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from colonnade.arrays import Floats
from colonnade.models.bandwidth import (
    FRACTIONS,
    ROWS,
    bandwidth,
    left_out_error,
    pair_distances,
    sample_of,
    sampled_pairs,
    spread,
    targets_of,
)
from colonnade.models.random_features import KERNELS, KernelFunction

NONE = np.empty(0)
every_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())


@every_kernel
def test_the_bandwidth_is_a_length_of_the_data(kernel: KernelFunction) -> None:
    difference = np.random.default_rng(2).standard_normal((500, 4))
    once = bandwidth(kernel, kernel.distance(difference), 0.5, NONE)
    assert once is not None
    assert bandwidth(kernel, kernel.distance(3 * difference), 0.5, NONE) == pytest.approx(3 * once)
    assert bandwidth(kernel, np.zeros(5), 0.5, NONE) is None


@every_kernel
def test_the_spread_bounds_the_largest_eigenvalue(kernel: KernelFunction) -> None:
    X = np.random.default_rng(3).standard_normal((60, 3))
    pairs = (X[:, None] - X[None]).reshape(-1, 3)
    distance = kernel.distance(pairs)
    for sigma in (0.3, 1.0, 5.0):
        K = kernel.value(distance, sigma).reshape(60, 60)
        largest = np.linalg.eigvalsh(K)[-1] / 60
        assert largest <= spread(kernel, distance, sigma) + 1e-12
        assert spread(kernel, distance, sigma) == pytest.approx(np.linalg.norm(K) / 60)


def naive_left_out(kernel: KernelFunction, X: Floats, targets: Floats, sigma: float) -> float:
    """Fit kernel ridge regression once for every row, without it."""

    def k(A: Floats, B: Floats) -> Floats:
        distance = kernel.distance((A[:, None] - B[None]).reshape(-1, X.shape[1]))
        return kernel.value(distance, sigma).reshape(len(A), len(B))

    errors = []
    for i in range(len(X)):
        others = np.arange(len(X)) != i
        dual = np.linalg.solve(k(X[others], X[others]) + np.eye(len(X) - 1), targets[others])
        errors.append(targets[i] - k(X[i : i + 1], X[others]) @ dual)
    return float(np.mean(np.square(errors)))


@every_kernel
@pytest.mark.parametrize("classes", [1, 3])
def test_the_error_at_rows_left_out_is_that_of_fits_without_them(
    kernel: KernelFunction, classes: int
) -> None:
    rng = np.random.default_rng(4)
    X = rng.standard_normal((25, 3))
    y = rng.integers(0, 3, 25).astype(np.float64) if classes > 1 else rng.standard_normal(25)
    targets = targets_of(y, classes)
    pairs = sampled_pairs(rng, 25, every=True)
    np.testing.assert_array_equal(sample_of(pairs), np.arange(25))
    distance = pair_distances(kernel, X, pairs)
    np.testing.assert_allclose(pair_distances(kernel, csr_array(X), pairs), distance)
    naive = {}
    for part in FRACTIONS:
        sigma = bandwidth(kernel, distance, part, NONE)
        assert sigma is not None
        naive[sigma] = naive_left_out(kernel, X, targets, sigma)
        assert left_out_error(kernel.value(distance, sigma), targets) == pytest.approx(naive[sigma])
    assert bandwidth(kernel, distance, "auto", targets) == min(naive, key=naive.__getitem__)


def test_pairs_are_of_different_rows_and_of_a_sample() -> None:
    rng = np.random.default_rng(5)
    left, right = sampled_pairs(rng, 5000, every=True)
    assert len(left) == ROWS * (ROWS - 1) // 2
    assert len(sample_of((left, right))) == ROWS
    for every in (True, False):
        left, right = sampled_pairs(rng, 40, every=every)
        assert (left != right).all()
    assert len(sampled_pairs(rng, 1, every=True)[0]) == 0
