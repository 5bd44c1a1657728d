"""Phases: sums of packed angles are sums of angles, up to whole turns and the last bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from colonnade.conversations.kernel.phases import TURN, pack, unpack


@pytest.mark.parametrize("bits", [16, 32])
@given(data=st.data())
def test_the_sum_of_packed_angles_is_the_angle_of_the_sum(bits: int, data: st.DataObject) -> None:
    q = data.draw(st.integers(1, 16))
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=2, min_side=0, max_side=7))
    pieces = [data.draw(hnp.arrays(np.float64, shape, elements=st.floats(-1e4, 1e4))) for _ in range(q)]
    words = sum((pack(piece, bits) for piece in pieces), np.uint64(0))
    found = unpack(np.asarray(words, dtype=np.uint64), shape, bits)
    off = found - sum(pieces)
    apart = np.abs(off - TURN * np.rint(off / TURN))
    assert found.shape == shape
    assert apart.max(initial=0.0) <= TURN * 2.0**-bits * 1.5 * q + 1e-9


def test_an_angle_takes_two_or_four_bytes() -> None:
    assert pack(np.zeros(8), 16).nbytes == 16
    assert pack(np.zeros(8), 32).nbytes == 32
    assert pack(np.zeros(5), 16).nbytes == 16
