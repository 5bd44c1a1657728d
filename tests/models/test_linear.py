"""The kernels: dense == sparse == naive, for every range, order and shape of weights."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.sparse import csr_array

from colonnade.arrays import Floats
from colonnade.models.linear import DenseRows, rows_of, squared_norms
from colonnade.models.sparse import FlatRows, SparseRows


def matrix(rng: np.random.Generator, n: int, d: int, density: float) -> Floats:
    return rng.standard_normal((n, d)) * (rng.random((n, d)) < density)


def naive_scores(X: Floats, w: Floats) -> Floats:
    out = np.zeros((X.shape[0], *w.shape[1:]))
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            out[i] += X[i, j] * w[j]
    return out


@st.composite
def cases(draw: st.DrawFn) -> tuple[Floats, NDArray[np.int64] | None, int, int, int | None, int]:
    n, d = draw(st.integers(1, 12)), draw(st.integers(1, 7))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    X = matrix(rng, n, d, draw(st.sampled_from([0.0, 0.3, 1.0])))
    order = rng.permutation(n) if draw(st.booleans()) else None
    start = draw(st.integers(0, n))
    end = draw(st.integers(start, n))
    return X, order, start, end, draw(st.sampled_from([None, 1, 3])), seed


@given(cases())
@settings(max_examples=200)
def test_dense_sparse_and_naive_agree_on_scores_gradient_and_values(
    case: tuple[Floats, NDArray[np.int64] | None, int, int, int | None, int],
) -> None:
    X, order, start, end, outputs, seed = case
    rng = np.random.default_rng([seed, 1])
    shape = () if outputs is None else (outputs,)
    w, theta = rng.standard_normal((X.shape[1], *shape)), rng.standard_normal((end - start, *shape))
    part = (X if order is None else X[order])[start:end]
    dense, sparse = rows_of(X, order), rows_of(csr_array(X), order)
    assert isinstance(dense, DenseRows)
    assert isinstance(sparse, SparseRows | FlatRows)
    for rows in (dense, sparse):
        scores, gradient = rows.scores(start, end, w), rows.gradient(start, end, theta)
        assert scores.shape == (end - start, *shape)
        assert gradient.shape == w.shape
        np.testing.assert_allclose(scores, naive_scores(part, w), atol=1e-12)
        np.testing.assert_allclose(gradient, naive_scores(part.T, theta), atol=1e-12)
    assert dense.values(start, end) == part.size
    assert sparse.values(start, end) == np.count_nonzero(part)


@pytest.mark.parametrize("kind", [np.asarray, csr_array], ids=["dense", "sparse"])
def test_an_empty_range_scores_nothing_and_has_no_gradient(kind: type) -> None:
    rows = rows_of(kind(np.ones((3, 2))))
    assert rows.scores(2, 2, np.ones(2)).shape == (0,)
    assert rows.gradient(2, 2, np.zeros(0)).tolist() == [0.0, 0.0]
    assert rows.values(2, 2) == 0


@pytest.mark.parametrize("kind", [np.asarray, csr_array], ids=["dense", "sparse"])
def test_scores_and_gradient_are_each_other_s_transpose(kind: type) -> None:
    rng = np.random.default_rng(3)
    rows = rows_of(kind(matrix(rng, 30, 8, 0.4)), rng.permutation(30))
    w, theta = rng.standard_normal(8), rng.standard_normal(11)
    assert theta @ rows.scores(7, 18, w) == pytest.approx(w @ rows.gradient(7, 18, theta))


@pytest.mark.parametrize("kind", [np.asarray, csr_array], ids=["dense", "sparse"])
def test_kernels_leave_their_inputs_alone_and_take_read_only_arrays(kind: type) -> None:
    rng = np.random.default_rng(4)
    X = matrix(rng, 6, 3, 0.7)
    w, theta = rng.standard_normal((3, 2)), rng.standard_normal((6, 2))
    before = (X.copy(), w.copy(), theta.copy())
    w.flags.writeable = theta.flags.writeable = False  # what was received from the net cannot be written
    rows = rows_of(kind(X))
    rows.scores(0, 6, w)
    rows.gradient(0, 6, theta)
    for now, then in zip((X, w, theta), before, strict=True):
        np.testing.assert_array_equal(now, then)


@pytest.mark.parametrize("kind", [np.asarray, csr_array], ids=["dense", "sparse"])
def test_weights_may_lie_in_memory_in_any_way(kind: type) -> None:
    rng = np.random.default_rng(5)
    X, w, theta = matrix(rng, 6, 4, 0.7), rng.standard_normal((4, 2)), rng.standard_normal((6, 2))
    rows = rows_of(kind(X))
    np.testing.assert_allclose(rows.scores(0, 6, np.asfortranarray(w)), X @ w, atol=1e-12)
    np.testing.assert_allclose(rows.gradient(0, 6, np.asfortranarray(theta)), X.T @ theta, atol=1e-12)
    np.testing.assert_allclose(rows.scores(0, 6, w[:, 0]), X @ w[:, 0], atol=1e-12)
    np.testing.assert_allclose(rows.gradient(0, 6, theta[:, 1]), X.T @ theta[:, 1], atol=1e-12)


def test_sparse_rows_with_64_bit_indices_give_the_same() -> None:
    X = matrix(np.random.default_rng(6), 6, 4, 0.5)
    wide = csr_array(X)
    wide.indptr, wide.indices = wide.indptr.astype(np.int64), wide.indices.astype(np.int64)
    rows = rows_of(wide)
    np.testing.assert_allclose(rows.scores(1, 5, np.arange(4.0)), X[1:5] @ np.arange(4.0), atol=1e-12)


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.5, 1.0]))
@settings(max_examples=30)
def test_squared_norms_are_row_by_row_dense_and_sparse(seed: int, density: float) -> None:
    X = matrix(np.random.default_rng(seed), 7, 5, density)
    expected = [sum(value**2 for value in row) for row in X]
    np.testing.assert_allclose(squared_norms(X), expected, atol=1e-12)
    np.testing.assert_allclose(squared_norms(csr_array(X)), expected, atol=1e-12)
