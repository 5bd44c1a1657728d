"""Random features: their products average to the kernel, and blocks of columns add up to the whole."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from colonnade.arrays import Floats
from colonnade.models.random_features import KERNELS, KernelFunction, RandomFeatures, phi

every_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())


def naive(kernel: KernelFunction, x: Floats, z: Floats, sigma: float) -> float:
    if kernel.name == "gaussian":
        return float(np.exp(-np.sum((x - z) ** 2) / (2 * sigma**2)))
    return float(np.exp(-np.sum(np.abs(x - z)) / sigma))


def drawn(kernel: KernelFunction, width: int, count: int, sigma: float) -> RandomFeatures:
    rng = np.random.default_rng([width, count])
    return RandomFeatures(kernel.directions(rng, (width, count)) / sigma, rng.uniform(0, 2 * np.pi, count))


@every_kernel
def test_products_of_features_average_to_the_kernel(kernel: KernelFunction) -> None:
    X = np.random.default_rng(0).standard_normal((6, 3))
    features = phi(drawn(kernel, 3, 40_000, sigma=2.0).project(X))
    expected = [[naive(kernel, x, z, 2.0) for z in X] for x in X]
    np.testing.assert_allclose(features @ features.T / 40_000, expected, atol=0.03)


@every_kernel
@given(seed=st.integers(0, 1000), cut=st.integers(1, 4))
@settings(max_examples=20)
def test_blocks_of_columns_add_up(kernel: KernelFunction, seed: int, cut: int) -> None:
    rng = np.random.default_rng(seed)
    X, Z = rng.standard_normal((2, 7, 5))
    whole = drawn(kernel, 5, 9, sigma=1.5)
    left = RandomFeatures(whole.omega[:cut], whole.b)
    right = RandomFeatures(whole.omega[cut:], np.zeros(9))
    np.testing.assert_allclose(
        left.project(X[:, :cut]) + right.project(X[:, cut:]), whole.project(X), atol=1e-12
    )
    apart = kernel.distance(X - Z)
    np.testing.assert_allclose(
        kernel.distance(X[:, :cut] - Z[:, :cut]) + kernel.distance(X[:, cut:] - Z[:, cut:]), apart
    )
    np.testing.assert_allclose(
        kernel.value(apart, 1.5), [naive(kernel, x, z, 1.5) for x, z in zip(X, Z, strict=True)]
    )


@every_kernel
def test_sparse_rows_give_the_same(kernel: KernelFunction) -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((8, 5)) * (rng.random((8, 5)) < 0.4)
    features = drawn(kernel, 5, 6, sigma=1.0)
    np.testing.assert_allclose(features.project(csr_array(X)), features.project(X))
    np.testing.assert_allclose(features.project(X, 4), features.project(X)[:, :4])
    np.testing.assert_allclose(
        kernel.distance(csr_array(X[:4]) - csr_array(X[4:])), kernel.distance(X[:4] - X[4:])
    )
