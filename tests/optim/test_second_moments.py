"""The first matrix of L-BFGS is the inverse root of a block's own second moments."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import inv, sqrtm
from scipy.sparse import csr_array

from colonnade.arrays import Floats
from colonnade.optim import second_moments
from colonnade.optim.second_moments import first_matrix


def table(rows: int = 300, columns: int = 6) -> Floats:
    rng = np.random.default_rng(0)
    X: Floats = rng.standard_normal((rows, columns)) @ rng.standard_normal((columns, columns))
    return X


def test_its_square_is_the_inverse_root_of_the_moments() -> None:
    X, penalty = table(120), np.array([0.1] * 5 + [0.0])
    root = first_matrix(X, 0.25, penalty).root
    expected = inv(sqrtm(0.25 * X.T @ X / len(X) + np.diag(penalty)))
    np.testing.assert_allclose(root @ root, expected, rtol=1e-8)


def test_sparse_columns_have_the_matrix_of_dense_ones() -> None:
    X = np.where(np.abs(table()) > 2, table(), 0.0)
    penalty = np.full(6, 1e-3)
    dense, sparse = (first_matrix(kind, 0.25, penalty).root for kind in (X, csr_array(X)))
    np.testing.assert_allclose(dense, sparse, rtol=1e-12)


def test_a_wide_block_has_the_diagonal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(second_moments, "WIDEST", 5)
    X = table()
    root = first_matrix(X, 1.0, np.zeros(6)).root
    np.testing.assert_allclose(root**-4, np.mean(X**2, axis=0))


@pytest.mark.parametrize("columns", [1, 3])
def test_columns_that_say_nothing_have_finite_ones(columns: int) -> None:
    for penalty in (0.0, 0.1):
        root = first_matrix(np.zeros((10, columns)), 0.25, np.full(columns, penalty)).root
        assert np.isfinite(root).all()


def test_a_sample_of_rows_is_near_all_of_them_and_misses_no_rare_column() -> None:
    X = np.column_stack([table(50_000), np.arange(50_000) == 7])
    penalty = np.full(7, 1e-5)
    few = first_matrix(X, 0.25, penalty).root
    expected = inv(sqrtm(0.25 * X.T @ X / len(X) + np.diag(penalty)))
    np.testing.assert_allclose(
        (few @ few)[:6, :6], expected[:6, :6], atol=0.3 * np.abs(expected[:6, :6]).max()
    )
    assert few[6, 6] > 2 * few.diagonal()[:6].max()
