"""Sparse rows: compiled kernels and SciPy's give the same numbers to the last bit, in every order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from colonnade.models import sparse
from colonnade.models.linear import descend
from colonnade.models.sparse import ROOM, CompiledRows, FlatRows, SparseRows

pytestmark = pytest.mark.skipif(not sparse.COMPILED, reason="no compiler made _rows")


def table(rng: np.random.Generator, n: int, d: int, density: float, *, ones: bool) -> csr_array:
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < density)
    return csr_array((X != 0).astype(float) if ones else X)


@settings(max_examples=150, deadline=None)
@given(
    n=st.integers(1, 40),
    d=st.sampled_from([1, 2, 7, 30, 70_000]),
    density=st.sampled_from([0.0, 0.05, 0.3, 1.0]),
    ones=st.booleans(),
    wide=st.booleans(),
    classes=st.sampled_from([(), (1,), (3,)]),
    drawn=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_compiled_kernels_give_what_scipy_gives(
    n: int, d: int, density: float, ones: bool, wide: bool, classes: tuple[int, ...], drawn: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    X = table(rng, n, d, density if d < 1000 else 1e-4, ones=ones)
    if wide:
        X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    order = rng.integers(n, size=n) if drawn else rng.permutation(n)
    theirs, ours = SparseRows(X)._gathered(order), SparseRows(X).in_order(order)
    assert isinstance(ours, FlatRows)
    start, end = np.sort(rng.integers(0, n + 1, 2)).tolist()
    w, theta = rng.standard_normal((d, *classes)), rng.standard_normal((end - start, *classes))
    assert ours.scores(start, end, w).tolist() == theirs.scores(start, end, w).tolist()
    assert ours.gradient(start, end, theta).tolist() == theirs.gradient(start, end, theta).tolist()
    assert ours.values(start, end) == theirs.values(start, end)
    other = w.copy()
    descend(ours, start, end, theta, w, 0.3)
    descend(theirs, start, end, theta, other, 0.3)
    assert w.tolist() == other.tolist()


def test_one_table_has_many_orders() -> None:
    rng = np.random.default_rng(0)
    X = table(rng, 50, 9, 0.3, ones=False)
    rows, w = SparseRows(X), rng.standard_normal(9)
    orders = [rng.permutation(50) for _ in range(3)]
    kept = [rows.in_order(order) for order in orders]
    for order, ordered in zip(orders, kept, strict=True):
        np.testing.assert_allclose(ordered.scores(0, 50, w), (X @ w)[order], rtol=1e-12)


def test_some_rows_are_gathered_and_not_all_moved() -> None:
    X = csr_array(np.eye(4))
    assert isinstance(SparseRows(X).in_order(np.array([2, 0])), SparseRows)


def test_without_a_compiler_scipy_does_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse, "COMPILED", False)
    rows = SparseRows(csr_array(np.diag([1.0, 2.0, 3.0]))).in_order(np.array([2, 0, 1]))
    assert isinstance(rows, SparseRows)
    assert rows.scores(0, 3, np.ones(3)).tolist() == [3.0, 1.0, 2.0]


def test_what_does_not_fit_is_refused() -> None:
    from colonnade.models._rows import put_in_order

    lasting = CompiledRows.made(np.array([0, 1, 2]), np.array([0, 1]), np.array([1.0, 2.0]), 2)
    rows = lasting.in_order(np.array([1, 0]))
    with pytest.raises(ValueError, match="do not fit"):
        rows.scores(0, 3, np.ones(2))
    with pytest.raises(ValueError, match="do not fit"):
        rows.scores(0, 2, np.ones(3))
    with pytest.raises(ValueError, match="do not fit"):
        rows.gradient(0, 2, np.ones(1))
    with pytest.raises(ValueError, match="do not fit"):
        rows.descend(0, 2, np.ones(2), np.ones(3), 0.1)
    with pytest.raises(ValueError, match="no such row"):
        lasting.in_order(np.array([0, 2]))
    pointers, numbers = np.empty(9, np.int64), np.empty(2 + ROOM)
    rows_of, columns = np.empty(2 + ROOM, np.int32), np.empty(2 + ROOM, np.uint16)
    old = (lasting.pointers, lasting.columns, lasting.numbers)
    with pytest.raises(ValueError, match="no room"):
        put_in_order(*old, np.array([0, 1] * 4), pointers, rows_of, columns, numbers)
    with pytest.raises(ValueError, match="columns that it does not have"):
        CompiledRows.made(np.array([0, 1]), np.array([2]), np.ones(1), 2)
