"""Three ways to sum give the same total, in the time that the formulas say."""

from __future__ import annotations

import math

import numpy as np
import pytest

from colonnade_bench.kernel.topologies import SHAPES, Machines, summed


@pytest.mark.parametrize("q", [2, 3, 5, 8, 32])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_total_is_the_sum_and_the_time_is_the_formula(shape: str, q: int) -> None:
    machines = Machines(latency_s=0.01, bandwidth_bps=1e6, add_s_per_value=1e-6)
    arrays = list(np.random.default_rng(q).standard_normal((q, 50)))
    total, seconds = summed(shape, arrays, machines)
    np.testing.assert_allclose(total, np.sum(arrays, axis=0))
    T, L = machines.seconds(50), 0.01
    height = math.ceil(math.log2(q))
    expected = {"star": L + (q - 1) * T, "ring": (q - 1) * (L + T), "tree": height * (L + T)}
    if shape == "tree" and q & (q - 1):  # a message may wait where a full tree has a party at work
        assert height * T + L <= seconds + 1e-9 <= expected["tree"] + 2e-9
    else:
        assert seconds == pytest.approx(expected[shape], rel=1e-6)
