"""Rows in an order that is made part by part compute as rows in the whole order do."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from colonnade.models.linear import longest_row, rows_of, squared_norms
from colonnade.models.shuffled import ShuffledRows


@pytest.mark.parametrize("most", [0, 1, 3])
@pytest.mark.parametrize("sparse", [False, True])
def test_parts_are_the_whole(most: int, sparse: bool) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 4)) * (rng.random((50, 4)) < 0.7)
    order, w = rng.permutation(50), rng.standard_normal(4)
    table = csr_array(X) if sparse else X
    parts = ShuffledRows(table, lambda k: order[16 * k : 16 * (k + 1)], 16, most)
    whole = rows_of(table, order)
    for start, end in ((0, 50), (3, 7), (14, 35), (48, 50), (2, 3)):
        theta = rng.standard_normal(end - start)
        np.testing.assert_allclose(parts.scores(start, end, w), whole.scores(start, end, w), atol=1e-14)
        np.testing.assert_allclose(
            parts.gradient(start, end, theta), whole.gradient(start, end, theta), atol=1e-13
        )
        assert parts.values(start, end) == whole.values(start, end)


def test_the_longest_row_is_that_of_all() -> None:
    X = np.random.default_rng(1).standard_normal((30, 3))
    assert longest_row(X) == pytest.approx(squared_norms(X).max())
    assert longest_row(np.zeros((0, 3))) == 0.0
