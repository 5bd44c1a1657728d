"""Folds: every row is held back once, by chance alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colonnade.data.split.folds import folds_of, one_fold
from colonnade.errors import DataError


@given(st.integers(20, 200), st.integers(2, 10), st.integers(0, 5))
def test_every_row_is_held_back_in_one_fold_and_kept_in_all_others(rows: int, folds: int, seed: int) -> None:
    found = folds_of(rows, folds, seed)
    assert sorted(np.concatenate([fold.held for fold in found]).tolist()) == list(range(rows))
    for fold in found:
        assert sorted([*fold.kept.tolist(), *fold.held.tolist()]) == list(range(rows))
    sizes = [len(fold.held) for fold in found]
    assert max(sizes) - min(sizes) <= 1


def test_a_part_of_the_rows_can_be_held_back_once() -> None:
    (fold,) = one_fold(50, 0.2, seed=1)
    assert (len(fold.kept), len(fold.held)) == (40, 10)
    assert not set(fold.kept.tolist()) & set(fold.held.tolist())


def test_too_few_rows_are_refused() -> None:
    with pytest.raises(DataError, match="7 training rows are too few for 5 folds"):
        folds_of(7, 5, seed=0)
