"""A function of u + v is the sum of few products of a function of u and one of v."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colonnade.errors import SumError
from colonnade.secure.separated import half_logistic, log_two_cosh, separated

REACH = st.integers(-6, 9).map(lambda code: 2 ** (code / 2))


@settings(max_examples=25, deadline=None)
@given(a=REACH, b=REACH, even=st.booleans(), seed=st.integers(0, 99))
def test_the_sum_of_products_is_near_everywhere(a: float, b: float, even: bool, seed: int) -> None:
    h = log_two_cosh if even else half_logistic
    found = separated(a, b, 0.02, 46, h, even)
    rng = np.random.default_rng(seed)
    u, v = rng.uniform(-a, a, 500), rng.uniform(-b, b, 500)
    at_u, at_v = found.u.at(u), found.v.at(v)
    np.testing.assert_allclose(at_u[0] + at_v[0] + (at_u[1:] * at_v[1:]).sum(axis=0), h(u + v), atol=0.022)


@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (4.0, 4.0), (4.0, 16.0), (22.6, 22.6)])
def test_the_sum_is_exactly_a_half_where_both_are_zero(a: float, b: float) -> None:
    found = separated(a, b, 0.02, 46)
    at_u, at_v = found.u.at(np.zeros(1)), found.v.at(np.zeros(1))
    assert abs(at_u[0] + at_v[0] + (at_u[1:] * at_v[1:]).sum()) < 1e-14


def test_few_products_are_enough_and_too_many_are_refused() -> None:
    assert separated(4.0, 4.0, 0.02, 46).terms <= 4
    assert separated(16.0, 16.0, 0.02, 46).terms <= 17
    with pytest.raises(SumError, match="more than 3 products a row"):
        separated(16.0, 16.0, 0.02, 3)
