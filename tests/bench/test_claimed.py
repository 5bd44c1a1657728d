"""No mechanism gives more away than it claims, measured; noise in doubles did."""

from __future__ import annotations

import pytest

from colonnade_bench.micro.claimed import Mechanism, measured, measured_in_doubles, mechanisms

TRIALS = 10_000


@pytest.mark.slow
@pytest.mark.parametrize("each", list(mechanisms()), ids=lambda each: f"{each.name}, {each.claimed:.3g}")
def test_what_is_measured_is_never_more_than_is_claimed(each: Mechanism) -> None:
    found = measured(each, TRIALS)
    assert found <= each.claimed
    if each.claimed >= 1.99:
        assert found > 0.2  # the attack works


def test_noise_in_doubles_gives_more_away_than_it_claims() -> None:
    assert measured_in_doubles(0.5, 2000) > 3
