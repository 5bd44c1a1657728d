"""Fixed point: the nearest multiple of the step, ties to even, whatever the size of a value."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from colonnade.arrays import Floats
from colonnade.errors import FixedPointOverflow
from colonnade.secure import ring, words

HALVES = st.integers(-(2**40), 2**40).map(lambda half: half * ring.STEP / 2)


@given(
    hnp.arrays(
        np.float64,
        st.integers(1, 6),
        elements=st.one_of(HALVES, st.floats(-(2.0**18), 2.0**18), st.floats(-(2.0**26), 2.0**26)),
    )
)
def test_words_are_the_nearest_multiples_of_the_step(values: Floats) -> None:
    nearest = [round(Fraction(value) * 2**ring.FRACTION_BITS) for value in values.tolist()]
    assert ring.encode(values, q=8).tolist() == [number % 2**64 for number in nearest]


@pytest.mark.parametrize("value", [2.0**27, -(2.0**27), np.inf, np.nan])
def test_what_does_not_fit_is_an_error(value: float) -> None:
    with pytest.raises(FixedPointOverflow, match="does not fit"):
        ring.encode(np.array([0.5, value]), q=8)


@pytest.mark.parametrize("size", [1e-3, 1.0, 2.0**17, 2.0**20, 2.0**26])
@pytest.mark.parametrize("shape", [(0,), (1,), (7,), (5, 3)])
def test_a_masked_value_is_its_word_plus_the_mask(way: bool, size: float, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    values, mask = rng.uniform(-size, size, shape), rng.integers(0, 2**64, 20, dtype=np.uint64)
    expected = ring.encode(values, q=8).ravel() + mask[: values.size]
    assert ring.masked(values, mask - ring.OFFSET, q=8).tolist() == expected.tolist()
    columns = np.asfortranarray(values)
    assert ring.masked(columns, mask - ring.OFFSET, q=8).tolist() == expected.tolist()


@pytest.mark.parametrize("value", [2.0**27, -(2.0**27), np.inf, -np.inf, np.nan])
def test_what_does_not_fit_is_not_masked(way: bool, value: float) -> None:
    with pytest.raises(FixedPointOverflow, match="does not fit"):
        ring.masked(np.array([0.5, value]), np.zeros(2, dtype=np.uint64), q=8)


def test_a_total_is_the_sum_of_its_pieces_wherever_they_lie_in_memory(way: bool) -> None:
    values = np.random.default_rng(1).uniform(-9, 9, (5, 33))
    pieces = [ring.encode(each, q=5) for each in values]
    odd = [np.frombuffer(b"." + each.tobytes(), dtype=np.uint64, offset=1) for each in pieces[1:]]
    total = ring.total_of(pieces[0], odd)
    assert total is not None
    np.testing.assert_allclose(total, values.sum(axis=0), atol=5 * ring.STEP)


@pytest.mark.parametrize("word", [2**62 + 2**10, 2**63, 2**64 - 2**62 - 2**10])
def test_a_total_beyond_the_widest_is_none(way: bool, word: int) -> None:
    share = np.array([0, word], dtype=np.uint64)
    assert ring.total_of(share, []) is None


@pytest.mark.skipif(not words.COMPILED, reason="no compiler made _words")
def test_a_piece_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="another length"):
        ring.total_of(np.zeros(3, dtype=np.uint64), [np.zeros(2, dtype=np.uint64)])
