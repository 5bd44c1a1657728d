"""The slopes of the papers' theorems: fitted right, and the runs behind them do what they say."""

from __future__ import annotations

import numpy as np
import pytest

from colonnade_bench import theorems
from colonnade_bench.kernel import rate


def test_every_part_has_claims_with_lengths_that_grow() -> None:
    assert theorems.CLAIMS.keys() == theorems.PARTS.keys() == theorems.MINUTES.keys()
    for part in theorems.CLAIMS.values():
        for claim in part():
            assert list(claim.lengths) == sorted(claim.lengths)
            assert claim.power < 0


def test_a_slope_and_its_interval_are_those_of_a_power_law_with_noise() -> None:
    rng, lengths = np.random.default_rng(0), [4, 8, 16, 32, 64]
    slopes = [
        theorems.slope(lengths, [T**-0.5 * np.exp(0.1 * rng.standard_normal()) for T in lengths])
        for _ in range(5)
    ]
    mean, low, high = theorems.interval(slopes)
    assert mean == pytest.approx(-0.5, abs=0.1)
    assert low < -0.5 < high


def test_the_kernel_machine_nears_its_exact_optimum() -> None:
    tables, best = rate._tables()
    y = tables.train["one"].y
    assert y is not None
    assert np.mean((best - y) ** 2) < np.mean(y**2), "the optimum says something of the label"
    assert rate.distance(8, 0) < 0.5 * rate.distance(2, 0)
