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
from colonnade.secure import ring

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
