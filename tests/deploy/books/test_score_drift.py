"""Scores like those of the test rows are stable, others are not, and only the latest count."""

from __future__ import annotations

import numpy as np
import pytest

from colonnade.credit import psi
from colonnade.deploy.books.score_drift import FIRST, ScoreMonitor


def test_a_shift_of_scores_shows_and_goes_again() -> None:
    rng = np.random.default_rng(0)
    monitor = ScoreMonitor()
    first, like, other = rng.normal(size=FIRST), rng.normal(size=3000), rng.normal(1.0, 1.0, size=9000)
    monitor.observe(first.tolist())
    assert monitor.psi is None  # nothing to compare yet
    for part in np.array_split(like, 30):
        monitor.observe(part.tolist())
    assert monitor.psi == pytest.approx(psi(first, like), abs=1e-12)
    assert monitor.psi is not None
    assert monitor.psi < 0.1
    for part in np.array_split(other, 90):
        monitor.observe(part.tolist())
    assert monitor.psi > 0.25
    for part in np.array_split(rng.normal(size=30_000), 300):
        monitor.observe(part.tolist())
    assert monitor.psi < 0.1


def test_scores_are_compared_with_those_of_the_test_rows() -> None:
    rng = np.random.default_rng(1)
    test, served = rng.normal(size=2000), rng.normal(0.5, 1.0, size=400)
    monitor = ScoreMonitor(test)
    monitor.observe(served[:50].tolist())
    assert monitor.psi is None  # too few to say
    monitor.observe(served[50:].tolist())
    assert monitor.psi == pytest.approx(psi(test, served), abs=1e-12)


def test_a_handful_of_test_rows_is_no_reference() -> None:
    rng = np.random.default_rng(2)
    monitor = ScoreMonitor(rng.normal(size=20))
    first, later = rng.normal(size=FIRST), rng.normal(size=500)
    for part in (first, later):
        monitor.observe(part.tolist())
    assert monitor.psi == pytest.approx(psi(first, later), abs=1e-12)
